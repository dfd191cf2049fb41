//! Creates and imports that a caller may retry with the same `request_id`.

use prost::Message;

use super::call::Call;
use crate::{
    domain::{Error, Result, ids::RequestId, violation::Violations},
    messages::decode::field,
    store::{RetryKey, WriteOutcome},
};

/// The `request_id` of a request, and the digest of its payload.
#[derive(Clone, Copy, Debug)]
pub struct Idempotency {
    id: RequestId,
    digest: [u8; 32],
}

impl Call {
    /// `None` without a `request_id`. The digest excludes `request_id` and `validate_only`.
    pub fn idempotency(
        &self,
        request_id: &str,
        request: &impl Message,
        violations: &mut Violations,
    ) -> Option<Idempotency> {
        Some(Idempotency {
            id: field::request_id(request_id, violations)?,
            digest: self.digest(request, &["request_id", "validate_only"]),
        })
    }
}

impl Idempotency {
    /// What the store needs to recognize a retry and return the `response` of the first call.
    pub fn retry_key<T, R: Message>(
        self,
        response: impl Fn(&T) -> R + Send + Sync + 'static,
    ) -> RetryKey<T> {
        RetryKey {
            id: self.id,
            digest: self.digest,
            encode: Box::new(move |outcome| response(outcome).encode_to_vec()),
        }
    }
}

/// Runs a write and returns its response, or the response of the first call with the same
/// `request_id`.
pub async fn once<T: Clone, R: Message + Default>(
    request: Option<Idempotency>,
    response: impl Fn(T) -> R + Clone + Send + Sync + 'static,
    write: impl AsyncFnOnce(Option<RetryKey<T>>) -> Result<WriteOutcome<T>>,
) -> Result<R> {
    let encode = response.clone();
    let retry = request.map(|it| it.retry_key(move |outcome: &T| encode(outcome.clone())));
    match write(retry).await? {
        WriteOutcome::Done(outcome) => Ok(response(outcome)),
        WriteOutcome::Replayed(stored) => decode_stored(&stored),
    }
}

/// Decodes a message that this service encoded.
pub fn decode_stored<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|_| Error::Internal("a stored message cannot be decoded".to_owned()))
}
