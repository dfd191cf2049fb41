//! What a request must be to be a call: gRPC, of a known rpc, with headers of a
//! bounded size and an uncompressed message.

use http::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use tonic::{Status, body::Body};

use crate::{
    auth::Scope,
    call_context::ReadFrom,
    grpc::{self, status},
};

/// The largest headers of a call, without its credentials, which have a limit of
/// their own.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// What HTTP/2 adds to the size of each header (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD_BYTES: usize = 32;

const GRPC_ENCODING: &str = "grpc-encoding";
const READ_FROM: &str = "x-read-from";

/// The response to a request that is not gRPC, such as a browser's.
pub fn refuse_other_protocols(request: &Request<Body>) -> Option<Response<Body>> {
    let is_grpc = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')));
    let code = match *request.method() {
        Method::POST if is_grpc => return None,
        Method::POST => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        _ => StatusCode::METHOD_NOT_ALLOWED,
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    Some(response)
}

/// The scope that the rpc needs; an unknown rpc is refused.
pub fn required_scope(path: &str) -> Result<Scope, Status> {
    grpc::required_scope(path).ok_or_else(|| status::unimplemented(path))
}

pub fn limit_headers(headers: &HeaderMap) -> Result<(), Status> {
    let bytes: usize = headers
        .iter()
        .filter(|(name, _)| *name != AUTHORIZATION)
        .map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES)
        .sum();
    match bytes {
        ..=MAX_HEADER_BYTES => Ok(()),
        _ => Err(status::metadata_too_large(MAX_HEADER_BYTES)),
    }
}

/// Where the call reads, by its header `x-read-from`.
pub fn read_from(headers: &HeaderMap) -> Result<ReadFrom, Status> {
    let mut values = headers.get_all(READ_FROM).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(ReadFrom::Replica),
        (Some(value), None) if value == "primary" => Ok(ReadFrom::Primary),
        (Some(_), _) => Err(status::invalid_metadata(
            READ_FROM,
            "must be `primary`, or not be sent",
        )),
    }
}

/// Refuses compressed messages: a few bytes could become any number.
pub fn refuse_compression(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get(GRPC_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(status::compressed()),
        _ => Ok(()),
    }
}
