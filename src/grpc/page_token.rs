//! Page tokens: the cursor at which a page ended, signed with the key of the
//! database.
//!
//! The signature covers the account, the rpc and its filters: a token of another
//! listing, or an altered one, is refused.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde::{Serialize, de::DeserializeOwned};

use crate::domain::ids::AccountId;

/// Bytes of a token's signature, an HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 32;
/// Most characters of a token; every token of this service is shorter.
pub const MAX_PAGE_TOKEN_BYTES: usize = 1_024;

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
        let signature = hmac::sign(&self.signing_key(), &self.signed(&token));
        token.extend(signature.as_ref());
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
        hmac::verify(&self.signing_key(), &self.signed(cursor), signature).ok()?;
        serde_json::from_slice(cursor).ok()
    }

    fn signing_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.key)
    }

    /// What is signed: a cursor with what its token belongs to.
    fn signed(&self, cursor: &[u8]) -> Vec<u8> {
        let mut signed = Vec::new();
        for part in [
            self.account.as_str().as_bytes(),
            self.rpc.as_bytes(),
            &self.filters,
        ] {
            signed.extend((part.len() as u64).to_be_bytes());
            signed.extend(part);
        }
        signed.extend(cursor);
        signed
    }
}

#[cfg(test)]
mod tests;
