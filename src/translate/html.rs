//! Translates the text in HTML without touching a tag.
//!
//! *Invariant:* whatever an engine answers, the markup of the translation is the markup
//! of the source, byte for byte and in the same order.

use std::{collections::HashMap, ops::Range};

use html5gum::{
    Span, State, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

use super::{
    character_reference,
    chunking::{TranslateFn, translate_parts},
};

/// A part of an HTML text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A tag, a comment, a whole element whose content is not prose, or a character
    /// reference that does not stand for one character.
    Markup(&'a str),
    /// Characters and known character references.
    Text(&'a str),
}

/// Elements whose content is not prose.
const UNTRANSLATED_ELEMENTS: [&str; 4] = ["script", "style", "code", "pre"];
/// Those in which every tag is text, except their own end tag.
const RAW_TEXT_ELEMENTS: [&str; 2] = ["script", "style"];

/// Splits an HTML text. Joined in their order, the pieces are the text.
pub fn split(html: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut pieces = PieceList {
        html,
        at: 0,
        pieces: Vec::new(),
    };
    // The untranslated element at this offset, and how many elements of its name are open.
    let mut untranslated: Option<(&str, u32)> = None;
    // The name in the last start tag, if it is that of an untranslated element.
    let mut start_tag = None;
    let mut tokenizer = Tokenizer::new_with_emitter(html, CallbackEmitter::new(token));
    while let Some(Ok(token)) = tokenizer.next() {
        match (token, &mut untranslated) {
            (Token::Start(name, start), untranslated) => {
                start_tag = name;
                if untranslated.is_none() {
                    pieces.push_markup(start);
                }
            }
            (Token::StartEnd(end), None) => match start_tag {
                None => pieces.push_markup(end),
                Some(name) => {
                    untranslated = Some((name, 1));
                    if RAW_TEXT_ELEMENTS.contains(&name) {
                        tokenizer.set_state(State::RawText);
                    }
                }
            },
            (Token::StartEnd(_), Some((name, depth))) if start_tag == Some(*name) => {
                *depth = depth.saturating_add(1);
            }
            (Token::End(Some(closed), end), Some((name, depth))) if closed == *name => {
                *depth -= 1;
                if *depth == 0 {
                    pieces.push_markup(end);
                    untranslated = None;
                }
            }
            (_, Some(_)) => {}
            (Token::End(_, end) | Token::Other(end), None) => pieces.push_markup(end),
            (Token::Text(text), None) => pieces.push_text(text),
        }
    }
    pieces.push_markup(html.len());
    pieces.pieces.into_iter()
}

/// What the tokenizer found, with its offset in the HTML: that of the beginning of a start
/// tag, and of the end of anything else. Tags have their name if it is in
/// [`UNTRANSLATED_ELEMENTS`].
enum Token {
    /// The beginning of a start tag.
    Start(Option<&'static str>, usize),
    /// The end of a start tag.
    StartEnd(usize),
    End(Option<&'static str>, usize),
    Text(Range<usize>),
    /// A comment and the like.
    Other(usize),
}

fn token(event: CallbackEvent<'_>, span: Span<usize>) -> Option<Token> {
    let untranslated = |name: &[u8]| {
        let mut elements = UNTRANSLATED_ELEMENTS.into_iter();
        elements.find(|element| element.as_bytes() == name)
    };
    match event {
        CallbackEvent::OpenStartTag { name } => Some(Token::Start(untranslated(name), span.start)),
        CallbackEvent::CloseStartTag { .. } => Some(Token::StartEnd(span.end)),
        CallbackEvent::EndTag { name } => Some(Token::End(untranslated(name), span.end)),
        CallbackEvent::String { .. } => Some(Token::Text(span.start..span.end)),
        CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } => {
            Some(Token::Other(span.end))
        }
        CallbackEvent::AttributeName { .. }
        | CallbackEvent::AttributeValue { .. }
        | CallbackEvent::Error(_) => None,
    }
}

struct PieceList<'a> {
    html: &'a str,
    /// Everything before this offset is in the pieces.
    at: usize,
    pieces: Vec<Piece<'a>>,
}

impl PieceList<'_> {
    /// Adds everything up to this offset as markup.
    fn push_markup(&mut self, end: usize) {
        if let Some(markup) = self.html.get(self.at..end).filter(|it| !it.is_empty()) {
            self.pieces.push(Piece::Markup(markup));
            self.at = end;
        }
    }

    /// Adds text, in which `</>` and unknown character references are markup.
    fn push_text(&mut self, range: Range<usize>) {
        self.push_markup(range.start);
        while let Some(rest) = self
            .html
            .get(self.at..range.end)
            .filter(|it| !it.is_empty())
        {
            let mut found = rest.match_indices(['<', '&']);
            let found = found.find_map(|(at, _)| Some((at, markup_len(rest.get(at..)?)?)));
            let (len, markup) = found.unwrap_or((rest.len(), 0));
            if let Some(text) = rest.get(..len).filter(|it| !it.is_empty()) {
                self.pieces.push(Piece::Text(text));
            }
            self.at += len;
            self.push_markup(self.at + markup);
        }
    }
}

/// The length of the `</>` or unknown character reference that a text begins with.
fn markup_len(text: &str) -> Option<usize> {
    const EMPTY_END_TAG: &str = "</>";
    if text.starts_with(EMPTY_END_TAG) {
        return Some(EMPTY_END_TAG.len());
    }
    let reference = character_reference::read(text)?;
    reference.character.is_none().then_some(reference.len)
}

/// Translates the text of an HTML text and keeps everything else.
pub(super) fn translate_html(html: &str, translate: &mut TranslateFn<'_>) -> String {
    let mut translated = String::with_capacity(html.len());
    for piece in split(html) {
        match piece {
            Piece::Markup(markup) => translated.push_str(markup),
            Piece::Text(text) => push_translation(&mut translated, text, translate),
        }
    }
    translated
}

fn push_translation(translated: &mut String, text: &str, translate: &mut TranslateFn<'_>) {
    let is_space = |(_, character): &(&str, char)| character.is_whitespace();
    let start: usize = characters(text)
        .take_while(is_space)
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
    push_escaped(translated, &translate_parts(&plain, translate), core);
    translated.extend(text.get(end..));
}

/// The characters of a text piece, each with its spelling in the HTML.
fn characters(text: &str) -> impl Iterator<Item = (&str, char)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let reference =
            character_reference::read(rest).and_then(|found| Some((found.len, found.character?)));
        let (len, character) = reference.unwrap_or((first.len_utf8(), first));
        let (raw, after) = rest.split_at_checked(len)?;
        rest = after;
        Some((raw, character))
    })
}

/// Writes plain text as HTML. A character that the source has is spelled as there, unless that
/// would make it markup; any other `<`, `>` and `&` is escaped.
fn push_escaped(out: &mut String, plain: &str, source: &str) {
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

#[cfg(test)]
mod tests;
