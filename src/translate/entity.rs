//! Character references of HTML, such as `&nbsp;` and `&#8209;`.

/// The longest reference looked at, in bytes; a longer one is plain text.
const LONGEST: usize = 40;

/// The names of U+00A0 to U+00FF, in that order.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg \
    macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 \
    iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave \
    Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc \
    Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc \
    euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave \
    uacute ucirc uuml yacute thorn yuml";

/// Other names that texts use; each is followed by its character.
const OTHERS: &str = "amp & lt < gt > quot \" apos ' OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ \
    ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ dagger † Dagger ‡ bull • \
    hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › euro € trade ™ larr ← uarr ↑ rarr → darr ↓ \
    harr ↔ minus − radic √ infin ∞ asymp ≈ ne ≠ le ≤ ge ≥ Omega Ω mu μ pi π";

/// Names of characters that cannot be seen.
const INVISIBLE: [(&str, char); 7] = [
    ("ensp", '\u{2002}'),
    ("emsp", '\u{2003}'),
    ("thinsp", '\u{2009}'),
    ("zwnj", '\u{200c}'),
    ("zwj", '\u{200d}'),
    ("lrm", '\u{200e}'),
    ("rlm", '\u{200f}'),
];

/// A character reference at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Its length with `&` and `;`, in bytes.
    pub len: usize,
    /// What it stands for; `None` when that is not known here.
    pub character: Option<char>,
}

/// Reads the reference that a text starts with.
pub(super) fn reference(text: &str) -> Option<Reference> {
    let rest = text.strip_prefix('&')?;
    let end = rest.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let inner = rest.get(..end)?;
    let character = match inner.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(inner)?,
    };
    Some(Reference {
        len: end + 2,
        character,
    })
}

/// `None` when the digits are none.
fn numbered(number: &str) -> Option<Option<char>> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok();
    // Browsers read the numbers of control characters in ways of their own.
    let character = code.and_then(char::from_u32);
    Some(character.filter(|character| !character.is_control()))
}

/// `None` when the text is no name at all.
fn named(name: &str) -> Option<Option<char>> {
    let shaped = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    shaped.then(|| {
        let latin = LATIN.split_ascii_whitespace().zip('\u{a0}'..='\u{ff}');
        let words = || OTHERS.split_ascii_whitespace();
        let others = words().step_by(2).zip(words().skip(1).step_by(2));
        let others = others.filter_map(|(name, text)| Some((name, text.chars().next()?)));
        latin
            .chain(others)
            .chain(INVISIBLE)
            .find_map(|(known, character)| (known == name).then_some(character))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn character(text: &str) -> Option<char> {
        reference(text).and_then(|reference| reference.character)
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
        ] {
            assert_eq!(character(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn unknown_references_are_seen_but_not_read() {
        for text in ["&check;", "&#150;", "&#xD800;", "&#99999999999;"] {
            let len = text.len();
            let character = None;
            assert_eq!(
                reference(text),
                Some(Reference { len, character }),
                "{text}"
            );
        }
    }

    #[test]
    fn other_ampersands_are_text() {
        for text in ["&", "& b;", "&;", "&#;", "&#x;", "AT&T;", "&nbsp", "&ä;"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
