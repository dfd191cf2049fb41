//! Reads the keys of a source.

use std::{
    error::Error,
    fs::File,
    io::{self, Read},
    path::Path,
    time::Duration,
};

use http::{StatusCode, Uri, header::ACCEPT};

use super::{
    KeySet,
    parse::{self, KeyFormatError},
};
use crate::{
    config::{KeySource, SigningSecret},
    files, http_client,
};

/// Shorter than the least time between two readings, so that there is one at a time.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1024 * 1024;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no full answer within {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("no answer: {0}")]
    Transport(String),
    #[error("it answers with {0}")]
    Status(StatusCode),
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Content(KeyFormatError),
}

impl From<reqwest::Error> for ReadError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        let error = error.without_url();
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let last = causes.last().map(ToString::to_string);
        Self::Transport(last.unwrap_or_else(|| error.to_string()))
    }
}

/// The keys of a source, one at least, and the text that they were read from.
pub(super) async fn keys(source: &KeySource) -> Result<(KeySet, Vec<u8>), ReadError> {
    let text = match source {
        KeySource::Secret(_) => Vec::new(),
        KeySource::SecretFile(path) => read_file(path, files::check_private)?,
        KeySource::PublicKeyFile(path) | KeySource::KeySetFile(path) => {
            read_file(path, |_| Ok(()))?
        }
        KeySource::KeySetUrl(url) => fetch(url).await?,
    };
    let keys = match source {
        KeySource::Secret(secret) => Ok(KeySet::from_secret(secret)),
        KeySource::SecretFile(_) => secret(&text).map(|secret| KeySet::from_secret(&secret)),
        KeySource::PublicKeyFile(_) => parse::public_key(&text),
        KeySource::KeySetFile(_) | KeySource::KeySetUrl(_) => parse::key_set(&text),
    };
    Ok((keys.map_err(ReadError::Content)?, text))
}

/// The secret in a file, which only its owner may access.
pub(super) fn secret_file(path: &Path) -> Result<SigningSecret, ReadError> {
    let text = read_file(path, files::check_private)?;
    secret(&text).map_err(ReadError::Content)
}

/// The secret of a text, without the end of its line.
fn secret(text: &[u8]) -> Result<SigningSecret, KeyFormatError> {
    let text = str::from_utf8(text).map_err(|_| "it is not text in UTF-8")?;
    let secret = SigningSecret::new(text.trim_end_matches(['\r', '\n']));
    secret.ok_or("its secret is shorter than 32 bytes")
}

fn read_file(path: &Path, check: fn(&File) -> io::Result<()>) -> Result<Vec<u8>, ReadError> {
    let mut text = Vec::new();
    let file = files::open(path)?;
    check(&file)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text)?;
    match text.len() > MAX_BYTES {
        true => Err(ReadError::TooLarge),
        false => Ok(text),
    }
}

async fn fetch(url: &Uri) -> Result<Vec<u8>, ReadError> {
    let url = url.to_string();
    let request = http_client::client(FETCH_TIMEOUT, &url)?.get(url);
    let request = request.header(ACCEPT, "application/jwk-set+json, application/json");
    let response = request.send().await?;
    match response.status() {
        StatusCode::OK => {
            let body = http_client::read(response, MAX_BYTES).await?;
            body.ok_or(ReadError::TooLarge)
        }
        status => Err(ReadError::Status(status)),
    }
}
