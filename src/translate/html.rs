//! Translates the text in HTML without touching a tag.
//!
//! *Invariant:* the markup of the translation is the markup of the source, byte for byte and in the
//! same order, whatever an engine returns.

use std::{collections::HashMap, ops::Range};

use html5gum::{
    Span, State, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

use super::parts::{TranslateFn, translate_parts};

/// Elements whose content is not prose.
const UNTRANSLATED_ELEMENTS: [&str; 4] = ["script", "style", "code", "pre"];
/// Elements in which every tag except their own end tag is text.
const RAW_TEXT_ELEMENTS: [&str; 2] = ["script", "style"];
/// The maximum length of a character reference, in bytes without `&`. A longer one is plain text.
const MAX_REFERENCE_BYTES: usize = 40;

/// Translates the text of an HTML text and keeps everything else.
pub(super) fn translate_html(html: &str, translate: &mut TranslateFn<'_>) -> String {
    let mut translated = String::with_capacity(html.len());
    let mut at = 0;
    for text in texts(html) {
        translated.extend(html.get(at..text.start));
        at = text.end;
        push_translation(
            &mut translated,
            html.get(text).unwrap_or_default(),
            translate,
        );
    }
    translated.extend(html.get(at..));
    translated
}

/// The tokens. A tag has a name only if it is in [`UNTRANSLATED_ELEMENTS`].
enum Token {
    /// The beginning of a start tag.
    Start(Option<&'static str>),
    /// The end of a start tag.
    StartEnd,
    End(Option<&'static str>),
    Text(Range<usize>),
}

fn token(event: CallbackEvent<'_>, span: Span<usize>) -> Option<Token> {
    let untranslated = |name: &[u8]| {
        let mut elements = UNTRANSLATED_ELEMENTS.into_iter();
        elements.find(|element| element.as_bytes() == name)
    };
    match event {
        CallbackEvent::OpenStartTag { name } => Some(Token::Start(untranslated(name))),
        CallbackEvent::CloseStartTag { .. } => Some(Token::StartEnd),
        CallbackEvent::EndTag { name } => Some(Token::End(untranslated(name))),
        CallbackEvent::String { .. } => Some(Token::Text(span.start..span.end)),
        CallbackEvent::Comment { .. }
        | CallbackEvent::Doctype { .. }
        | CallbackEvent::AttributeName { .. }
        | CallbackEvent::AttributeValue { .. }
        | CallbackEvent::Error(_) => None,
    }
}

/// The prose of an HTML text: characters and known character references. Everything else is markup.
fn texts(html: &str) -> Vec<Range<usize>> {
    let mut texts = Vec::new();
    // The name of the untranslated element, and how many elements of that name are open.
    let mut untranslated: Option<(&str, u32)> = None;
    let mut start_tag = None;
    let mut tokenizer = Tokenizer::new_with_emitter(html, CallbackEmitter::new(token));
    while let Some(Ok(token)) = tokenizer.next() {
        match (token, &mut untranslated) {
            (Token::Start(name), _) => start_tag = name,
            (Token::StartEnd, None) => {
                untranslated = start_tag.map(|name| (name, 1));
                if start_tag.is_some_and(|name| RAW_TEXT_ELEMENTS.contains(&name)) {
                    tokenizer.set_state(State::RawText);
                }
            }
            (Token::StartEnd, Some((name, depth))) if start_tag == Some(*name) => {
                *depth = depth.saturating_add(1);
            }
            (Token::End(Some(closed)), Some((name, depth))) if closed == *name => {
                *depth -= 1;
                if *depth == 0 {
                    untranslated = None;
                }
            }
            (Token::Text(text), None) => add_texts(html, text, &mut texts),
            _ => {}
        }
    }
    texts
}

/// Adds a text without its `</>` and unknown character references, which are markup.
fn add_texts(html: &str, Range { mut start, end }: Range<usize>, texts: &mut Vec<Range<usize>>) {
    while let Some(rest) = html.get(start..end).filter(|it| !it.is_empty()) {
        let mut found = rest.match_indices(['<', '&']);
        let found = found.find_map(|(at, _)| Some((at, markup_len(rest.get(at..)?)?)));
        let (len, markup) = found.unwrap_or((rest.len(), 0));
        if len > 0 {
            texts.push(start..start + len);
        }
        start += len + markup;
    }
}

/// The length of the `</>` or unknown character reference that a text begins with.
fn markup_len(text: &str) -> Option<usize> {
    const EMPTY_END_TAG: &str = "</>";
    if text.starts_with(EMPTY_END_TAG) {
        return Some(EMPTY_END_TAG.len());
    }
    let (len, character) = reference(text)?;
    character.is_none().then_some(len)
}

/// The character reference at the beginning of a text, such as `&nbsp;` or `&#8209;`: its length
/// and its character. `None` if it stands for no character, for several, or for one that cannot be
/// displayed.
fn reference(text: &str) -> Option<(usize, Option<char>)> {
    let bytes = text.strip_prefix('&')?.bytes().take(MAX_REFERENCE_BYTES);
    let end = bytes.into_iter().position(|byte| byte == b';')?;
    let whole = text.get(..end + 2)?;
    let inner = whole.get(1..=end)?;
    let is_number = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    let is_reference = match inner.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => is_number(digits, 16),
            None => is_number(number, 10),
        },
        None => {
            inner.starts_with(|first: char| first.is_ascii_alphabetic())
                && inner.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    };
    let decoded = htmlize::unescape(whole);
    let mut decoded = decoded.chars();
    let single = decoded.next().filter(|_| decoded.next().is_none());
    // References to no character are read as U+FFFD.
    let shown = single.filter(|it| !it.is_control() && *it != char::REPLACEMENT_CHARACTER);
    is_reference.then_some((whole.len(), shown))
}

fn push_translation(translated: &mut String, text: &str, translate: &mut TranslateFn<'_>) {
    let characters = characters(text);
    let is_space = |(_, character): &(&str, char)| character.is_whitespace();
    let is_word = |it: &(&str, char)| !is_space(it);
    let start = characters.iter().take_while(|it| is_space(it)).count();
    let end = characters.iter().rposition(is_word).map_or(0, |at| at + 1);
    let core = characters.get(start..end).unwrap_or_default();
    if !core.iter().any(|(_, character)| character.is_alphabetic()) {
        translated.push_str(text);
        return;
    }
    let raw = |(raw, _): &(&str, char)| (*raw).to_owned();
    let plain: String = core.iter().map(|(_, character)| character).collect();
    translated.extend(characters.iter().take(start).map(raw));
    push_escaped(translated, &translate_parts(&plain, translate), core);
    translated.extend(characters.iter().skip(end).map(raw));
}

/// The characters of a text, each with its spelling in the HTML.
fn characters(text: &str) -> Vec<(&str, char)> {
    let mut rest = text;
    let characters = std::iter::from_fn(|| {
        let first = rest.chars().next()?;
        let reference = reference(rest).and_then(|(len, character)| Some((len, character?)));
        let (len, character) = reference.unwrap_or((first.len_utf8(), first));
        let (raw, after) = rest.split_at_checked(len)?;
        rest = after;
        Some((raw, character))
    });
    characters.collect()
}

/// Writes plain text as HTML. Characters of the source keep their spelling, unless that would make
/// them markup. Any other `<`, `>` and `&` is escaped.
fn push_escaped(out: &mut String, plain: &str, source: &[(&str, char)]) {
    let mut spellings = HashMap::new();
    for (raw, character) in source {
        if raw.len() != character.len_utf8() || matches!(character, '<' | '>' | '&') {
            spellings.entry(*character).or_insert(*raw);
        }
    }
    let mut rest = plain.chars();
    while let Some(character) = rest.next() {
        let next = rest.clone().next();
        match (spellings.get(&character), character) {
            (Some(&"<"), _) if next.is_some_and(|next| !starts_markup(next)) => out.push('<'),
            (Some(&"&"), _) if next.is_none_or(|next| !starts_reference(next)) => out.push('&'),
            (Some(&"<") | None, '<') => out.push_str("&lt;"),
            (Some(&"&") | None, '&') => out.push_str("&amp;"),
            (None, '>') => out.push_str("&gt;"),
            (Some(spelling), _) => out.push_str(spelling),
            (None, _) => out.push(character),
        }
    }
}

fn starts_markup(after_bracket: char) -> bool {
    after_bracket.is_ascii_alphabetic() || matches!(after_bracket, '/' | '!' | '?')
}

fn starts_reference(after_ampersand: char) -> bool {
    after_ampersand.is_ascii_alphanumeric() || after_ampersand == '#'
}

#[cfg(test)]
mod tests;
