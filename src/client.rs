//! A running server as the commands of this binary call it: the way there, in
//! whose name, and what is repeated when it fails.

mod refusal;
mod retry;
mod trouble;

use std::{
    error::Error,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustls::crypto::ring;
use tokio::time::sleep;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_types::StatusExt;

pub use self::{
    refusal::{Complaint, Refusal},
    retry::Retry,
};
use crate::{
    auth::Scope,
    config::{Connection, Credentials, Trust},
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

/// Calls again after a pause while the failure may pass.
pub(crate) async fn insist<T, F: Future<Output = Result<T, Status>>>(
    retry: Retry,
    call: impl Fn() -> F,
) -> Result<T, Status> {
    insist_while(retry, may_pass, call).await
}

/// Calls again after a pause while it is of use.
async fn insist_while<T, F: Future<Output = Result<T, Status>>>(
    retry: Retry,
    is_of_use: impl Fn(&Status) -> bool,
    call: impl Fn() -> F,
) -> Result<T, Status> {
    let mut attempt = 0;
    loop {
        let status = match call().await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        let of_use = is_of_use(&status);
        let pause = retry.pause(attempt).filter(|_| of_use);
        let Some(pause) = pause else {
            return Err(status);
        };
        sleep(pause).await;
        attempt += 1;
    }
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
    retry: Retry,
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
        let undecided = AtomicBool::new(false);
        let broken = AtomicBool::new(false);
        let is_of_use = |status: &Status| {
            undecided.fetch_or(may_be_done(status), Ordering::Relaxed);
            if !broke_off(status) {
                return may_pass(status);
            }
            // Somebody who speaks something else, such as TLS, ends each connection.
            let first = !broken.swap(true, Ordering::Relaxed);
            first || self.answered.load(Ordering::Relaxed)
        };
        let answer = insist_while(self.retry, is_of_use, || {
            call(self.introduction.request(message.clone()))
        });
        let answer = answer.await;
        let from_there = answer.as_ref().err().is_none_or(|it| it.source().is_none());
        if from_there {
            self.answered.store(true, Ordering::Relaxed);
        }
        answer.map(tonic::Response::into_inner).map_err(|status| {
            let answered = self.answered.load(Ordering::Relaxed);
            let mut refusal = Refusal::of(&status, &self.server, self.account, answered);
            // The last try says nothing of those before.
            refusal.undecided = undecided.into_inner();
            refusal
        })
    }
}
