//! The keys that tokens are checked with. Those of a file or URL are read again at intervals, and
//! when a token has an unknown key id. When they cannot be read, or none is usable, the old ones
//! stay.

mod parse;

use std::{
    error::Error,
    fmt, io,
    io::Read,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{StatusCode, Uri, header::ACCEPT};
use jsonwebtoken::{Algorithm, DecodingKey};
use tracing::{info, warn};

use self::parse::KeyFormatError;
use crate::{
    config::{KeySource, Secret},
    files, http_client,
    reload::{FILE_INTERVAL, Reloaded, Source},
};

/// How often a URL is fetched again, so that a key that the issuer has withdrawn is dropped.
const URL_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The least time between readings for unknown key ids: callers who make them up must not flood
/// the issuer.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// Shorter than the least time between two readings, so that there is one at a time.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1024 * 1024;

/// Why there are no keys at the start. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    message: String,
    is_wrong_setting: bool,
}

impl KeyError {
    fn new(source: &KeySource, reason: &ReadError) -> Self {
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
        let problem = match (source, reason) {
            (KeySource::KeySetUrl(_), ReadError::Unread(_)) => "it cannot be fetched".to_owned(),
            _ => format!("it must be {expected}"),
        };
        let (setting, location) = (source.setting(), source.location());
        Self {
            message: format!("{setting} is {location:?}: {problem}: {reason}"),
            is_wrong_setting: !matches!(source, KeySource::KeySetUrl(_)),
        }
    }

    /// Whether a setting names a file without keys. A URL may have keys later.
    pub fn is_wrong_setting(&self) -> bool {
        self.is_wrong_setting
    }
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// The file or URL cannot be read.
    #[error("{0}")]
    Unread(String),
    #[error("{0}")]
    Content(KeyFormatError),
}

/// The secret in the file of `EXPERTISE_JWT_SECRET_FILE`.
pub(super) fn secret_of_file(path: &Path) -> Result<Secret, KeyError> {
    read_file(path, true)
        .map_err(ReadError::Unread)
        .and_then(|text| parse::secret(&text).map_err(ReadError::Content))
        .map_err(|reason| KeyError::new(&KeySource::SecretFile(path.to_owned()), &reason))
}

/// A key and the only algorithm that it is for.
#[derive(Debug)]
pub(super) struct Key {
    pub algorithm: Algorithm,
    pub decoding: DecodingKey,
}

impl Key {
    fn from_secret(secret: &Secret) -> Self {
        Self {
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.expose().as_bytes()),
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
    Named(NamedKeys),
}

/// Keys with their ids. Keys of different types may share an id (RFC 7517, section 4.5).
type NamedKeys = Vec<(Option<String>, Arc<Key>)>;

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

/// The current keys. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keys(Arc<Reloaded<KeyReader>>);

/// Reads the keys of a source.
struct KeyReader(KeySource);

impl Source for KeyReader {
    type Value = KeySet;
    type Error = ReadError;

    async fn read(&self) -> Result<(KeySet, Vec<u8>), ReadError> {
        let text = match &self.0 {
            KeySource::Secret(_) => Ok(Vec::new()),
            KeySource::SecretFile(path) => read_file(path, true),
            KeySource::PublicKeyFile(path) | KeySource::KeySetFile(path) => read_file(path, false),
            KeySource::KeySetUrl(url) => fetch(url).await,
        };
        let text = text.map_err(ReadError::Unread)?;
        let one = |key| KeySet::One(Arc::new(key));
        let keys = match &self.0 {
            KeySource::Secret(secret) => Ok(one(Key::from_secret(secret))),
            KeySource::SecretFile(_) => parse::secret(&text).map(|it| one(Key::from_secret(&it))),
            KeySource::PublicKeyFile(_) => parse::public_key(&text).map(one),
            KeySource::KeySetFile(_) | KeySource::KeySetUrl(_) => {
                parse::key_set(&text).map(KeySet::Named)
            }
        };
        Ok((keys.map_err(ReadError::Content)?, text))
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

fn read_file(path: &Path, is_secret: bool) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let file = files::open(path)?;
        if is_secret {
            files::check_private(&file)?;
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| error.to_string())?;
    limited(Some(text).filter(|text| text.len() <= MAX_BYTES))
}

fn limited(text: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
    text.ok_or_else(|| format!("it is larger than {MAX_BYTES} bytes"))
}

async fn fetch(url: &Uri) -> Result<Vec<u8>, String> {
    let url = url.to_string();
    let answer = async {
        let request = http_client::client(FETCH_TIMEOUT, &url)?.get(&url);
        let request = request.header(ACCEPT, "application/jwk-set+json, application/json");
        let response = request.send().await?;
        match response.status() {
            StatusCode::OK => Ok(limited(http_client::read(response, MAX_BYTES).await?)),
            status => Ok(Err(format!("it answers with {status}"))),
        }
    };
    answer.await.unwrap_or_else(|error: reqwest::Error| {
        if error.is_timeout() {
            let limit = FETCH_TIMEOUT.as_secs();
            return Err(format!("no full answer within {limit} s"));
        }
        let error = error.without_url();
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let last = causes.last().map(ToString::to_string);
        let reason = last.unwrap_or_else(|| error.to_string());
        Err(format!("no answer: {reason}"))
    })
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
            .map_err(|reason| KeyError::new(source, &reason))
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
        let secret = Secret::for_signing("hush, these are 32 bytes or more").expect("32 bytes");
        let shown = format!("{secret:?} {:?}", Key::from_secret(&secret));
        assert!(
            !shown.contains("hush") && !shown.contains("104, 117"),
            "{shown}"
        );
    }
}
