//! Digests.

use ring::digest::{Context, SHA256};

pub struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Sha256 {
    pub fn update(&mut self, part: impl AsRef<[u8]>) {
        self.0.update(part.as_ref());
    }

    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        self.update(part);
        self
    }

    /// The first `BYTES` of the 32 bytes of the digest.
    pub fn finish<const BYTES: usize>(self) -> [u8; BYTES] {
        const { assert!(BYTES <= 32) };
        let mut first = [0; BYTES];
        for (byte, hashed) in first.iter_mut().zip(self.0.finish().as_ref()) {
            *byte = *hashed;
        }
        first
    }
}
