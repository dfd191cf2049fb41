//! A client of a running server for the commands of this binary: connection,
//! credentials, and retries.

mod call_error;
mod calls;
mod connect_error;

use std::{
    error::Error,
    mem,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use http::uri::PathAndQuery;
use rustls::{crypto::ring, pki_types::InvalidDnsNameError};
use tonic::{
    Code, Request, Status,
    client::Grpc,
    metadata::{MetadataMap, MetadataValue, errors::InvalidMetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt;

pub use self::call_error::CallError;
pub(crate) use self::call_error::CalledServer;
use self::calls::{PageRequest, RpcRequest};
pub(crate) use self::connect_error::root_cause;
use crate::{
    config::{ConnectionConfig, RetrySettings, Trust},
    domain::{caller::Scope, ids::AccountId},
    pem::{self, PemError},
    proto::code_name,
    terminal::print_error,
};

/// The maximum size of a message, in bytes. A server may allow messages of any size.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2_147_483_647;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the default time limit of the server.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Keepalive detects a stopped server long before [`CALL_TIMEOUT`].
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Why a server cannot be called at all. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the server's address cannot be used: {0}")]
    Address(#[from] tonic::transport::Error),
    /// Metadata cannot carry a credential.
    #[error("the credentials cannot be sent: they must be visible ASCII characters")]
    Credentials,
    #[error(transparent)]
    File(#[from] PemError),
    /// The certificate and key do not match, or one of them is malformed.
    #[error("EXPERTISE_CLIENT_CERT_FILE and EXPERTISE_CLIENT_KEY_FILE cannot be used: {}", pem::why_unusable(.0))]
    CertificateOrKey(rustls::Error),
    #[error("TLS cannot be used: {0}")]
    Tls(&'static str),
    #[error("{0}")]
    Unreachable(String),
}

impl ConnectError {
    /// Whether the server cannot be called until a setting is changed.
    pub(crate) fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Address(_)
            | Self::Credentials
            | Self::File(_)
            | Self::CertificateOrKey(_)
            | Self::Tls(_) => true,
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
    // tonic uses the provider of the process. A provider that is already installed stays.
    let _ = ring::default_provider().install_default();
    endpoint.tls_config(tls(trust)?).map_err(|error| {
        let cause = connect_error::root_cause(&error);
        match cause.downcast_ref::<rustls::Error>() {
            Some(error) => ConnectError::CertificateOrKey(error.clone()),
            None if cause.is::<InvalidDnsNameError>() => {
                ConnectError::Tls("the host of the URL is neither a name nor an IP address")
            }
            None => ConnectError::Tls("the system has no CA certificates: set --ca-file"),
        }
    })
}

fn tls(trust: &Trust) -> Result<ClientTlsConfig, PemError> {
    let config = ClientTlsConfig::new();
    let mut config = match &trust.ca_file {
        Some(path) => {
            let (_, ca_certificates) = pem::ca_certificates(path, "EXPERTISE_CA_FILE")?;
            config.ca_certificate(Certificate::from_pem(ca_certificates))
        }
        None => config.with_native_roots(),
    };
    if let Some((cert_file, key_file)) = trust
        .client_cert_file
        .as_ref()
        .zip(trust.client_key_file.as_ref())
    {
        let (_, cert) = pem::chain(cert_file, "EXPERTISE_CLIENT_CERT_FILE")?;
        let (_, key) = pem::key(key_file, "EXPERTISE_CLIENT_KEY_FILE")?;
        config = config.identity(Identity::from_pem(cert, key));
    }
    if let Some(name) = &trust.server_name {
        config = config.domain_name(name);
    }
    Ok(config)
}

/// Connects immediately, so a missing server is not retried.
pub(crate) async fn connect(server: &str, trust: &Trust) -> Result<Channel, ConnectError> {
    endpoint(server, trust)?
        .connect()
        .await
        .map_err(|error| ConnectError::Unreachable(connect_error::message(server, &error, false)))
}

/// Pauses that double up to [`MAX_BACKOFF`]. Each is shortened at random by up to half, so that
/// clients that failed together do not retry together.
pub(crate) fn backoff(retry: RetrySettings) -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(retry.first_pause.min(MAX_BACKOFF) / 2)
        .with_max_delay(MAX_BACKOFF / 2)
        .with_max_times(usize::try_from(retry.retries).unwrap_or(usize::MAX))
        .with_jitter()
}

/// Whether the same call may succeed later.
fn is_transient(status: &Status) -> bool {
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

/// Whether the server sent this status. Only a status of this client has a source.
fn is_answer(status: &Status) -> bool {
    status.source().is_none()
}

/// Whether there was no response, because the connection ended or this client timed out. A call
/// that was not sent has the status CANCELLED, for example if the server requires a client
/// certificate.
fn is_connection_lost(status: &Status) -> bool {
    let code = status.code();
    matches!(code, Code::Unknown | Code::Internal | Code::Cancelled) && !is_answer(status)
}

/// Whether no part of a call was sent.
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

/// Whether the server refuses every call of this rpc by this caller.
fn is_caller_refused(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented
    )
}

/// The metadata that names the caller. An account is restricted to these scopes; a token has its
/// own.
fn caller_metadata(
    connection: &ConnectionConfig,
    scopes: &[Scope],
) -> Result<MetadataMap, InvalidMetadataValue> {
    let mut metadata = MetadataMap::new();
    if let Some(account) = &connection.account {
        let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
        metadata.insert("x-account-id", account.as_str().parse()?);
        metadata.insert("x-scopes", scopes.join(" ").parse()?);
    }
    if let Some(subject) = &connection.subject {
        metadata.insert("x-subject", subject.parse()?);
    }
    if let Some(token) = &connection.token {
        let mut bearer: MetadataValue<_> = format!("Bearer {}", token.expose()).parse()?;
        bearer.set_sensitive(true);
        metadata.insert("authorization", bearer);
    }
    Ok(metadata)
}

#[derive(Debug)]
pub(crate) struct Client {
    channel: Channel,
    caller: MetadataMap,
    connection: ConnectionConfig,
    /// Whether the server has responded to a call.
    answered: AtomicBool,
    /// Whether the user was told that calls are retried.
    notified: AtomicBool,
    /// Whether the last call could not be sent, even with retries. The next is then tried only once.
    is_down: AtomicBool,
}

impl Client {
    /// A client that connects on its first call.
    pub fn new(connection: &ConnectionConfig, scopes: &[Scope]) -> Result<Self, ConnectError> {
        let caller = caller_metadata(connection, scopes);
        let caller = caller.map_err(|_| ConnectError::Credentials)?;
        Ok(Self {
            channel: endpoint(&connection.server, &connection.trust)?.connect_lazy(),
            caller,
            connection: connection.clone(),
            answered: AtomicBool::new(false),
            notified: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
        })
    }

    /// A client that is connected.
    pub async fn connect(
        connection: &ConnectionConfig,
        scopes: &[Scope],
    ) -> Result<Self, ConnectError> {
        let client = Self::new(connection, scopes)?;
        let channel = connect(&connection.server, &connection.trust).await?;
        Ok(Self { channel, ..client })
    }

    /// The account, unless the caller has a token.
    pub fn account(&self) -> Option<&AccountId> {
        self.connection.account.as_ref()
    }

    /// The URL of the server.
    pub fn server(&self) -> &str {
        &self.connection.server
    }

    /// A command of this program for the same server and caller.
    pub fn command(&self, arguments: &str) -> String {
        format!("expertise {arguments}{}", self.connection.flags())
    }

    async fn send<M: RpcRequest>(&self, message: &M) -> Result<M::Response, Status> {
        let mut request = Request::new(message.clone());
        *request.metadata_mut() = self.caller.clone();
        let grpc = Grpc::new(self.channel.clone());
        let mut grpc = grpc.max_decoding_message_size(MAX_MESSAGE_BYTES);
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::from_static(M::PATH);
        let answer = grpc.unary(request, path, ProstCodec::default()).await?;
        Ok(answer.into_inner())
    }

    /// Makes a call, and retries it while its failures are transient.
    pub async fn call<M: RpcRequest>(&self, message: M) -> Result<M::Response, CallError> {
        let mut undecided = false;
        let mut lost_last = false;
        let attempt = || self.send(&message);
        let result = attempt
            .retry(backoff(self.connection.retry))
            .when(|status: &Status| {
                undecided |= may_have_taken_effect(status);
                self.answered.fetch_or(is_answer(status), Ordering::Relaxed);
                if is_unsent(status) && self.is_down.load(Ordering::Relaxed) {
                    return false;
                }
                let is_lost = is_connection_lost(status);
                let lost_before = mem::replace(&mut lost_last, is_lost);
                if !is_lost {
                    return is_transient(status);
                }
                // A server of another protocol, such as TLS, ends every connection. Two in a row
                // are enough, unless this server has responded before.
                !lost_before || self.answered.load(Ordering::Relaxed)
            })
            .notify(|status: &Status, _| self.print_first_repetition(status))
            .await;
        self.answered.fetch_or(result.is_ok(), Ordering::Relaxed);
        let is_down = result.as_ref().is_err_and(is_unsent);
        self.is_down.store(is_down, Ordering::Relaxed);
        result.map_err(|status| {
            let server = CalledServer {
                address: &self.connection.server,
                names_account: self.account().is_some(),
                answered: self.answered.load(Ordering::Relaxed),
            };
            CallError {
                // Any of the attempts may have taken effect.
                undecided,
                ..CallError::new(&status, &server)
            }
        })
    }

    /// The items of all pages.
    pub async fn list<M: PageRequest, T>(
        &self,
        message: M,
        items: impl Fn(M::Response) -> Vec<T>,
    ) -> Result<Vec<T>, CallError> {
        let pages = self.pages(message).await?;
        Ok(pages.into_iter().flat_map(items).collect())
    }

    /// Calls page by page, to the last one.
    pub async fn pages<M: PageRequest>(
        &self,
        mut message: M,
    ) -> Result<Vec<M::Response>, CallError> {
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

    /// Prints a line on standard error when an outage causes the first retry, because the pauses
    /// may be long. A write conflict is not an outage. A lost connection before any response is not
    /// reported, because its call is retried only once.
    fn print_first_repetition(&self, status: &Status) {
        let is_outage = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
            || self.answered.load(Ordering::Relaxed) && is_connection_lost(status);
        if is_outage && !self.notified.swap(true, Ordering::Relaxed) {
            print_error(&format!(
                "a call of {} failed ({}) and is repeated, {} times at most",
                self.connection.server,
                code_name(status.code()),
                self.connection.retry.retries
            ));
        }
    }
}

#[cfg(test)]
mod tests;
