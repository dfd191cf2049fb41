//! MESSAGE_TOO_LARGE: what exceeds a limit in bytes.

use tonic::{Code, Status};

use super::{build, info, without_retry};
use crate::{domain::SizedResource, proto::v1::ErrorReason};

/// A request is larger than the server accepts; `limit` is in bytes.
pub fn message_too_large(limit: usize) -> Status {
    too_large("the request is larger than", limit)
}

/// The elements of a request take more memory than the server allows; `limit` is in bytes.
pub fn elements_too_large(limit: usize) -> Status {
    too_large_with(
        "the request has so many elements that they take more than",
        limit,
        " of memory",
    )
}

/// A response is larger than the server returns; `limit` is in bytes.
pub fn response_too_large(limit: usize) -> Status {
    too_large("the response would be larger than", limit)
}

/// A resource exceeds its limit of so many bytes.
pub(super) fn resource_too_large(resource: SizedResource, limit: usize) -> Status {
    let returned = format!(
        "the {resource} would be too large to return: its texts and elements take more than"
    );
    let (what, remedy) = match resource {
        SizedResource::Task | SizedResource::Step => (returned.as_str(), ""),
        SizedResource::Guide => (
            returned.as_str(),
            ": list its steps page by page with ListSteps",
        ),
        SizedResource::AnalysedGuide => (
            "what is read of the guide, all but bodies, is larger than",
            ": split it into several guides, or raise EXPERTISE_MAX_MESSAGE_BYTES of the server \
             (EXPERTISE_MAX_INFLIGHT_BYTES must be five times as large)",
        ),
        SizedResource::Import => (
            "the guides that the call reads and writes take more memory than",
            ": raise EXPERTISE_MAX_INFLIGHT_BYTES of the server, or import in parts",
        ),
    };
    too_large_with(what, limit, remedy)
}

/// A call's metadata are larger than the server accepts; `limit` is in bytes.
pub fn metadata_too_large(limit: usize) -> Status {
    too_large("the metadata, without credentials, are larger than", limit)
}

fn too_large(what: &str, limit: usize) -> Status {
    too_large_with(what, limit, "")
}

/// The same, with what follows the limit, such as what the caller can do.
fn too_large_with(what: &str, limit: usize, remedy: &str) -> Status {
    without_retry(build(
        Code::ResourceExhausted,
        format!("{what} {limit} bytes{remedy}"),
        info(
            ErrorReason::MessageTooLarge,
            [("limit_bytes", limit.to_string())],
        ),
    ))
}
