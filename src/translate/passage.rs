//! Plain text on its way to an engine and back: without the white space around
//! it, and in parts of a size that engines take.

/// The most code points of one part.
pub(super) const LONGEST_PART: usize = 4_000;

/// Says a text in another language.
pub(super) type Voice<'a> = dyn FnMut(&str) -> String + 'a;

/// Translates a text part by part. White space around each part stays, and a
/// part without a letter stays as it is.
pub(super) fn translate(text: &str, voice: &mut Voice<'_>) -> String {
    let mut translated = String::with_capacity(text.len());
    for part in parts(text, LONGEST_PART) {
        let inner = part.trim();
        if inner.contains(char::is_alphabetic) {
            let start = part.len() - part.trim_start().len();
            translated.extend(part.get(..start));
            translated.push_str(&voice(inner));
            translated.extend(part.get(start + inner.len()..));
        } else {
            translated.push_str(part);
        }
    }
    translated
}

/// Cuts a text into parts of at most `longest` code points: after the last
/// sentence that fits, else after the last white space, else anywhere.
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
        let mut said = Vec::new();
        let mut voice = |text: &str| {
            said.push(text.to_owned());
            text.to_uppercase()
        };
        assert_eq!(translate("\u{a0} a b\n", &mut voice), "\u{a0} A B\n");
        assert_eq!(
            translate(" 12:30 \u{2192} ", &mut voice),
            " 12:30 \u{2192} "
        );
        assert_eq!(said, ["a b"]);
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_each_fits(text in "[a-c.?!\n …。ä]{0,200}", longest in 1..40_usize) {
            let parts = parts(&text, longest);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| part.chars().count() <= longest));
        }

        #[test]
        fn an_unchanging_voice_changes_nothing(text in "\\PC{0,200}") {
            prop_assert_eq!(translate(&text, &mut str::to_owned), text);
        }
    }
}
