//! Pages of a listing: their size in bytes, and the token of the next page.
//!
//! A token is the cursor at which a page ended, as JSON, signed with the key of the database. The
//! signature covers the account, the rpc and its filters, so a token that was altered or belongs to
//! another listing is refused.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost::Message;
use ring::hmac;
use serde::{Serialize, de::DeserializeOwned};

use super::status;
use crate::{
    domain::{
        ids::AccountId,
        page::{Page, PageSize},
        violation::Violations,
    },
    messages::decode::field,
};

/// Bytes of a token's signature, an HMAC-SHA-256.
const SIGNATURE_BYTES: usize = 32;
/// The maximum number of characters of a token. Every token of this service is shorter.
const MAX_PAGE_TOKEN_BYTES: usize = 1_024;

/// The page tokens of one listing.
#[derive(Debug)]
pub struct PageTokens {
    key: hmac::Key,
    /// What is signed before each cursor: the account, the rpc and the filters.
    listing: Vec<u8>,
    /// A page ends early once it has this many encoded bytes.
    page_bytes: usize,
}

impl PageTokens {
    /// `key` is the key of the database, which all its servers share. Equal filters have equal
    /// bytes.
    pub fn new(
        key: &[u8; 32],
        account: &AccountId,
        rpc: &str,
        filters: &[u8],
        page_bytes: usize,
    ) -> Self {
        let mut listing = Vec::new();
        for part in [account.as_str().as_bytes(), rpc.as_bytes(), filters] {
            listing.extend((part.len() as u64).to_be_bytes());
            listing.extend(part);
        }
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            listing,
            page_bytes,
        }
    }

    /// The token of the page after a cursor.
    pub fn sign(&self, cursor: &impl Serialize) -> String {
        // Never fails, because no cursor has a map.
        let mut token = serde_json::to_vec(cursor).unwrap_or_default();
        let signature = hmac::sign(&self.key, &self.signed(&token));
        token.extend(signature.as_ref());
        URL_SAFE_NO_PAD.encode(token)
    }

    /// The cursor of a token, if this listing has signed it.
    pub fn verify<C: DeserializeOwned>(&self, token: &str) -> Option<C> {
        if token.len() > MAX_PAGE_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let signed = bytes.len().checked_sub(SIGNATURE_BYTES)?;
        let (cursor, signature) = bytes.split_at_checked(signed)?;
        hmac::verify(&self.key, &self.signed(cursor), signature).ok()?;
        serde_json::from_slice(cursor).ok()
    }

    fn signed(&self, cursor: &[u8]) -> Vec<u8> {
        [&self.listing, cursor].concat()
    }

    /// The cursor after which a page starts, and the page size. `None` if the size is invalid. The
    /// cursor is `None` for the first page, and for an invalid token, which is reported as a
    /// violation.
    pub fn start<C: DeserializeOwned>(
        &self,
        page_size: i32,
        page_token: &str,
        violations: &mut Violations,
    ) -> Option<(Option<C>, PageSize)> {
        let size = field::page_size(page_size, violations);
        let mut after = None;
        if !page_token.is_empty() {
            after = self.verify(page_token);
            if after.is_none() {
                violations.push(status::page_token_violation());
            }
        }
        Some((after, size?))
    }

    /// Encodes as many items as fit into a page, but at least one, and creates the token of the
    /// next page. The token is empty on the last page.
    pub fn page<T, I: Message, C: Serialize>(
        &self,
        page: Page<T>,
        cursor: impl Fn(&T) -> C,
        encode: impl Fn(T) -> I,
    ) -> (Vec<I>, String) {
        self.rest_of_page(0, page, cursor, encode)
    }

    /// The same, but other fields already use `used` bytes of the page.
    pub fn rest_of_page<T, I: Message, C: Serialize>(
        &self,
        used: usize,
        page: Page<T>,
        cursor: impl Fn(&T) -> C,
        encode: impl Fn(T) -> I,
    ) -> (Vec<I>, String) {
        let Page { items, mut more } = page;
        let mut room = self.page_bytes.saturating_sub(MAX_PAGE_TOKEN_BYTES + used);
        let mut messages = Vec::with_capacity(items.len());
        let mut last = None;
        for item in items {
            let here = cursor(&item);
            let message = encode(item);
            let size = size_in_list(&message);
            if size > room && last.is_some() {
                more = true;
                break;
            }
            room = room.saturating_sub(size);
            messages.push(message);
            last = Some(here);
        }
        let token = last.filter(|_| more).map(|last| self.sign(&last));
        (messages, token.unwrap_or_default())
    }

    /// Encodes a page of a search. `next` is where the search stopped, which may be far after the
    /// last item. If not all items fit, the next page starts after the last item that fits.
    pub fn found<T, I: Message, C: Serialize>(
        &self,
        items: Vec<T>,
        next: Option<C>,
        cursor: impl Fn(&T) -> C,
        encode: impl Fn(T) -> I,
    ) -> (Vec<I>, String) {
        let (messages, mut token) = self.page(Page { items, more: false }, cursor, encode);
        if let Some(next) = next.filter(|_| token.is_empty()) {
            token = self.sign(&next);
        }
        (messages, token)
    }
}

/// The bytes of a list element with a field number below 16.
fn size_in_list(message: &impl Message) -> usize {
    let bytes = message.encoded_len();
    1 + prost::length_delimiter_len(bytes) + bytes
}

#[cfg(test)]
mod tests;
