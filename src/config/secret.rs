//! Texts that are never shown.

use std::fmt;

use super::MASK;

/// A text that neither `Debug` nor any message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
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
    /// The size of an HS256 signature (RFC 7518, section 3.2).
    pub const MIN_BYTES: usize = 32;

    /// Accepts a text that is long enough.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() >= Self::MIN_BYTES).then(|| Self(Secret::new(text)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.expose().as_bytes()
    }
}
