//! A key set behind a URL.

use std::{
    error::Error,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use http::{StatusCode, Uri, header::ACCEPT};
use jsonwebtoken::Algorithm;
use reqwest::{Client, redirect};
use rustls::crypto::ring;
use tokio::{sync::watch, time::Instant};
use tracing::{info, warn};

use super::{
    Key, KeySet,
    parse::{self, Malformed},
};

/// How long a fetch may take; shorter than [`PAUSE`], so that there is one at a
/// time.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The rest between fetches: whoever makes up key ids cannot make us flood the
/// issuer. The fetch at start does not count.
const PAUSE: Duration = Duration::from_secs(10);
/// The age from which keys are fetched again without being asked for, so that a
/// key that its issuer has withdrawn does not hold for ever.
const AGE: Duration = Duration::from_secs(10 * 60);
/// The largest key set, in bytes.
const MAX: usize = 1024 * 1024;

/// A key set behind a URL. A token with an unknown key id has it fetched again.
/// When that fails, the keys stay.
pub(super) struct Remote {
    url: Uri,
    client: Client,
    keys: RwLock<Arc<KeySet>>,
    last: Mutex<Fetch>,
}

/// The last fetch.
struct Fetch {
    begun: Instant,
    /// When the next one may begin.
    next: Instant,
    ended: watch::Receiver<bool>,
}

/// Why a key set was not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("no full answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("no answer: {0}")]
    Transport(String),
    #[error("it answers with {0}")]
    Status(StatusCode),
    #[error("its answer is larger than {MAX} bytes")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it has no key of these types")]
    Empty,
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

impl Remote {
    /// Fetches the keys for the first time; there must be one.
    pub async fn open(url: Uri) -> Result<Arc<Self>, FetchError> {
        let client = client(&url)?;
        let keys = fetch(&client, &url).await?;
        if keys.len() == 0 {
            return Err(FetchError::Empty);
        }
        let now = Instant::now();
        Ok(Arc::new(Self {
            url,
            client,
            keys: RwLock::new(Arc::new(keys)),
            last: Mutex::new(Fetch {
                begun: now,
                next: now,
                ended: watch::channel(true).1,
            }),
        }))
    }

    /// The key of this id and algorithm. For an unknown id it waits until the
    /// keys were fetched once more, if they may be.
    pub async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Arc<Key>> {
        if self.is_old() {
            drop(self.fetch_again());
        }
        let keys = self.current();
        if id.is_none_or(|id| keys.knows(id)) {
            return keys.find(id, algorithm);
        }
        let mut ended = self.fetch_again();
        // An error is a fetch that panicked: it has ended too.
        let _ = ended.wait_for(|ended| *ended).await;
        self.current().find(id, algorithm)
    }

    fn current(&self) -> Arc<KeySet> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&keys)
    }

    fn is_old(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.begun.elapsed() > AGE
    }

    /// Begins a fetch, unless the last one began just now; says when it has
    /// ended. It is a task of its own: a caller that goes away must not take the
    /// others' fetch with it.
    fn fetch_again(self: &Arc<Self>) -> watch::Receiver<bool> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < last.next {
            return last.ended.clone();
        }
        let (end, ended) = watch::channel(false);
        *last = Fetch {
            begun: now,
            next: now + PAUSE,
            ended: ended.clone(),
        };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            this.replace().await;
            end.send_replace(true);
        });
        ended
    }

    async fn replace(&self) {
        match fetch(&self.client, &self.url).await {
            Ok(keys) => {
                info!(url = %self.url, keys = keys.len(), "the keys were fetched");
                let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(keys);
            }
            Err(error) => warn!(url = %self.url, %error, "the keys stay: they were not fetched"),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.url).finish()
    }
}

/// A client that trusts the authorities that this machine trusts. Redirects are
/// not followed: keys come from where the settings say. A local issuer is reached
/// without a proxy.
fn client(url: &Uri) -> Result<Client, FetchError> {
    // Another provider that the process has chosen is as good.
    let _ = ring::default_provider().install_default();
    let mut builder = Client::builder()
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .user_agent(concat!("expertise/", env!("CARGO_PKG_VERSION")));
    if url.scheme_str() == Some("http") {
        // A machine without certificates of authorities can do without.
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
        if text.len() + chunk.len() > MAX {
            return Err(FetchError::TooLarge);
        }
        text.extend_from_slice(&chunk);
    }
    Ok(parse::key_set(&text)?)
}
