//! Pages as they are sent: cut by their encoded size.

use prost::Message;

use super::{
    page_token::{Listing, Mark, TOKEN_MAX},
    status,
};
use crate::domain::{
    page::{PAGE_BYTES, Page},
    violation::Violations,
};

/// The mark that a `page_token` carries: none on the first page.
pub fn after<M: Mark>(listing: &Listing<'_>, token: &str, faults: &mut Violations) -> Option<M> {
    if token.is_empty() {
        return None;
    }
    let mark = listing.open(token);
    if mark.is_none() {
        faults.push(status::page_token_violation());
    }
    mark
}

/// Encodes a page's items up to [`PAGE_BYTES`], one at least, and makes the
/// token of what comes after them; empty on the last page.
pub fn cut<T, I, M: Mark>(
    page: Page<T>,
    listing: &Listing<'_>,
    mark: impl Fn(&T) -> M,
    encode: impl Fn(T) -> I,
) -> (Vec<I>, String)
where
    I: Message,
{
    let Page { items, mut more } = page;
    let mut room = PAGE_BYTES - TOKEN_MAX;
    let mut messages = Vec::with_capacity(items.len());
    let mut last = None;
    for item in items {
        let here = mark(&item);
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
    let token = last.filter(|_| more).map(|last| listing.seal(&last));
    (messages, token.unwrap_or_default())
}

/// Bytes that an element takes in a list whose field number is below 16.
fn size_in_list(message: &impl Message) -> usize {
    let bytes = message.encoded_len();
    1 + prost::length_delimiter_len(bytes) + bytes
}
