//! Text among markup: what an engine may see, and how its words get back
//! without touching a tag.
//!
//! *Invariant:* whatever an engine answers, the markup of the translation is
//! the markup of the source, byte for byte and in the same order.

use std::collections::HashMap;

use super::{
    entity,
    passage::{self, Voice},
};

/// Elements whose content is not prose.
const KEPT: [&str; 4] = ["script", "style", "code", "pre"];
/// Of those, the ones in which no tag but their own end means anything.
const RAW: [&str; 2] = ["script", "style"];

/// A part of an HTML text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A tag, a comment, a whole element whose content is not prose, or a
    /// character reference that is not known here.
    Markup(&'a str),
    /// Characters and known character references.
    Text(&'a str),
}

/// Splits an HTML text; the pieces in their order are the text.
pub fn split(html: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = html;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let markup = markup_len(rest);
        let (piece, after) = rest.split_at(markup.unwrap_or_else(|| text_len(rest)));
        rest = after;
        Some(match markup {
            Some(_) => Piece::Markup(piece),
            None => Piece::Text(piece),
        })
    })
}

/// Translates the text of an HTML text and keeps everything else.
pub(super) fn translate(html: &str, voice: &mut Voice<'_>) -> String {
    let mut translated = String::with_capacity(html.len());
    for piece in split(html) {
        match piece {
            Piece::Markup(markup) => translated.push_str(markup),
            Piece::Text(text) => push_translation(&mut translated, text, voice),
        }
    }
    translated
}

fn push_translation(translated: &mut String, text: &str, voice: &mut Voice<'_>) {
    let spaces = |(_, character): &(&str, char)| character.is_whitespace();
    let start: usize = characters(text)
        .take_while(spaces)
        .map(|(raw, _)| raw.len())
        .sum();
    let (mut at, mut end) = (0, 0);
    for (raw, character) in characters(text) {
        at += raw.len();
        if !character.is_whitespace() {
            end = at;
        }
    }
    let core = text.get(start..end).unwrap_or_default();
    if !characters(core).any(|(_, character)| character.is_alphabetic()) {
        translated.push_str(text);
        return;
    }
    let plain: String = characters(core).map(|(_, character)| character).collect();
    translated.extend(text.get(..start));
    spell(translated, &passage::translate(&plain, voice), core);
    translated.extend(text.get(end..));
}

/// The characters of a text piece, each with its spelling.
fn characters(text: &str) -> impl Iterator<Item = (&str, char)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let reference =
            entity::reference(rest).and_then(|found| Some((found.len, found.character?)));
        let (len, character) = reference.unwrap_or((first.len_utf8(), first));
        let (raw, after) = rest.split_at_checked(len)?;
        rest = after;
        Some((raw, character))
    })
}

