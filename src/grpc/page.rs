//! Pages of a listing: the token that one starts from, and the cut by encoded size.

use prost::Message;

use super::{
    decode::field,
    page_token::{MAX_PAGE_TOKEN_BYTES, PageCursor, PageTokens},
    status,
};
use crate::{
    domain::{
        page::{Page, PageSize},
        sha256::Sha256,
        violation::Violations,
    },
    messages::{message_json, wire},
};

/// The filters that a page token belongs to: a digest of the rest of the request, which may have a
/// large document.
pub fn filters(rpc: &str, request: &impl Message) -> Vec<u8> {
    let descriptor = message_json::descriptor(&format!("{rpc}Request"));
    let bytes = request.encode_to_vec();
    let fields = wire::fields(&bytes).unwrap_or_default().into_iter();
    let filters = fields.filter(|sent| {
        let field = descriptor.as_ref().and_then(|it| it.get_field(sent.number));
        // A page token stays valid with another known fingerprint.
        field.is_some_and(|field| {
            !matches!(
                field.name(),
                "page_size" | "page_token" | "known_fingerprint"
            )
        })
    });
    let filters: Vec<&[u8]> = filters.map(|filter| filter.whole).collect();
    match filters.as_slice() {
        [] => Vec::new(),
        filters => {
            let digest: [u8; 32] = filters
                .iter()
                .fold(Sha256::default(), Sha256::with)
                .finish();
            digest.to_vec()
        }
    }
}

/// The cursor after which a page starts, and the size of the page. `None` if the size is
/// invalid. The cursor is `None` for the first page and for an invalid token, which is a
/// violation.
pub fn start<C: PageCursor>(
    tokens: &PageTokens<'_>,
    page_size: i32,
    page_token: &str,
    violations: &mut Violations,
) -> Option<(Option<C>, PageSize)> {
    let size = field::page_size(page_size, violations);
    let mut after = None;
    if !page_token.is_empty() {
        after = tokens.verify(page_token);
        if after.is_none() {
            violations.push(status::page_token_violation());
        }
    }
    Some((after, size?))
}

/// Encodes the items of a page up to [`PageTokens::page_bytes`], at least one, and makes the
/// token of the next page; empty on the last page.
pub fn encode<T, I, C: PageCursor>(
    page: Page<T>,
    tokens: &PageTokens<'_>,
    cursor: impl Fn(&T) -> C,
    encode: impl Fn(T) -> I,
) -> (Vec<I>, String)
where
    I: Message,
{
    encode_beside(0, page, tokens, cursor, encode)
}

/// The same beside `used` bytes of other fields.
pub fn encode_beside<T, I, C: PageCursor>(
    used: usize,
    page: Page<T>,
    tokens: &PageTokens<'_>,
    cursor: impl Fn(&T) -> C,
    encode: impl Fn(T) -> I,
) -> (Vec<I>, String)
where
    I: Message,
{
    let Page { items, mut more } = page;
    let mut room = tokens
        .page_bytes
        .saturating_sub(MAX_PAGE_TOKEN_BYTES + used);
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
    let token = last.filter(|_| more).map(|last| tokens.sign(&last));
    (messages, token.unwrap_or_default())
}

/// Encodes a page of a search. `next` is where the search stopped, which may be far after the
/// last item; if not all items fit, the next page starts after the last one that does.
pub fn encode_found<T, I, C: PageCursor>(
    items: Vec<T>,
    next: Option<C>,
    tokens: &PageTokens<'_>,
    cursor: impl Fn(&T) -> C,
    encode_item: impl Fn(T) -> I,
) -> (Vec<I>, String)
where
    I: Message,
{
    let page = Page { items, more: false };
    let (messages, token_of_last) = encode(page, tokens, cursor, encode_item);
    let next_page_token = match token_of_last.is_empty() {
        true => next.map_or_else(String::new, |next| tokens.sign(&next)),
        false => token_of_last,
    };
    (messages, next_page_token)
}

/// Bytes of an element in a list whose field number is below 16.
fn size_in_list(message: &impl Message) -> usize {
    let bytes = message.encoded_len();
    1 + prost::length_delimiter_len(bytes) + bytes
}
