//! The keys that tokens are checked with. Those of a file or URL are read again at intervals, and
//! when a token has an unknown key id. When they cannot be read, or none is usable, the old ones
//! stay.

mod parse;
mod read;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, Weak},
    time::{Duration, SystemTime},
};

use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use self::read::ReadError;
use crate::config::{KeySource, SigningSecret};

/// How often a file is read again, so that a new one counts within ten seconds.
const FILE_INTERVAL: Duration = Duration::from_secs(5);
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
        const KEY: &str = "a public key in PEM: RSA of 2048 to 8192 bits, P-256 or Ed25519";
        const KEY_SET: &str = "a JSON Web Key Set with public keys for RS256, ES256 or EdDSA";
        let (setting, expected) = match source {
            KeySource::Secret(_) => ("EXPERTISE_JWT_SECRET", "a secret"),
            KeySource::PublicKeyFile(_) => ("EXPERTISE_JWT_PUBLIC_KEY_FILE", KEY),
            KeySource::KeySetFile(_) => ("EXPERTISE_JWT_JWKS_FILE", KEY_SET),
            KeySource::KeySetUrl(_) => ("EXPERTISE_JWT_JWKS_URL", KEY_SET),
        };
        let is_file = !matches!(source, KeySource::KeySetUrl(_));
        let problem = match is_file || matches!(reason, ReadError::Content(_)) {
            true => format!("it must be {expected}"),
            false => "it cannot be fetched".to_owned(),
        };
        Self {
            setting,
            location: location(source),
            problem,
            reason,
            is_file,
        }
    }

    /// Whether a setting names a file without keys. A URL may have keys later.
    pub fn is_wrong_setting(&self) -> bool {
        self.is_file
    }
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
pub(super) struct Keys {
    source: KeySource,
    current: RwLock<CurrentKeys>,
    /// When the last reading began; locked while one goes on.
    last_reading: Mutex<Option<Instant>>,
}

struct CurrentKeys {
    keys: Arc<KeySet>,
    /// What the keys were read from.
    text: Vec<u8>,
    at: SystemTime,
    /// Why they could not be read again.
    problem: Option<String>,
}

impl Keys {
    /// Reads or fetches the keys; there must be one.
    pub async fn open(source: &KeySource) -> Result<Arc<Self>, KeyError> {
        let error = |reason| KeyError::new(source, reason);
        let (keys, text) = read::keys(source).await.map_err(error)?;
        let keys = Arc::new(Self {
            source: source.clone(),
            current: RwLock::new(CurrentKeys {
                keys: Arc::new(keys),
                text,
                at: SystemTime::now(),
                problem: None,
            }),
            last_reading: Mutex::new(None),
        });
        let interval = match source {
            KeySource::Secret(_) => return Ok(keys),
            KeySource::PublicKeyFile(_) | KeySource::KeySetFile(_) => FILE_INTERVAL,
            KeySource::KeySetUrl(_) => URL_INTERVAL,
        };
        tokio::spawn(Self::read_at_intervals(Arc::downgrade(&keys), interval));
        Ok(keys)
    }

    /// When the current keys were read, and from what.
    pub fn keys_read(&self) -> KeysRead {
        let source = match self.source {
            KeySource::Secret(_) => "secret",
            KeySource::PublicKeyFile(_) | KeySource::KeySetFile(_) => "file",
            KeySource::KeySetUrl(_) => "url",
        };
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let at = current.at;
        KeysRead { source, at }
    }

    /// The key with this id and algorithm. An unknown id waits for a new reading, if one is due.
    pub async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Arc<Key>> {
        if id.is_some_and(|id| !self.current().has_id(id)) {
            // In a task of its own: others wait for it, too, when this call is cancelled.
            let _ = tokio::spawn(Arc::clone(self).read_if_due()).await;
        }
        self.current().find(id, algorithm)
    }

    fn current(&self) -> Arc<KeySet> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.keys)
    }

    /// Reads the keys again until they are dropped.
    async fn read_at_intervals(keys: Weak<Self>, interval: Duration) {
        loop {
            sleep(interval).await;
            match keys.upgrade() {
                Some(keys) => keys.read(&mut *keys.last_reading.lock().await).await,
                None => return,
            }
        }
    }

    async fn read_if_due(self: Arc<Self>) {
        let mut last = self.last_reading.lock().await;
        if last.is_none_or(|last| last.elapsed() >= MIN_INTERVAL) {
            self.read(&mut last).await;
        }
    }

    async fn read(&self, last_reading: &mut Option<Instant>) {
        *last_reading = Some(Instant::now());
        let read = read::keys(&self.source).await;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let location = location(&self.source);
        match read {
            Ok((keys, text)) => {
                let is_new = text != current.text;
                if is_new {
                    info!(%location, keys = keys.len(), "the keys have changed");
                }
                // The time of a file is that of its last change.
                if is_new || matches!(self.source, KeySource::KeySetUrl(_)) {
                    current.at = SystemTime::now();
                    (current.keys, current.text) = (Arc::new(keys), text);
                }
                current.problem = None;
            }
            Err(error) => {
                let problem = Some(error.to_string());
                if current.problem != problem {
                    warn!(%location, %error, "the keys were not read: the old ones stay");
                    current.problem = problem;
                }
            }
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.source).finish()
    }
}

/// The file or URL of the keys.
fn location(source: &KeySource) -> String {
    match source {
        KeySource::Secret(_) => String::new(),
        KeySource::PublicKeyFile(path) | KeySource::KeySetFile(path) => path.display().to_string(),
        KeySource::KeySetUrl(url) => url.to_string(),
    }
}

#[cfg(test)]
mod tests;
