//! What a request must be to be a call: gRPC, of a known rpc, with headers of a
//! bounded size and an uncompressed message.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use tonic::{Status, body::Body};

use crate::{
    auth::Scope,
    grpc::{self, status},
};

/// The largest headers of a call, without its credentials, which have a limit of
/// their own.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The headers that a call may hold until its message is there.
const MAX_HELD_HEADER_BYTES: usize = 1024;
/// What HTTP/2 adds to the size of each header (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD_BYTES: usize = 32;

const GRPC_ENCODING: &str = "grpc-encoding";

/// The response to a request that is not gRPC, such as a browser's, or whose messages are
/// not encoded by Protocol Buffers.
pub fn refuse_other_protocols(request: &Request<Body>) -> Option<Response<Body>> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let after_grpc = content_type
        .and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"))
        .map(|rest| rest.split(|byte| *byte == b';').next().unwrap_or_default());
    let code = match (request.method(), after_grpc) {
        (&Method::POST, Some(b"" | b"+proto")) => return None,
        (&Method::POST, Some([b'+', ..])) => {
            return Some(status::unsupported_encoding().into_http());
        }
        (&Method::POST, _) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
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

/// Refuses too large headers. Credentials do not count up to `max_credential_bytes`.
pub fn limit_headers(headers: &HeaderMap, max_credential_bytes: usize) -> Result<(), Status> {
    let (mut credentials, mut others) = (0, 0);
    for header in headers {
        let bytes = header_bytes(header);
        if header.0 == AUTHORIZATION {
            credentials += bytes;
        } else {
            others += bytes;
        }
    }
    match others + credentials.saturating_sub(max_credential_bytes) {
        ..=MAX_HEADER_BYTES => Ok(()),
        _ => Err(status::metadata_too_large(MAX_HEADER_BYTES)),
    }
}

/// The bytes of a header, as HTTP/2 counts them.
fn header_bytes((name, value): (&HeaderName, &HeaderValue)) -> usize {
    name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES
}

/// Drops the headers that have been read if they are large, so that a call which waits for its
/// message does not hold them.
pub fn drop_read_headers(headers: &mut HeaderMap) {
    let bytes: usize = headers.iter().map(header_bytes).sum();
    if bytes <= MAX_HELD_HEADER_BYTES {
        return;
    }
    let content_type = headers.remove(CONTENT_TYPE);
    *headers = HeaderMap::new();
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
}

/// Refuses compressed messages: a few bytes could become any number.
pub fn refuse_compression(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get(GRPC_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(status::compressed()),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn headers_may_have_16384_bytes_beside_the_credentials() {
        let header = |name: &'static str, bytes: usize| {
            let value = "x".repeat(bytes - name.len() - 32);
            let value = HeaderValue::from_str(&value).expect("a value");
            (HeaderName::from_static(name), value)
        };
        for (others, credentials, is_accepted) in [
            (16_384, 100, true),
            (16_385, 100, false),
            (16_384, 101, false),
            (16_284, 200, true),
            (16_284, 201, false),
        ] {
            let headers = [
                header("x-pad", others),
                header("authorization", credentials),
            ];
            let limited = limit_headers(&HeaderMap::from_iter(headers), 100);
            assert_eq!(limited.is_ok(), is_accepted, "{others}, {credentials}");
        }
    }
}
