//! A client of a running server for the commands of this binary: connection,
//! credentials, and retries.

mod call_error;
mod calls;
mod connect_error;

use std::{
    error::Error,
    mem,
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

pub(crate) use self::call_error::CalledServer;
pub use self::call_error::{CallError, CallViolation};
use self::calls::{Call, PageCall};
pub(crate) use self::connect_error::root_cause;
use crate::{
    config::{ConnectionConfig, Credentials, RetrySettings, Trust},
    domain::{caller::Scope, ids::AccountId},
    pem::{self, PemError},
    proto::code_name,
    terminal::print_error,
};

/// The largest message that is accepted, in bytes: the server may be set to messages of any size.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2_147_483_647;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than what the server grants a call by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Keepalive finds a server that has stopped long before [`CALL_TIMEOUT`].
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Why a server cannot be called at all. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not a URL.
    #[error("the server's address cannot be used: {0}")]
    Address(#[from] tonic::transport::Error),
    /// Metadata cannot carry a credential.
    #[error("the credentials cannot be sent: they must be visible ASCII characters")]
    Credentials,
    /// A file of certificates cannot be used.
    #[error(transparent)]
    File(#[from] PemError),
    /// TLS cannot be set up with these files.
    #[error("TLS cannot be used: {0}")]
    Tls(&'static str),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(String),
}

impl ConnectError {
    /// Whether the server cannot be called until a setting is changed.
    pub(crate) fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Address(_) | Self::Credentials | Self::File(_) | Self::Tls(_) => true,
            Self::Unreachable(_) => false,
        }
    }
}

/// A server that is not connected yet.
pub(crate) fn endpoint(server: &str, trust: &Trust) -> Result<Endpoint, ConnectError> {
    let endpoint = Endpoint::from_shared(server.to_owned())?
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    if !server.starts_with("https:") {
        return Ok(endpoint);
    }
    // tonic uses the provider of the process. One that is already installed stays.
    let _ = ring::default_provider().install_default();
    endpoint.tls_config(tls(trust)?).map_err(|error| {
        let reason = connect_error::root_cause(&error).downcast_ref();
        ConnectError::Tls(match reason {
            Some(rustls::Error::InconsistentKeys(_)) => {
                "the client's certificate and key do not belong together"
            }
            Some(rustls::Error::InvalidCertificate(_)) => "a certificate is malformed",
            Some(_) | None => {
                "a certificate or key is malformed, or of a kind that is not supported"
            }
        })
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

/// Connects at once, so that a server that is not there is not retried.
pub(crate) async fn connect(server: &str, trust: &Trust) -> Result<Channel, ConnectError> {
    endpoint(server, trust)?
        .connect()
        .await
        .map_err(|error| ConnectError::Unreachable(connect_error::first_call(server, &error)))
}

/// The metadata that names the caller in each call.
#[derive(Debug)]
pub(crate) struct CallerMetadata(Vec<(&'static str, MetadataValue<Ascii>)>);

impl CallerMetadata {
    /// Credentials. An account is restricted to the scopes; a token has its own.
    pub fn new(credentials: &Credentials, scopes: &[Scope]) -> Result<Self, ConnectError> {
        let value =
            |text: &str| MetadataValue::from_str(text).map_err(|_| ConnectError::Credentials);
        match credentials {
            Credentials::Account(account) => {
                let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                let scopes = value(&names.join(" "))?;
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

    /// A request with the message.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.0 {
            request.metadata_mut().insert(*name, value.clone());
        }
        request
    }
}

/// Pauses that double up to [`MAX_BACKOFF`]. Each is shortened at random to no less
/// than half, so that clients that failed together do not come back together.
pub(crate) fn backoff(retry: RetrySettings) -> ExponentialBuilder {
    let RetrySettings {
        retries,
        first_pause,
    } = retry;
    ExponentialBuilder::new()
        .with_min_delay(first_pause.min(MAX_BACKOFF) / 2)
        .with_max_delay(MAX_BACKOFF / 2)
        .with_max_times(usize::try_from(retries).unwrap_or(usize::MAX))
        .with_jitter()
}

/// Makes a call, and repeats it after a pause while its failure is transient.
pub(crate) async fn call_with_retries<T, F: Future<Output = Result<T, Status>>>(
    retry: RetrySettings,
    call: impl FnMut() -> F,
) -> Result<T, Status> {
    call.retry(backoff(retry)).when(is_transient).await
}

/// Whether the same call may succeed another time.
pub(crate) fn is_transient(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => true,
        Code::Aborted => !has_reason(status, "ETAG_MISMATCH"),
        Code::ResourceExhausted => has_reason(status, "OVERLOADED"),
        _ => is_connection_lost(status),
    }
}

fn has_reason(status: &Status, reason: &str) -> bool {
    let info = status.get_details_error_info();
    info.is_some_and(|info| info.reason == reason)
}

/// Whether the server sent this status. Only one that this client makes has a source.
fn is_answer(status: &Status) -> bool {
    status.source().is_none()
}

/// Whether no answer came, as the connection ended or the call timed out here. The status of a
/// call that was not sent yet is CANCELLED, for example when the server closes a connection
/// without a client certificate.
fn is_connection_lost(status: &Status) -> bool {
    let code = status.code();
    matches!(code, Code::Unknown | Code::Internal | Code::Cancelled) && !is_answer(status)
}

/// Whether nothing of a call has left this machine.
fn is_unsent(status: &Status) -> bool {
    status.source().is_some_and(connect_error::is_unsent)
}

/// Whether the call may have taken effect although it failed.
fn may_have_taken_effect(status: &Status) -> bool {
    match status.get_details_error_info() {
        Some(info) => {
            let outcome = info.metadata.get("outcome").map(String::as_str);
            outcome == Some("unknown") || status.code() == Code::DeadlineExceeded
        }
        None => match status.code() {
            Code::Aborted | Code::ResourceExhausted => false,
            _ => is_transient(status) && !is_unsent(status),
        },
    }
}

/// Whether the server refuses every such call of this caller.
pub(crate) fn is_caller_refused(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    )
}

/// A connection to a server for one caller.
#[derive(Debug)]
pub(crate) struct Client {
    channel: Channel,
    server: String,
    /// The account, unless a token contains it.
    account: Option<AccountId>,
    caller: CallerMetadata,
    retry: RetrySettings,
    /// The flags of the server and the account as they were given.
    flags: String,
    /// Whether the server has answered a call.
    answered: AtomicBool,
    /// Whether the user was told that calls are repeated.
    notified: AtomicBool,
}

impl Client {
    /// The account, unless a token contains it.
    pub fn account(&self) -> Option<&AccountId> {
        self.account.as_ref()
    }

    /// A command of this program for the same server and account.
    pub fn command(&self, arguments: &str) -> String {
        format!("expertise {arguments}{}", self.flags)
    }

    /// Connects to the server.
    pub async fn connect(
        connection: &ConnectionConfig,
        scopes: &[Scope],
    ) -> Result<Self, ConnectError> {
        let ConnectionConfig {
            server,
            trust,
            credentials,
            retry,
        } = connection;
        Ok(Self {
            caller: CallerMetadata::new(credentials, scopes)?,
            channel: connect(server, trust).await?,
            server: server.clone(),
            account: match credentials {
                Credentials::Account(account) => Some(account.clone()),
                Credentials::Token(_) => None,
            },
            retry: *retry,
            flags: connection.flags(),
            answered: AtomicBool::new(false),
            notified: AtomicBool::new(false),
        })
    }

    /// Makes a call, and repeats it while its failure is transient.
    pub async fn call<M: Call>(&self, message: M) -> Result<M::Answer, CallError> {
        let mut undecided = false;
        let mut lost_last = false;
        let attempt = || M::send(self.channel.clone(), self.caller.request(message.clone()));
        let result = attempt
            .retry(backoff(self.retry))
            .when(|status: &Status| {
                undecided |= may_have_taken_effect(status);
                self.answered.fetch_or(is_answer(status), Ordering::Relaxed);
                let is_lost = is_connection_lost(status);
                let lost_before = mem::replace(&mut lost_last, is_lost);
                if !is_lost {
                    return is_transient(status);
                }
                // A server of another protocol, such as TLS, ends every connection: two
                // in a row are enough, unless this server has answered before.
                !lost_before || self.answered.load(Ordering::Relaxed)
            })
            .notify(|status: &Status, _| self.print_first_repetition(status))
            .await;
        self.answered.fetch_or(result.is_ok(), Ordering::Relaxed);
        result.map(tonic::Response::into_inner).map_err(|status| {
            CallError {
                // Any of the attempts may have taken effect.
                undecided,
                ..CallError::new(&status, &self.called_server())
            }
        })
    }

    /// Calls page by page, to the last one.
    pub async fn pages<M: PageCall>(&self, mut message: M) -> Result<Vec<M::Answer>, CallError> {
        let mut pages = Vec::new();
        loop {
            let page = self.call(message.clone()).await?;
            let next = M::next_page_token(&page).to_owned();
            pages.push(page);
            if next.is_empty() {
                return Ok(pages);
            }
            message.set_page_token(next);
        }
    }

    /// Prints a line on standard error when a call is first repeated after an outage, as the
    /// pauses may be long. A write conflict is no outage. The loss of a connection before any
    /// answer is not reported: the call is repeated only once after it.
    fn print_first_repetition(&self, status: &Status) {
        let is_outage = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
            || self.answered.load(Ordering::Relaxed) && is_connection_lost(status);
        if is_outage && !self.notified.swap(true, Ordering::Relaxed) {
            print_error(&format!(
                "a call of {} failed ({}) and is repeated, {} times at most",
                self.server,
                code_name(status.code()),
                self.retry.retries
            ));
        }
    }

    fn called_server(&self) -> CalledServer<'_> {
        CalledServer {
            address: &self.server,
            names_account: self.account.is_some(),
            answered: self.answered.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
