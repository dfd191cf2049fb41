//! Keys behind a URL, fetched again at intervals, and when a token has an unknown key id.

use std::{
    error::Error,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
    time::{Duration, SystemTime},
};

use http::{StatusCode, Uri, header::ACCEPT};
use jsonwebtoken::Algorithm;
use reqwest::{Client, redirect};
use rustls::crypto::ring;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use super::{
    Key, KeySet,
    parse::{self, KeyFormatError},
};

/// Shorter than [`MIN_FETCH_INTERVAL`], so that there is one fetch at a time.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The least time between fetches after the first: callers who make up key ids must not
/// flood the issuer.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(10);
/// How often keys are fetched again even without an unknown id, so that a key that the
/// issuer has withdrawn is dropped.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10 * 60);
const MAX_KEY_SET_BYTES: usize = 1024 * 1024;

/// Keys behind a URL. When a fetch fails or returns no usable key, the old keys stay.
pub(super) struct KeyUrl {
    url: Uri,
    client: Client,
    current: RwLock<FetchedKeys>,
    last_fetch: Mutex<LastFetch>,
}

/// The keys of the last fetch that succeeded.
struct FetchedKeys {
    keys: Arc<KeySet>,
    at: SystemTime,
}

impl From<KeySet> for FetchedKeys {
    fn from(keys: KeySet) -> Self {
        Self {
            keys: Arc::new(keys),
            at: SystemTime::now(),
        }
    }
}

struct LastFetch {
    /// When the next one may start.
    next: Instant,
    has_ended: watch::Receiver<bool>,
}

/// Why a key set was not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no full answer within {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("no answer: {0}")]
    Transport(String),
    #[error("it answers with {0}")]
    Status(StatusCode),
    #[error("its answer is larger than {MAX_KEY_SET_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Content(KeyFormatError),
}

impl From<reqwest::Error> for FetchError {
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

impl KeyUrl {
    /// Fetches the keys; there must be one.
    pub async fn open(url: Uri) -> Result<Arc<Self>, FetchError> {
        let client = client(&url)?;
        let keys = fetch(&client, &url).await?;
        let now = Instant::now();
        let keys = Arc::new(Self {
            url,
            client,
            current: RwLock::new(keys.into()),
            last_fetch: Mutex::new(LastFetch {
                next: now,
                has_ended: watch::channel(true).1,
            }),
        });
        tokio::spawn(Self::refresh(Arc::downgrade(&keys)));
        Ok(keys)
    }

    /// The key with this id and algorithm. An unknown id waits for a new fetch, if one is
    /// due.
    pub async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Arc<Key>> {
        let keys = self.current();
        if id.is_none_or(|id| keys.has_id(id)) {
            return keys.find(id, algorithm);
        }
        let mut has_ended = self.start_fetch();
        // A fetch that panicked has ended too.
        let _ = has_ended.wait_for(|ended| *ended).await;
        self.current().find(id, algorithm)
    }

    fn current(&self) -> Arc<KeySet> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.keys)
    }

    /// When the current keys were fetched.
    pub fn fetched_at(&self) -> SystemTime {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.at
    }

    /// Fetches the keys at intervals until they are dropped.
    async fn refresh(keys: Weak<Self>) {
        loop {
            sleep(REFRESH_INTERVAL).await;
            match keys.upgrade() {
                Some(keys) => drop(keys.start_fetch()),
                None => return,
            }
        }
    }

    /// Starts a fetch in a task of its own, unless the last one is too recent. What is returned
    /// becomes true when that fetch, or the last one, has ended: several callers may wait for it.
    fn start_fetch(self: &Arc<Self>) -> watch::Receiver<bool> {
        let last = self.last_fetch.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < last.next {
            return last.has_ended.clone();
        }
        let (ended, has_ended) = watch::channel(false);
        *last = LastFetch {
            next: now + MIN_FETCH_INTERVAL,
            has_ended: has_ended.clone(),
        };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            this.replace_keys().await;
            ended.send_replace(true);
        });
        has_ended
    }

    async fn replace_keys(&self) {
        match fetch(&self.client, &self.url).await {
            Ok(keys) => {
                info!(url = %self.url, keys = keys.len(), "the keys were fetched");
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = keys.into();
            }
            Err(error) => {
                warn!(url = %self.url, %error, "the keys were not fetched: the old ones stay")
            }
        }
    }
}

impl fmt::Debug for KeyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyUrl").field(&self.url).finish()
    }
}

/// A client that uses the system's certificate store. It follows no redirects, as keys
/// must come from the URL in the settings, and uses no proxy for a local issuer.
fn client(url: &Uri) -> Result<Client, FetchError> {
    // An error means that the process has a provider already.
    let _ = ring::default_provider().install_default();
    let mut builder = Client::builder()
        .timeout(FETCH_TIMEOUT)
        .redirect(redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .user_agent(concat!("expertise/", env!("CARGO_PKG_VERSION")));
    if url.scheme_str() == Some("http") {
        // Without TLS, the client must also start where there is no certificate store.
        builder = builder.tls_certs_only([]);
    }
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    if host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback()) {
        builder = builder.no_proxy();
    }
    Ok(builder.build()?)
}

async fn fetch(client: &Client, url: &Uri) -> Result<KeySet, FetchError> {
    let request = client.get(url.to_string());
    let request = request.header(ACCEPT, "application/jwk-set+json, application/json");
    let mut response = request.send().await?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if text.len() + chunk.len() > MAX_KEY_SET_BYTES {
            return Err(FetchError::TooLarge);
        }
        text.extend_from_slice(&chunk);
    }
    parse::key_set(&text).map_err(FetchError::Content)
}
