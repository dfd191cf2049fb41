//! Checks that a request is a call: gRPC with limited headers and an uncompressed message.

use http::{
    HeaderMap, Method, Request, Response, StatusCode, Version,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use tonic::{Status, body::Body};

use crate::grpc::status;

/// The maximum size of the headers of a call, without its credentials, which have a separate limit.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;
/// What HTTP/2 adds to the size of each header (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD_BYTES: usize = 32;

const GRPC_ENCODING: &str = "grpc-encoding";

/// Refuses a request that is neither gRPC nor gRPC-Web, such as a request for a page, or whose
/// messages are not encoded by Protocol Buffers.
pub fn refuse_non_grpc(request: &Request<Body>) -> Option<Response<Body>> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let kind = content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
    let is_web = matches!(
        kind,
        Some(b"-web" | b"-web+proto" | b"-web-text" | b"-web-text+proto")
    );
    let kind = kind.map(|kind| kind.split(|byte| *byte == b';').next().unwrap_or_default());
    let (status, code) = match (request.method(), kind) {
        (&Method::POST, _) if is_web => return None,
        // gRPC itself needs the trailers of HTTP/2.
        (&Method::POST, Some(b"" | [b'+', ..])) if request.version() != Version::HTTP_2 => {
            (status::needs_http2(), StatusCode::UNSUPPORTED_MEDIA_TYPE)
        }
        (&Method::POST, Some(b"" | b"+proto")) => return None,
        (&Method::POST, Some([b'+', ..])) => {
            return Some(status::unsupported_encoding().into_http());
        }
        (&Method::POST, _) => (status::not_grpc(), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        _ => (status::not_grpc(), StatusCode::METHOD_NOT_ALLOWED),
    };
    let mut response = status.into_http();
    *response.status_mut() = code;
    Some(response)
}

/// Refuses headers that are too large, and compressed messages, because a few bytes could expand to
/// any size. Credentials of up to `max_credential_bytes` do not count.
pub fn check_headers(headers: &HeaderMap, max_credential_bytes: usize) -> Result<(), Status> {
    let (mut credentials, mut others) = (0, 0);
    for (name, value) in headers {
        let bytes = name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES;
        if name == AUTHORIZATION {
            credentials += bytes;
        } else {
            others += bytes;
        }
    }
    if others + credentials.saturating_sub(max_credential_bytes) > MAX_HEADER_BYTES {
        return Err(status::metadata_too_large(MAX_HEADER_BYTES));
    }
    match headers.get(GRPC_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(status::compressed()),
        _ => Ok(()),
    }
}
