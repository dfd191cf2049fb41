//! Page tokens: the cursor at which a page ended, signed with the key of the
//! database.
//!
//! The signature covers the account, the rpc and its filters: a token of another
//! listing, or an altered one, is refused.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Sha256, digest::KeyInit};

use crate::domain::ids::AccountId;

/// Bytes of a token's signature, a truncated HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 16;
/// Most characters of a token; every token of this service is shorter.
pub const MAX_PAGE_TOKEN_BYTES: usize = 1_024;
/// Bytes of a block of SHA-256; HMAC pads its key to one block.
const BLOCK_BYTES: usize = 64;

/// A cursor that page tokens can carry, as JSON.
pub trait PageCursor: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> PageCursor for T {}

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
        // No cursor has a map, so this never fails.
        let mut token = serde_json::to_vec(cursor).unwrap_or_default();
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
        serde_json::from_slice(cursor).ok()
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

#[cfg(test)]
mod tests;
