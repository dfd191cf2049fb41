//! Random edits of texts and bytes.

use std::iter;

use crate::kit::rng::Rng;

/// Characters that syntax, databases or terminals treat in a way of their own.
const CHARACTERS: [char; 24] = [
    '\0', '\u{1}', '\t', '\n', ' ', '\u{a0}', '\u{200b}', '"', '\'', '\\', ',', '.', '=', '!', '<',
    '>', '`', '*', '-', '0', 'ü', 'ı', '\u{301}', '🔧',
];

/// The text after a few edits, which may insert some of the words.
pub fn mutate_text(rng: &mut Rng, text: &str, words: &[&str]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=rng.below(4) {
        let at = rng.below(text.len() + 1);
        let end = (at + rng.below(8)).min(text.len());
        match rng.below(6) {
            0 => drop(text.drain(at..end)),
            1 => text.insert(at, *rng.pick(&CHARACTERS)),
            2 if at < text.len() => text[at] = *rng.pick(&CHARACTERS),
            3 => {
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            4 => {
                let times = [1, 2, 30, 400][rng.below(4)];
                let piece = rng.pick(&CHARACTERS);
                text.splice(at..at, iter::repeat_n(*piece, times));
            }
            _ => {
                let word: Vec<char> = rng.pick(words).chars().collect();
                text.splice(at..at, word);
            }
        }
    }
    text.into_iter().collect()
}

/// Edits bytes in a few places.
pub fn mutate_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + rng.below(8)).min(bytes.len());
        match rng.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.insert(at, rng.next().to_le_bytes()[0]),
        }
    }
}
