//! Random choices, and what they do to texts and bytes.

use std::iter;

/// A stream of numbers that follows from its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

/// Characters that syntax, databases or terminals treat in a way of their own.
const CHARACTERS: [char; 24] = [
    '\0', '\u{1}', '\t', '\n', ' ', '\u{a0}', '\u{200b}', '"', '\'', '\\', ',', '.', '=', '!', '<',
    '>', '`', '*', '-', '0', 'ü', 'ı', '\u{301}', '🔧',
];

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("a limit");
        usize::try_from(self.next() % limit).expect("below the limit")
    }

    /// Whether one of `times` times has come.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The text after a few edits; `words` are pieces worth inserting.
    pub fn text(&mut self, text: &str, words: &[&str]) -> String {
        let mut text: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len() + 1);
            let end = (at + self.below(8)).min(text.len());
            match self.below(6) {
                0 => drop(text.drain(at..end)),
                1 => text.insert(at, *self.pick(&CHARACTERS)),
                2 if at < text.len() => text[at] = *self.pick(&CHARACTERS),
                3 => {
                    let piece = text[at..end].to_vec();
                    text.splice(at..at, piece);
                }
                4 => {
                    let times = [1, 2, 30, 400][self.below(4)];
                    let piece = self.pick(&CHARACTERS);
                    text.splice(at..at, iter::repeat_n(*piece, times));
                }
                _ => {
                    let word: Vec<char> = self.pick(words).chars().collect();
                    text.splice(at..at, word);
                }
            }
        }
        text.into_iter().collect()
    }

    /// Bytes after a few edits.
    pub fn bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(8)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = *self.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                2 => bytes.truncate(at),
                3 => drop(bytes.drain(at..end)),
                4 => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.insert(at, self.next().to_le_bytes()[0]),
            }
        }
    }
}
