//! The keys that verify tokens. A file or URL is read again at intervals, and when a token has an
//! unknown key id. If it cannot be read or has no usable key, the old keys stay in use.

mod parse;

use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{StatusCode, Uri, header::ACCEPT};
use jsonwebtoken::{Algorithm, DecodingKey};

use crate::{
    config::{KeySource, Secret},
    files, http_client,
    reload::{FILE_INTERVAL, Reloaded, Source},
};

/// How often a URL is fetched again, to drop keys that the issuer has withdrawn.
const URL_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The minimum time between readings for unknown key ids. Callers who invent key ids must not flood
/// the issuer.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// Shorter than [`MIN_INTERVAL`], so only one reading runs at a time.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 1024 * 1024;

/// Why there are no keys to verify or sign tokens. The text is one line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    message: String,
    is_wrong_setting: bool,
}

impl KeyError {
    pub(super) fn new(source: &KeySource, problem: &str) -> Self {
        let (setting, location) = (source.setting(), source.location());
        Self {
            message: format!("{setting} is {location:?}: {problem}"),
            is_wrong_setting: !matches!(source, KeySource::KeySetUrl(_)),
        }
    }

    /// Whether a setting names a file without keys. A URL may have keys later.
    pub fn is_wrong_setting(&self) -> bool {
        self.is_wrong_setting
    }
}

/// A key and its only algorithm.
pub(crate) struct Key {
    /// Keys of different types may share an id (RFC 7517, section 4.5).
    id: Option<String>,
    pub algorithm: Algorithm,
    pub decoding: DecodingKey,
}

impl Source for KeySource {
    /// At least one key.
    type Value = Vec<Arc<Key>>;
    type Error = KeyError;
    const WHAT: &'static str = "the keys";

    async fn read(&self) -> Result<(Self::Value, Vec<u8>), KeyError> {
        let text = match self {
            Self::Secret(secret) => Ok(secret.expose().into()),
            Self::SecretFile(path) => read_secret(path),
            Self::PublicKeyFile(path) | Self::KeySetFile(path) | Self::PrivateKeyFile(path) => {
                read_file(path, |_| Ok(()))
            }
            Self::KeySetUrl(url) => {
                let fetched = fetch(url).await;
                Ok(fetched.map_err(|reason| {
                    KeyError::new(self, &format!("it cannot be fetched: {reason}"))
                })?)
            }
        };
        let read = text.and_then(|text| {
            let keys = match self {
                Self::Secret(_) | Self::SecretFile(_) => vec![parse::secret_key(&text)],
                Self::PublicKeyFile(_) | Self::PrivateKeyFile(_) => vec![parse::public_key(&text)?],
                Self::KeySetFile(_) | Self::KeySetUrl(_) => parse::key_set(&text)?,
            };
            Ok((keys, text))
        });
        read.map_err(|reason| KeyError::new(self, &reason))
    }
}

/// Reads the secret in a file, without a trailing newline.
pub(super) fn read_secret(path: &Path) -> Result<Vec<u8>, String> {
    let text = read_file(path, files::check_private)?;
    let text = String::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    let secret = Secret::for_signing(text.trim_end_matches(['\r', '\n']));
    let secret = secret.map_err(|_| "its secret is shorter than 32 bytes")?;
    Ok(secret.expose().into())
}

fn read_file(path: &Path, check: fn(&std::fs::File) -> io::Result<()>) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let file = files::open(path)?;
        check(&file)?;
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
    let response = async {
        let request = http_client::client(FETCH_TIMEOUT, &url)?.get(&url);
        let request = request.header(ACCEPT, "application/jwk-set+json, application/json");
        let response = request.send().await?;
        match response.status() {
            StatusCode::OK => Ok(limited(http_client::read(response, MAX_BYTES).await?)),
            status => Ok(Err(format!("it responds with {status}"))),
        }
    };
    response.await.unwrap_or_else(|error: reqwest::Error| {
        let error = anyhow::Error::from(error.without_url());
        Err(format!("no complete response: {error:#}"))
    })
}

/// The current keys.
pub(super) type Keys = Reloaded<KeySource>;

impl Keys {
    /// Reads or fetches the keys, and fails without a usable one.
    pub async fn read_or_fetch(source: &KeySource) -> Result<Arc<Self>, KeyError> {
        let interval = match source {
            KeySource::Secret(_) => None,
            KeySource::KeySetUrl(_) => Some(URL_INTERVAL),
            _ => Some(FILE_INTERVAL),
        };
        Self::open(source.clone(), interval).await
    }

    /// What the keys were read from (`secret`, `file` or `url`), and the time: when a URL was last
    /// fetched, when the keys of a file last changed, or when a secret was read at the start.
    pub fn source_and_time(&self) -> (&'static str, SystemTime) {
        let current = self.current();
        match self.source() {
            KeySource::Secret(_) => ("secret", current.changed_at),
            KeySource::KeySetUrl(_) => ("url", current.read_at),
            _ => ("file", current.changed_at),
        }
    }

    /// The key with this id and algorithm. A secret, and the key of a PEM file, serve any id. A token
    /// without an id is accepted only when there is a single key. An unknown id waits for a new
    /// reading, if one is due.
    pub async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Arc<Key>> {
        let is_set = matches!(
            self.source(),
            KeySource::KeySetFile(_) | KeySource::KeySetUrl(_)
        );
        let id = id.filter(|_| is_set);
        if id.is_some() && !self.value().iter().any(|key| key.id.as_deref() == id) {
            // In a spawned task, because other calls still wait for it if this call is canceled.
            let _ = tokio::spawn(Arc::clone(self).read_if_due(MIN_INTERVAL)).await;
        }
        let keys = self.value();
        let is_named = |key: &Key| match id {
            Some(_) => key.id.as_deref() == id,
            None => keys.len() == 1,
        };
        let mut keys = keys.iter();
        let key = keys.find(|key| is_named(key) && key.algorithm == algorithm);
        key.cloned()
    }
}
