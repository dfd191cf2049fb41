//! Page tokens: the cursor at which a page ended, signed with the key of the
//! database.
//!
//! The signature covers the account, the rpc and its filters: a token of another
//! listing, or an altered one, is refused.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use sha2::{Sha256, digest::KeyInit};
use uuid::Uuid;

use crate::domain::{
    history::DeletedTaskCursor,
    ids::{AccountId, RoleId, TaskId},
    order::{MAX_FRACTION_BYTES, Place, StepCursor},
    time::Timestamp,
};

/// Bytes of a token's signature, a truncated HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 16;
/// Most characters of a token; every token of this service is shorter.
pub const MAX_PAGE_TOKEN_BYTES: usize = 512;
/// Bytes of a block of SHA-256; HMAC pads its key to one block.
const BLOCK_BYTES: usize = 64;

/// A cursor that page tokens can carry.
pub trait PageCursor: Sized {
    fn to_bytes(&self) -> Vec<u8>;

    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// Signs and verifies the page tokens of one listing.
#[derive(Debug)]
pub struct PageTokens<'a> {
    /// The key of the database, the same for every server of it.
    pub key: &'a [u8; 32],
    pub account: &'a AccountId,
    /// The rpc, such as `ListTasks`.
    pub rpc: &'static str,
    /// The filters: equal filters have equal bytes.
    pub filters: Vec<u8>,
    /// A page of the listing ends early once it has this many encoded bytes.
    pub page_bytes: usize,
}

impl PageTokens<'_> {
    /// The token of the page after a cursor.
    pub fn sign(&self, cursor: &impl PageCursor) -> String {
        let mut token = cursor.to_bytes();
        let signature = self.mac(&token).finalize().into_bytes();
        token.extend(signature.iter().take(SIGNATURE_BYTES));
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The cursor of a token that this listing has signed.
    pub fn verify<C: PageCursor>(&self, token: &str) -> Option<C> {
        if token.len() > MAX_PAGE_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let signed = bytes.len().checked_sub(SIGNATURE_BYTES)?;
        let (cursor, signature) = bytes.split_at_checked(signed)?;
        self.mac(cursor).verify_truncated_left(signature).ok()?;
        C::from_bytes(cursor)
    }

    fn mac(&self, cursor: &[u8]) -> Hmac<Sha256> {
        let mut key = [0; BLOCK_BYTES];
        for (slot, byte) in key.iter_mut().zip(self.key) {
            *slot = *byte;
        }
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&key.into());
        for part in [
            self.account.as_str().as_bytes(),
            self.rpc.as_bytes(),
            &self.filters,
        ] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.update(cursor);
        mac
    }
}

impl PageCursor for TaskId {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }
}

impl PageCursor for RoleId {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        i64::from_bytes(bytes).map(Self)
    }
}

impl PageCursor for i64 {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from_be_bytes(bytes.try_into().ok()?))
    }
}

impl PageCursor for DeletedTaskCursor {
    fn to_bytes(&self) -> Vec<u8> {
        let Self { deleted, task } = self;
        [deleted.0.to_bytes(), task.to_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (deleted, task) = bytes.split_at_checked(8)?;
        Some(Self {
            deleted: Timestamp(i64::from_bytes(deleted)?),
            task: TaskId::from_bytes(task)?,
        })
    }
}

impl PageCursor for StepCursor {
    fn to_bytes(&self) -> Vec<u8> {
        let Self {
            epoch,
            place: Place { position, fraction },
        } = self;
        let mut bytes = Vec::with_capacity(16 + fraction.len());
        bytes.extend(epoch.to_be_bytes());
        bytes.extend(position.to_be_bytes());
        bytes.extend(fraction);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (epoch, bytes) = bytes.split_first_chunk()?;
        let (position, fraction) = bytes.split_first_chunk()?;
        (fraction.len() <= MAX_FRACTION_BYTES).then(|| Self {
            epoch: i64::from_be_bytes(*epoch),
            place: Place {
                position: i64::from_be_bytes(*position),
                fraction: fraction.to_vec(),
            },
        })
    }
}

#[cfg(test)]
mod tests;
