//! Cuts plain text into parts of a size that engines take. White space around a part is
//! kept, and not sent.

/// The most code points of a request, and so of a part.
pub(super) const MAX_REQUEST_CHARS: usize = 4_000;

/// Translates a text.
pub(super) type TranslateFn<'a> = dyn FnMut(&str) -> String + 'a;

/// Translates a text part by part. White space around each part stays, and a
/// part without a letter stays as it is.
pub(super) fn translate_parts(text: &str, translate: &mut TranslateFn<'_>) -> String {
    let mut translated = String::with_capacity(text.len());
    for part in parts(text, MAX_REQUEST_CHARS) {
        let inner = part.trim();
        if inner.contains(char::is_alphabetic) {
            let start = part.len() - part.trim_start().len();
            translated.extend(part.get(..start));
            translated.push_str(&translate(inner));
            translated.extend(part.get(start + inner.len()..));
        } else {
            translated.push_str(part);
        }
    }
    translated
}

/// Cuts a text into parts of at most `longest` code points: after the last sentence that
/// fits, else after the last white space, else anywhere.
fn parts(text: &str, longest: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((window, _)) = rest.char_indices().nth(longest) {
        let (part, after) = rest.split_at(cut(rest, window));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Where to cut a text of which `window` bytes are allowed.
fn cut(text: &str, window: usize) -> usize {
    let (mut sentence, mut word) = (None, None);
    let mut characters = text
        .char_indices()
        .take_while(|(at, _)| *at < window)
        .peekable();
    while let Some((at, character)) = characters.next() {
        let end = at + character.len_utf8();
        let spaced = characters
            .peek()
            .is_some_and(|(_, next)| next.is_whitespace());
        match character {
            '\n' | '。' | '！' | '？' => sentence = Some(end),
            '.' | '!' | '?' | '…' if spaced => sentence = Some(end),
            space if space.is_whitespace() => word = Some(end),
            _ => {}
        }
    }
    sentence.or(word).unwrap_or(window)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_end_with_a_sentence_or_a_word() {
        assert_eq!(parts("One. Two three", 9), ["One.", " Two ", "three"]);
        assert_eq!(parts("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(parts("version 1.5 is", 12), ["version 1.5 ", "is"]);
        assert_eq!(parts("一。二三四", 3), ["一。", "二三四"]);
        assert_eq!(parts("", 4), [""]);
    }

    #[test]
    fn white_space_and_texts_without_letters_stay() {
        let mut translated = Vec::new();
        let mut upper = |text: &str| {
            translated.push(text.to_owned());
            text.to_uppercase()
        };
        assert_eq!(translate_parts("\u{a0} a b\n", &mut upper), "\u{a0} A B\n");
        assert_eq!(
            translate_parts(" 12:30 \u{2192} ", &mut upper),
            " 12:30 \u{2192} "
        );
        assert_eq!(translated, ["a b"]);
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_each_fits(text in "[a-c.?!\n …。ä]{0,200}", longest in 1..40_usize) {
            let parts = parts(&text, longest);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| part.chars().count() <= longest));
        }

        #[test]
        fn an_unchanging_translation_changes_nothing(text in "\\PC{0,200}") {
            prop_assert_eq!(translate_parts(&text, &mut str::to_owned), text);
        }
    }
}
