//! A running server as the commands of this binary call it: the way there, in
//! whose name, and what is repeated when it fails.

mod refusal;
mod trouble;

use std::{
    error::Error,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use rustls::crypto::ring;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_types::StatusExt;

pub use self::refusal::{Complaint, Refusal};
use crate::{
    config::{Connection, Credentials, RetrySettings, Trust},
    domain::caller::Scope,
    pem::{self, PemError},
};

/// The largest message taken, in bytes: a body may be of any size that the server
/// is set to.
pub(crate) const MESSAGE_MAX: usize = 2_147_483_647;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Beyond what the server itself grants a call by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a server is asked whether it is still there, and how long it may take to
/// say so: one that has stopped is not waited for as long as one that works.
const ALIVE: Duration = Duration::from_secs(10);
/// The longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Why a server cannot be called at all. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum UnusableService {
    /// The address is none.
    #[error("the server's address cannot be used: {0}")]
    Address(#[from] tonic::transport::Error),
    /// A credential holds what metadata cannot carry.
    #[error("the credentials cannot be sent: they must be visible ASCII characters")]
    Credentials,
    /// A file of certificates cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// TLS cannot be begun with what there is.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(String),
}

/// The way to a server, not gone yet.
pub(crate) fn endpoint(server: &str, trust: &Trust) -> Result<Endpoint, UnusableService> {
    let endpoint = Endpoint::from_shared(server.to_owned())?
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .keep_alive_while_idle(true);
    if !server.starts_with("https:") {
        return Ok(endpoint);
    }
    // tonic takes the provider of the process; the first one stays.
    let _ = ring::default_provider().install_default();
    endpoint.tls_config(tls(trust)?).map_err(|error| {
        let reason = error.source().map(ToString::to_string);
        UnusableService::Tls(reason.unwrap_or_else(|| error.to_string()))
    })
}

fn tls(trust: &Trust) -> Result<ClientTlsConfig, PemError> {
    let Trust {
        ca_file,
        identity,
        server_name,
    } = trust;
    let mut config = ClientTlsConfig::new();
    config = match ca_file {
        Some(path) => {
            let authorities = pem::authorities(path, "EXPERTISE_CA_FILE")?;
            config.ca_certificate(Certificate::from_pem(authorities))
        }
        None => config.with_native_roots(),
    };
    if let Some((cert_file, key_file)) = identity {
        let cert = pem::chain(cert_file, "EXPERTISE_CLIENT_CERT_FILE")?;
        let key = pem::key(key_file, "EXPERTISE_CLIENT_KEY_FILE")?;
        config = config.identity(Identity::from_pem(cert, key));
    }
    if let Some(name) = server_name {
        config = config.domain_name(name);
    }
    Ok(config)
}

/// Goes the way to a server at once, so that one that is not there is not asked
/// again and again.
pub(crate) async fn connect(server: &str, trust: &Trust) -> Result<Channel, UnusableService> {
    endpoint(server, trust)?
        .connect()
        .await
        .map_err(|error| UnusableService::Unreachable(trouble::words(server, &error, false)))
}

/// What the metadata of each call says of its caller.
#[derive(Debug)]
pub(crate) struct Introduction(Vec<(&'static str, MetadataValue<Ascii>)>);

impl Introduction {
    /// The credentials, which open no more than the scope where that is ours to say.
    pub fn new(credentials: &Credentials, scope: Scope) -> Result<Self, UnusableService> {
        let value =
            |text: &str| MetadataValue::from_str(text).map_err(|_| UnusableService::Credentials);
        match credentials {
            Credentials::Account(account) => {
                let scopes = MetadataValue::from_static(scope.name());
                let account = value(account.as_str())?;
                Ok(Self(vec![("x-account-id", account), ("x-scopes", scopes)]))
            }
            Credentials::Token(token) => {
                let mut bearer = value(&format!("Bearer {}", token.expose()))?;
                bearer.set_sensitive(true);
                Ok(Self(vec![("authorization", bearer)]))
            }
        }
    }

    /// A call with the message.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.0 {
            request.metadata_mut().insert(*name, value.clone());
        }
        request
    }
}

/// Pauses that double up to [`BACKOFF_MAX`]. Each is shortened at random to no less
/// than half, so that clients that failed together do not come back together.
pub(crate) fn backoff(retry: RetrySettings) -> ExponentialBuilder {
    let RetrySettings {
        retries,
        first_pause,
    } = retry;
    ExponentialBuilder::new()
        .with_min_delay(first_pause.min(BACKOFF_MAX) / 2)
        .with_max_delay(BACKOFF_MAX / 2)
        .with_max_times(usize::try_from(retries).unwrap_or(usize::MAX))
        .with_jitter()
}

/// Makes a call, and makes it again after a pause while its failure may pass.
pub(crate) async fn call_with_retries<T, F: Future<Output = Result<T, Status>>>(
    retry: RetrySettings,
    call: impl FnMut() -> F,
) -> Result<T, Status> {
    call.retry(backoff(retry)).when(may_pass).await
}

/// Whether the same call may succeed another time.
pub(crate) fn may_pass(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled => true,
        Code::ResourceExhausted => status
            .get_details_error_info()
            .is_some_and(|info| info.reason == "OVERLOADED"),
        _ => broke_off(status),
    }
}

