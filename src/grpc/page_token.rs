//! Page tokens: where a page ended, sealed under the database's secret.
//!
//! The seal covers the account, the call and its filters, so a token is of no
//! use in another listing, and an altered one is of none at all.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use sha2::{Sha256, digest::KeyInit};
use uuid::Uuid;

use crate::domain::{
    ids::{AccountId, RoleId, TaskId},
    order::{Cursor, FRACTION_MAX, Place},
};

/// Bytes of a seal.
const SEAL: usize = 16;
/// Most characters of a token; any of ours is shorter.
pub const TOKEN_MAX: usize = 512;
/// Bytes of a block of SHA-256, to which HMAC fills its key up.
const BLOCK: usize = 64;

/// Where a page ended.
pub trait Mark: Sized {
    /// The mark as bytes.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads what [`Mark::to_bytes`] wrote.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// What a token is bound to.
#[derive(Debug)]
pub struct Listing<'a> {
    /// The secret of the database.
    pub key: &'a [u8; 32],
    /// Whose listing it is.
    pub account: &'a AccountId,
    /// The call.
    pub rpc: &'static str,
    /// The filters, in a form where the same bytes are the same filters.
    pub filters: Vec<u8>,
}

impl Listing<'_> {
    /// The token of the page after a mark.
    pub fn seal(&self, mark: &impl Mark) -> String {
        let mut token = mark.to_bytes();
        let seal = self.mac(&token).finalize().into_bytes();
        token.extend(seal.iter().take(SEAL));
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The mark of a token that this listing gave out.
    pub fn open<M: Mark>(&self, token: &str) -> Option<M> {
        if token.len() > TOKEN_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (mark, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL)?)?;
        self.mac(mark).verify_truncated_left(seal).ok()?;
        M::from_bytes(mark)
    }

    fn mac(&self, mark: &[u8]) -> Hmac<Sha256> {
        let mut key = [0; BLOCK];
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
        mac.update(mark);
        mac
    }
}

impl Mark for TaskId {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }
}

impl Mark for RoleId {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(i64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl Mark for Cursor {
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
        (fraction.len() <= FRACTION_MAX).then(|| Self {
            epoch: i64::from_be_bytes(*epoch),
            place: Place {
                position: i64::from_be_bytes(*position),
                fraction: fraction.to_vec(),
            },
        })
    }
}

#[cfg(test)]
#[path = "page_token_tests.rs"]
mod tests;
