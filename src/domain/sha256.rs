//! Digests.

use ring::digest::{Context, SHA256};

/// A SHA-256 of parts, one after the other.
pub struct Sha256(Context);

impl Default for Sha256 {
    /// That of nothing yet.
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Sha256 {
    /// Adds a part.
    pub fn update(&mut self, part: impl AsRef<[u8]>) {
        self.0.update(part.as_ref());
    }

    /// With one more part.
    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        self.update(part);
        self
    }

    /// The first bytes of the digest, of 32.
    pub fn finish<const BYTES: usize>(self) -> [u8; BYTES] {
        const { assert!(BYTES <= 32) };
        let mut first = [0; BYTES];
        for (byte, hashed) in first.iter_mut().zip(self.0.finish().as_ref()) {
            *byte = *hashed;
        }
        first
    }
}
