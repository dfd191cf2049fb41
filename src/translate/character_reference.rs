//! Character references of HTML, such as `&nbsp;` and `&#8209;`.

/// The longest reference, in bytes without `&`; a longer one is plain text.
const MAX_LEN: usize = 40;

/// A character reference at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharacterReference {
    /// Its length with `&` and `;`, in bytes.
    pub len: usize,
    /// The character that it stands for; `None` if it stands for none, for several, or for one
    /// that cannot be shown.
    pub character: Option<char>,
}

/// Reads the reference that a text starts with.
pub(super) fn read(text: &str) -> Option<CharacterReference> {
    let rest = text.strip_prefix('&')?;
    let end = rest.bytes().take(MAX_LEN).position(|byte| byte == b';')?;
    let inner = rest.get(..end)?;
    let is_reference = match inner.strip_prefix('#') {
        Some(number) => is_number(number),
        None => {
            inner.starts_with(|first: char| first.is_ascii_alphabetic())
                && inner.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    };
    let len = end + 2;
    let decoded = htmlize::unescape(text.get(..len)?);
    let mut decoded = decoded.chars();
    let character = match (decoded.next(), decoded.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    };
    is_reference.then_some(CharacterReference {
        len,
        // What stands for no character is read as U+FFFD.
        character: character.filter(|it| !it.is_control() && *it != char::REPLACEMENT_CHARACTER),
    })
}

fn is_number(number: &str) -> bool {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn character(text: &str) -> Option<char> {
        read(text).and_then(|reference| reference.character)
    }

    #[test]
    fn names_and_numbers_are_read() {
        for (text, expected) in [
            ("&nbsp;x", '\u{a0}'),
            ("&shy;", '\u{ad}'),
            ("&yuml;", 'ÿ'),
            ("&uuml;", 'ü'),
            ("&amp;", '&'),
            ("&pi;", 'π'),
            ("&rarr;", '→'),
            ("&zwj;", '\u{200d}'),
            ("&#8209;", '\u{2011}'),
            ("&#x2011;", '\u{2011}'),
            ("&check;", '✓'),
            ("&#150;", '–'),
        ] {
            assert_eq!(character(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn references_to_no_single_character_are_seen_but_not_read() {
        for text in [
            "&nosuchname;",
            "&NotEqualTilde;",
            "&#129;",
            "&#xD800;",
            "&#99999999999;",
        ] {
            let len = text.len();
            let character = None;
            assert_eq!(
                read(text),
                Some(CharacterReference { len, character }),
                "{text}"
            );
        }
    }

    #[test]
    fn other_ampersands_are_text() {
        for text in ["&", "& b;", "&;", "&#;", "&#x;", "AT&T;", "&nbsp", "&ä;"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
