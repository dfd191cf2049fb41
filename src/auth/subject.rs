//! Who calls, for the log.

use std::fmt;

/// The person or process behind a call, as a log line may name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject(String);

impl Subject {
    /// The longest subject, in bytes: it stands in every log line.
    pub const MAX: usize = 256;

    /// Accepts a text without control characters that is neither empty nor too
    /// long.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=Self::MAX).contains(&text.len()) && !text.contains(char::is_control);
        valid.then(|| Self(text.to_owned()))
    }

    /// The subject as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
