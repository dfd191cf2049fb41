//! The keys that tokens are checked with, wherever they come from.

mod file;
mod parse;
mod remote;

use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey};

use self::{file::KeyFile, remote::Remote};
use crate::config::{KeySource, SigningSecret};

/// Why there are no keys to start with. A display is one line.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is {place:?}: it must be {expected}: {reason}")]
pub struct KeyError {
    setting: &'static str,
    place: String,
    expected: &'static str,
    reason: String,
}

/// A key and the one algorithm that it is for.
#[derive(Debug)]
pub(super) struct Key {
    algorithm: Algorithm,
    decoding: DecodingKey,
}

impl Key {
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }

    fn secret(secret: &SigningSecret) -> Self {
        Self {
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.as_bytes()),
        }
    }
}

/// The keys of a moment.
#[derive(Debug)]
enum KeySet {
    /// The one key there is, whatever key id a token names.
    One(Arc<Key>),
    /// Keys by their ids. Ids need not differ between types of keys (RFC 7517,
    /// section 4.5).
    Named(Vec<(Option<String>, Arc<Key>)>),
}

impl KeySet {
    /// Whether there is a key of this id, of any algorithm.
    fn knows(&self, id: &str) -> bool {
        match self {
            Self::One(_) => true,
            Self::Named(keys) => keys.iter().any(|(known, _)| known.as_deref() == Some(id)),
        }
    }

    /// The key of this id and algorithm. Without an id there must be one key in
    /// all: it is not tried out which of several fits.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<Key>> {
        let key = match (self, id) {
            (Self::One(key), _) => Some(key),
            (Self::Named(keys), Some(id)) => keys
                .iter()
                .find(|(known, key)| known.as_deref() == Some(id) && key.algorithm == algorithm)
                .map(|(_, key)| key),
            (Self::Named(keys), None) => match keys.as_slice() {
                [(_, key)] => Some(key),
                _ => None,
            },
        };
        key.filter(|key| key.algorithm == algorithm).cloned()
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Named(keys) => keys.len(),
        }
    }
}

/// The keys that hold now.
#[derive(Debug)]
pub(super) struct Keys(Place);

#[derive(Debug)]
enum Place {
    Fixed(KeySet),
    File(KeyFile),
    Remote(Arc<Remote>),
}

impl Keys {
    /// Reads the keys for the first time.
    pub async fn open(source: &KeySource) -> Result<Self, KeyError> {
        let place = match source {
            KeySource::Secret(secret) => {
                Ok(Place::Fixed(KeySet::One(Arc::new(Key::secret(secret)))))
            }
            KeySource::PublicKeyFile(path) => {
                let opened = KeyFile::open(path.clone(), parse::public_key);
                opened.map(Place::File).map_err(|error| KeyError {
                    setting: "EXPERTISE_JWT_PUBLIC_KEY_FILE",
                    place: path.display().to_string(),
                    expected: "a public key in PEM: RSA of 2048 to 8192 bits, P-256 or Ed25519",
                    reason: error.to_string(),
                })
            }
            KeySource::KeySetFile(path) => {
                let opened = KeyFile::open(path.clone(), parse::key_set);
                opened.map(Place::File).map_err(|error| KeyError {
                    setting: "EXPERTISE_JWT_JWKS_FILE",
                    place: path.display().to_string(),
                    expected: KEY_SET,
                    reason: error.to_string(),
                })
            }
            KeySource::KeySetUrl(url) => {
                let opened = Remote::open(url.clone()).await;
                opened.map(Place::Remote).map_err(|error| KeyError {
                    setting: "EXPERTISE_JWT_JWKS_URL",
                    place: url.to_string(),
                    expected: KEY_SET,
                    reason: error.to_string(),
                })
            }
        };
        place.map(Self)
    }

    /// The key of this id and algorithm, as of now.
    pub async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<Key>> {
        match &self.0 {
            Place::Fixed(keys) => keys.find(id, algorithm),
            Place::File(file) => file.current().find(id, algorithm),
            Place::Remote(remote) => remote.find(id, algorithm).await,
        }
    }
}

const KEY_SET: &str = "a JSON Web Key Set with public keys for RS256, ES256 or EdDSA";

#[cfg(test)]
mod tests;
