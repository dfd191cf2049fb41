//! The keys that tokens are checked with. Those of a file or URL are read again at intervals, and
//! when a token has an unknown key id. When they cannot be read, or none is usable, the old ones
//! stay.

mod parse;
mod read;

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use jsonwebtoken::{Algorithm, DecodingKey};
use tracing::{info, warn};

use self::read::ReadError;
use crate::{
    config::{KeySource, SigningSecret},
    reload::{FILE_INTERVAL, Reloaded, Source},
};

/// How often a URL is fetched again, so that a key that the issuer has withdrawn is dropped.
const URL_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The least time between readings for unknown key ids: callers who make them up must not flood
/// the issuer.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// Why there are no keys at the start. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is {location:?}: {problem}: {reason}")]
pub struct KeyError {
    setting: &'static str,
    location: String,
    problem: String,
    reason: ReadError,
    is_file: bool,
}

impl KeyError {
    fn new(source: &KeySource, reason: ReadError) -> Self {
        let expected = match source {
            KeySource::Secret(_) | KeySource::SecretFile(_) => {
                "a file of mode 600 with a secret of 32 bytes at least"
            }
            KeySource::PublicKeyFile(_) => {
                "a public key in PEM: RSA of 2048 to 8192 bits, P-256 or Ed25519"
            }
            KeySource::KeySetFile(_) | KeySource::KeySetUrl(_) => {
                "a JSON Web Key Set with public keys for RS256, ES256 or EdDSA"
            }
        };
        let is_file = !matches!(source, KeySource::KeySetUrl(_));
        Self {
            setting: source.setting(),
            location: source.location(),
            problem: match is_file || matches!(reason, ReadError::Content(_)) {
                true => format!("it must be {expected}"),
                false => "it cannot be fetched".to_owned(),
            },
            reason,
            is_file,
        }
    }

    /// Whether a setting names a file without keys. A URL may have keys later.
    pub fn is_wrong_setting(&self) -> bool {
        self.is_file
    }
}

/// The secret in the file of `EXPERTISE_JWT_SECRET_FILE`.
pub(super) fn secret_of_file(path: &Path) -> Result<SigningSecret, KeyError> {
    read::secret_file(path)
        .map_err(|reason| KeyError::new(&KeySource::SecretFile(path.to_owned()), reason))
}

/// A key and the only algorithm that it is for.
#[derive(Debug)]
pub(super) struct Key {
    pub algorithm: Algorithm,
    pub decoding: DecodingKey,
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
    fn from_secret(secret: &SigningSecret) -> Self {
        Self::One(Arc::new(Key {
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.as_bytes()),
        }))
    }

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

/// The current keys. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keys(Arc<Reloaded<KeyReader>>);

/// Reads the keys of a source.
struct KeyReader(KeySource);

impl Source for KeyReader {
    type Value = KeySet;
    type Error = ReadError;

    async fn read(&self) -> Result<(KeySet, Vec<u8>), ReadError> {
        read::keys(&self.0).await
    }

    fn log_change(&self, keys: &KeySet) {
        info!(
            location = self.0.location(),
            keys = keys.len(),
            "the keys have changed"
        );
    }

    fn log_failure(&self, error: &ReadError) {
        warn!(location = self.0.location(), %error, "the keys were not read: the old ones stay");
    }
}

impl Keys {
    /// Reads or fetches the keys; there must be one.
    pub async fn open(source: &KeySource) -> Result<Self, KeyError> {
        let interval = match source {
            KeySource::Secret(_) => None,
            KeySource::SecretFile(_) | KeySource::PublicKeyFile(_) | KeySource::KeySetFile(_) => {
                Some(FILE_INTERVAL)
            }
            KeySource::KeySetUrl(_) => Some(URL_INTERVAL),
        };
        let opened = Reloaded::open(KeyReader(source.clone()), interval).await;
        opened
            .map(Self)
            .map_err(|reason| KeyError::new(source, reason))
    }

    /// When the current keys were read, and from what.
    pub fn keys_read(&self) -> KeysRead {
        let (source, at) = match &self.0.source().0 {
            KeySource::Secret(_) => ("secret", self.0.changed_at()),
            KeySource::SecretFile(_) | KeySource::PublicKeyFile(_) | KeySource::KeySetFile(_) => {
                ("file", self.0.changed_at())
            }
            KeySource::KeySetUrl(_) => ("url", self.0.read_at()),
        };
        KeysRead { source, at }
    }

    /// The key with this id and algorithm. An unknown id waits for a new reading, if one is due.
    pub async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<Key>> {
        if id.is_some_and(|id| !self.0.value().has_id(id)) {
            // In a task of its own: others wait for it, too, when this call is cancelled.
            let _ = tokio::spawn(Arc::clone(&self.0).read_if_due(MIN_INTERVAL)).await;
        }
        self.0.value().find(id, algorithm)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.source().0).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;

    #[test]
    fn debug_output_never_shows_a_secret() {
        let secret = SigningSecret::new("hush, these are 32 bytes or more").expect("32 bytes");
        let keys = KeySet::from_secret(&secret);
        for shown in [format!("{secret:?}"), format!("{keys:?}")] {
            assert!(
                !shown.contains("hush") && !shown.contains("104, 117"),
                "{shown}"
            );
        }
    }
}