/// Writes plain text as HTML: in the source's spelling where the source has the
/// character, escaped where it would else be markup.
fn spell(out: &mut String, plain: &str, source: &str) {
    let mut spellings = HashMap::new();
    for (raw, character) in characters(source) {
        if raw.len() != character.len_utf8() || matches!(character, '<' | '>' | '&') {
            spellings.entry(character).or_insert(raw);
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

/// The length of the text before the next markup.
fn text_len(html: &str) -> usize {
    html.match_indices(['<', '&'])
        .find(|(at, _)| html.get(*at..).and_then(markup_len).is_some())
        .map_or(html.len(), |(at, _)| at)
}

/// The length of the markup that a text starts with.
fn markup_len(html: &str) -> Option<usize> {
    if let Some(reference) = entity::reference(html) {
        return reference.character.is_none().then_some(reference.len);
    }
    let len = token_len(html)?;
    let kept = KEPT.into_iter().find(|name| is_tag(html, "<", name));
    Some(match kept {
        Some(name) if RAW.contains(&name) => raw_element_len(html, name, len),
        Some(name) => element_len(html, name, len),
        None => len,
    })
}

/// The length of the tag or comment that a text starts with; without an end it
/// reaches to the end of the text, as for a browser.
fn token_len(html: &str) -> Option<usize> {
    let after = html.strip_prefix('<')?;
    let mut characters = after.chars();
    match (characters.next()?, characters.next()) {
        ('!', Some('-')) if after.starts_with("!--") => Some(comment_len(html)),
        ('/', Some(name)) if name.is_ascii_alphabetic() => Some(tag_len(html)),
        ('/', None) => None,
        ('!' | '?' | '/', _) => Some(html.find('>').map_or(html.len(), |at| at + 1)),
        (name, _) if name.is_ascii_alphabetic() => Some(tag_len(html)),
        _ => None,
    }
}

fn comment_len(html: &str) -> usize {
    for short in ["<!-->", "<!--->"] {
        if html.starts_with(short) {
            return short.len();
        }
    }
    let inner = html.get(4..).unwrap_or_default();
    let ends = ["-->", "--!>"].map(|end| inner.find(end).map(|at| 4 + at + end.len()));
    ends.into_iter().flatten().min().unwrap_or(html.len())
}

/// Where in a tag a byte stands.
#[derive(Clone, Copy)]
enum Place {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted(u8),
}

/// A `>` within a quoted attribute value does not end its tag.
fn tag_len(html: &str) -> usize {
    let mut place = Place::TagName;
    for (at, byte) in html.bytes().enumerate().skip(2) {
        let space = byte.is_ascii_whitespace();
        place = match (place, byte) {
            (Place::Quoted(quote), _) if byte == quote => Place::BeforeName,
            (Place::Quoted(_), _) => place,
            (_, b'>') => return at + 1,
            (Place::TagName, b'/') => Place::BeforeName,
            (Place::TagName, _) if !space => place,
            (Place::TagName | Place::Value, _) if space => Place::BeforeName,
            (Place::BeforeName, b'/') => place,
            (Place::BeforeName | Place::BeforeValue | Place::AfterName, _) if space => place,
            (Place::Name, _) if space => Place::AfterName,
            (Place::Name | Place::AfterName, b'/') => Place::BeforeName,
            (Place::Name | Place::AfterName, b'=') => Place::BeforeValue,
            (Place::BeforeValue, b'"' | b'\'') => Place::Quoted(byte),
            (Place::BeforeValue | Place::Value, _) => Place::Value,
            (Place::BeforeName | Place::Name | Place::AfterName | Place::TagName, _) => Place::Name,
        };
    }
    html.len()
}

/// Whether a text starts with a tag: `start` is `<` or `</`.
fn is_tag(html: &str, start: &str, name: &str) -> bool {
    let Some(after) = html.strip_prefix(start) else {
        return false;
    };
    let found = after.get(..name.len()).unwrap_or_default();
    let end = after.as_bytes().get(name.len());
    found.eq_ignore_ascii_case(name)
        && end.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))
}

fn raw_element_len(html: &str, name: &str, start: usize) -> usize {
    let inner = html.get(start..).unwrap_or_default();
    inner
        .match_indices("</")
        .filter_map(|(at, _)| Some((at, inner.get(at..)?)))
        .find(|(_, tag)| is_tag(tag, "</", name))
        .map_or(html.len(), |(at, tag)| start + at + tag_len(tag))
}

/// Elements of the same name may nest.
fn element_len(html: &str, name: &str, start: usize) -> usize {
    let (mut at, mut depth) = (start, 1_u32);
    while let Some(found) = html.get(at..).and_then(|rest| rest.find('<')) {
        at += found;
        let token = html.get(at..).unwrap_or_default();
        if is_tag(token, "<", name) {
            depth = depth.saturating_add(1);
        } else if is_tag(token, "</", name) {
            depth -= 1;
        }
        at += token_len(token).unwrap_or(1);
        if depth == 0 {
            return at;
        }
    }
    html.len()
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
