//! Splits requests into parts: texts for an engine, and translations for the server.

/// The maximum number of code points in a request to an engine, and therefore in a part of a text.
pub(super) const MAX_REQUEST_CHARS: usize = 4_000;

/// Translates a text.
pub(super) type TranslateFn<'a> = dyn FnMut(&str) -> String + 'a;

/// Splits a list into chunks with limits on the number of items and the size. A larger item gets
/// its own chunk.
pub(super) fn chunks_within<T>(
    items: &[T],
    max_count: usize,
    max_size: usize,
    size_of: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &[T]> {
    let (mut count, mut size) = (1, items.first().map_or(0, &size_of));
    items.chunk_by(move |_, next| {
        let next = size_of(next);
        let fits = count < max_count && size + next <= max_size;
        (count, size) = match fits {
            true => (count + 1, size + next),
            false => (1, next),
        };
        fits
    })
}

/// Translates a text part by part. White space around each part is kept, and parts without letters
/// are not translated.
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

/// Splits a text into parts of at most `longest` code points: after the last sentence that fits,
/// else after the last white space, else anywhere.
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

/// Where to split a text so that the first part has at most `window` bytes.
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
    fn chunks_keep_to_count_and_size() {
        for (sizes, expected) in [
            (&[][..], &[][..]),
            (&[1, 1, 1], &[2, 1]),
            (&[5, 5, 1], &[2, 1]),
            (&[1, 11, 1], &[1, 1, 1]),
        ] {
            let chunks = chunks_within(sizes, 2, 10, |size: &usize| *size);
            let counts: Vec<usize> = chunks.map(<[usize]>::len).collect();
            assert_eq!(counts, expected, "{sizes:?}");
        }
    }

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
        let mut upper = |text: &str| text.to_uppercase();
        for (text, translated) in [("\u{a0} a b\n", "\u{a0} A B\n"), (" 12:30 → ", " 12:30 → ")]
        {
            assert_eq!(translate_parts(text, &mut upper), translated);
        }
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_each_fits(text in "[a-c.?!\n …。ä]{0,200}", longest in 1..40_usize) {
            let parts = parts(&text, longest);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| part.chars().count() <= longest));
        }
    }
}
