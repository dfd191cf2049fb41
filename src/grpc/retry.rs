//! Creates that may be repeated: what stands for a payload, and what is kept to
//! answer a retry with.

use prost::Message;
use sha2::{Digest, Sha256};

use super::decode;
use crate::{
    domain::{Error, ids::RequestId, violation::Violations},
    store::Retry,
};

/// A caller's intent to do something once.
#[derive(Debug)]
pub struct Intent {
    id: RequestId,
    digest: [u8; 32],
    payload: Vec<u8>,
}

impl Intent {
    /// Reads a `request_id`. `request` is without it and without
    /// `validate_only`; it is only looked at when there is an id.
    pub fn read(
        request_id: &str,
        rpc: &'static str,
        request: &impl Message,
        faults: &mut Violations,
    ) -> Option<Self> {
        let id = decode::request_id(request_id, faults)?;
        let payload = request.encode_to_vec();
        let mut digest = Sha256::new();
        digest.update(rpc);
        digest.update([0]);
        digest.update(&payload);
        Some(Self {
            id,
            digest: digest.finalize().into(),
            payload,
        })
    }

    /// What the store needs to recognise and answer a retry.
    pub fn retry<T>(&self, record: impl Fn(&T) -> Vec<u8> + Send + Sync + 'static) -> Retry<T> {
        Retry {
            id: self.id,
            digest: self.digest,
            record: Box::new(record),
        }
    }

    /// The request again.
    pub fn payload<M: Message + Default>(&self) -> Result<M, Error> {
        read(&self.payload)
    }
}

/// Reads a message that this service wrote.
pub fn read<M: Message + Default>(bytes: &[u8]) -> Result<M, Error> {
    M::decode(bytes).map_err(|_| Error::Internal("a kept message cannot be decoded".to_owned()))
}
