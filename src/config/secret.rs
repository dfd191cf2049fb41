//! Texts that are never shown.

use std::fmt;

use super::MASK;

/// A text that neither `Debug` nor any message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A secret that signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningSecret(Secret);

impl SigningSecret {
    /// The shortest secret in bytes: the size of an HS256 signature (RFC 7518, section
    /// 3.2).
    pub const MIN: usize = 32;

    /// Accepts a text that is long enough.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() >= Self::MIN).then(|| Self(Secret::new(text)))
    }

    /// The bytes that sign.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.expose().as_bytes()
    }
}
