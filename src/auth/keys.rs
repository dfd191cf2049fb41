//! The keys that tokens are checked with, wherever they come from.

mod file;
mod parse;
mod url;

use std::{fmt::Display, path::Path, sync::Arc, time::SystemTime};

use http::Uri;
use jsonwebtoken::{Algorithm, DecodingKey};

use self::{
    file::KeyFile,
    url::{FetchError, KeyUrl},
};
use crate::config::{KeySource, SigningSecret};

/// Why there are no keys at the start. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is {location:?}: {problem}: {reason}")]
pub struct KeyError {
    setting: &'static str,
    location: String,
    problem: String,
    reason: String,
    is_file: bool,
}

impl KeyError {
    fn of_file<E: Display>(
        setting: &'static str,
        path: &Path,
        expected: &'static str,
    ) -> impl FnOnce(E) -> Self {
        let location = path.display().to_string();
        move |reason| Self {
            setting,
            location,
            problem: must_be(expected),
            reason: reason.to_string(),
            is_file: true,
        }
    }

    fn of_url(url: &Uri, reason: &FetchError) -> Self {
        let problem = match reason {
            FetchError::Content(_) => must_be(KEY_SET),
            FetchError::Timeout
            | FetchError::Transport(_)
            | FetchError::Status(_)
            | FetchError::TooLarge => "it cannot be fetched".to_owned(),
        };
        Self {
            setting: "EXPERTISE_JWT_JWKS_URL",
            location: url.to_string(),
            problem,
            reason: reason.to_string(),
            is_file: false,
        }
    }

    /// Whether a setting names a file without keys. A URL may have keys later.
    pub fn is_wrong_setting(&self) -> bool {
        self.is_file
    }
}

fn must_be(expected: &str) -> String {
    format!("it must be {expected}")
}

/// A key and the only algorithm that it is for.
#[derive(Debug)]
pub(super) struct Key {
    pub algorithm: Algorithm,
    pub decoding: DecodingKey,
}

impl Key {
    fn secret(secret: &SigningSecret) -> Self {
        Self {
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.as_bytes()),
        }
    }
}

/// When the current keys were read, and from what.
#[derive(Clone, Copy, Debug)]
pub struct KeysRead {
    /// `secret`, `file` or `url`.
    pub source: &'static str,
    /// When a URL was last fetched, the keys of a file last changed, or a secret was read at
    /// the start.
    pub at: SystemTime,
}

/// The keys that were read from a source, one at least.
#[derive(Debug)]
enum KeySet {
    /// A single key, which serves any key id.
    One(Arc<Key>),
    /// Keys by their ids. Keys of different types may share an id (RFC 7517,
    /// section 4.5).
    Named(Vec<(Option<String>, Arc<Key>)>),
}

impl KeySet {
    /// Whether there is a key with this id, for any algorithm.
    fn has_id(&self, id: &str) -> bool {
        match self {
            Self::One(_) => true,
            Self::Named(keys) => keys.iter().any(|(known, _)| known.as_deref() == Some(id)),
        }
    }

    /// The key with this id and algorithm. A token without an id is accepted only when
    /// there is a single key.
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

/// The current keys.
#[derive(Debug)]
pub(super) struct Keys(KeyOrigin);

#[derive(Debug)]
enum KeyOrigin {
    Fixed(KeySet, SystemTime),
    File(KeyFile),
    Url(Arc<KeyUrl>),
}

impl Keys {
    /// Reads or fetches the keys; there must be one.
    pub async fn open(source: &KeySource) -> Result<Self, KeyError> {
        let origin = match source {
            KeySource::Secret(secret) => {
                let keys = KeySet::One(Arc::new(Key::secret(secret)));
                KeyOrigin::Fixed(keys, SystemTime::now())
            }
            KeySource::PublicKeyFile(path) => {
                let file = KeyFile::open(path.clone(), parse::public_key);
                let setting = "EXPERTISE_JWT_PUBLIC_KEY_FILE";
                let error = KeyError::of_file(setting, path, PUBLIC_KEY);
                KeyOrigin::File(file.map_err(error)?)
            }
            KeySource::KeySetFile(path) => {
                let file = KeyFile::open(path.clone(), parse::key_set);
                let error = KeyError::of_file("EXPERTISE_JWT_JWKS_FILE", path, KEY_SET);
                KeyOrigin::File(file.map_err(error)?)
            }
            KeySource::KeySetUrl(url) => {
                let keys = KeyUrl::open(url.clone()).await;
                KeyOrigin::Url(keys.map_err(|error| KeyError::of_url(url, &error))?)
            }
        };
        Ok(Self(origin))
    }

    /// When the current keys were read, and from what.
    pub fn keys_read(&self) -> KeysRead {
        let (source, at) = match &self.0 {
            KeyOrigin::Fixed(_, read) => ("secret", *read),
            KeyOrigin::File(file) => ("file", file.read_at()),
            KeyOrigin::Url(url) => ("url", url.fetched_at()),
        };
        KeysRead { source, at }
    }

    /// The current key with this id and algorithm.
    pub async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<Key>> {
        match &self.0 {
            KeyOrigin::Fixed(keys, _) => keys.find(id, algorithm),
            KeyOrigin::File(file) => file.current().find(id, algorithm),
            KeyOrigin::Url(url) => url.find(id, algorithm).await,
        }
    }
}

const PUBLIC_KEY: &str = "a public key in PEM: RSA of 2048 to 8192 bits, P-256 or Ed25519";
const KEY_SET: &str = "a JSON Web Key Set with public keys for RS256, ES256 or EdDSA";

#[cfg(test)]
mod tests;