/// Whether the connection ended while the call was under way. An answer of a server
/// has no error behind it.
fn broke_off(status: &Status) -> bool {
    matches!(status.code(), Code::Unknown | Code::Internal) && status.source().is_some()
}

/// Whether nothing of a call has left this machine.
fn is_unsent(status: &Status) -> bool {
    status.source().is_some_and(trouble::is_unsent)
}

/// Whether the call may have been done all the same.
fn may_be_done(status: &Status) -> bool {
    match status.get_details_error_info() {
        Some(info) => {
            let unknown = info
                .metadata
                .get("outcome")
                .is_some_and(|it| it == "unknown");
            unknown || status.code() == Code::DeadlineExceeded
        }
        None => match status.code() {
            Code::Aborted | Code::ResourceExhausted => false,
            _ => may_pass(status) && !is_unsent(status),
        },
    }
}

/// Whether no call of this caller will succeed.
pub(crate) fn shuts_out(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    )
}

/// A server together with who calls it.
#[derive(Debug)]
pub(crate) struct Client {
    /// The way there.
    pub channel: Channel,
    server: String,
    account: bool,
    introduction: Introduction,
    retry: RetrySettings,
    /// Whether it has ever answered as this service does.
    answered: AtomicBool,
}

impl Client {
    /// Reaches the server.
    pub async fn reach(connection: &Connection, scope: Scope) -> Result<Self, UnusableService> {
        let Connection {
            server,
            trust,
            credentials,
            retry,
        } = connection;
        Ok(Self {
            introduction: Introduction::new(credentials, scope)?,
            channel: connect(server, trust).await?,
            server: server.clone(),
            account: matches!(credentials, Credentials::Account(_)),
            retry: *retry,
            answered: AtomicBool::new(false),
        })
    }

    /// Makes a call, and again while its failure may pass.
    pub async fn call<M: Clone, T, F>(
        &self,
        message: M,
        call: impl Fn(Request<M>) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let mut undecided = false;
        let mut broken = false;
        let attempt = || call(self.introduction.request(message.clone()));
        let answer = attempt
            .retry(backoff(self.retry))
            .when(|status: &Status| {
                undecided |= may_be_done(status);
                if !broke_off(status) {
                    return may_pass(status);
                }
                // Somebody who speaks something else, such as TLS, ends each connection.
                let first = !std::mem::replace(&mut broken, true);
                first || self.answered.load(Ordering::Relaxed)
            })
            .await;
        let from_there = answer.as_ref().err().is_none_or(|it| it.source().is_none());
        if from_there {
            self.answered.store(true, Ordering::Relaxed);
        }
        answer.map(tonic::Response::into_inner).map_err(|status| {
            let answered = self.answered.load(Ordering::Relaxed);
            let mut refusal = Refusal::of(&status, &self.server, self.account, answered);
            // The last try says nothing of those before.
            refusal.undecided = undecided;
            refusal
        })
    }
}

#[cfg(test)]
mod tests {
    use backon::BackoffBuilder;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_vary() {
        let settings = |first_pause| RetrySettings {
            retries: 40,
            first_pause,
        };
        let pauses = |first| backoff(settings(first)).build().collect::<Vec<_>>();
        let some = pauses(Duration::from_millis(500));
        assert_eq!(some.len(), 40);
        for (count, millis) in [(0, 500), (1, 1_000), (4, 8_000), (10, 30_000), (39, 30_000)] {
            let longest = Duration::from_millis(millis);
            let pause = some.get(count).copied().unwrap_or_default();
            assert!(
                (longest / 2..=longest).contains(&pause),
                "{count}: {pause:?}"
            );
        }
        let first = pauses(Duration::from_secs(24 * 60 * 60));
        assert!(first.iter().all(|pause| *pause <= BACKOFF_MAX), "{first:?}");
        assert!(first.iter().collect::<std::collections::HashSet<_>>().len() > 1);
        let none = pauses(Duration::ZERO);
        assert!(none.iter().all(Duration::is_zero), "{none:?}");
    }
}
