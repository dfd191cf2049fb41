//! The listener, what every call passes, health, reflection and shutdown.

mod admission;
mod body;
mod call;
mod connections;
mod deadline;
mod gate;
mod health;
mod intake;
mod listen;
mod normalise;
mod operations;
mod peers;
mod shed;
mod tls;
mod watch;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic_reflection::server as reflection;
use tracing::{info, warn};

pub use self::tls::TlsError;
use self::{
    gate::{Allowance, Gate, Gated},
    health::Pulse,
    listen::{Port, advice, incoming},
    operations::Operations,
    peers::Peers,
    watch::Watch,
};
use crate::{
    auth::{Authenticator, KeyError, Tokens},
    config::{AuthMode, Config},
    grpc::{self, Limits},
    proto,
    store::{self, OpenError, Store},
    telemetry::{Traces, TracesError},
};

/// A peer that is silent for this long is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The rest after a connection could not be accepted, as for want of file
/// descriptors: the next attempt would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that has its database and its port, and does not serve yet.
pub struct Server {
    config: Config,
    store: Store,
    listener: TcpListener,
    address: SocketAddr,
    gated: Gated<Routes>,
    tls: Option<TlsAcceptor>,
    peers: Arc<Peers>,
    pulse: Pulse,
    operations: Option<(TcpListener, SocketAddr, Arc<Operations>)>,
    traces: Option<Traces>,
}

/// Why a server cannot start. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {}", advice(.setting, .reason))]
    Listen {
        /// The setting that says it.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The keys that tokens are checked with cannot be had.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// TLS cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// Reflection cannot describe the contract: a fault of the build.
    #[error("reflection cannot describe the contract: {0}")]
    Reflection(#[from] reflection::Error),
}

impl Server {
    /// Takes the port, then reads keys and certificates and opens the database.
    /// Connections are not accepted before all are there.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let port = Port::take("EXPERTISE_LISTEN", config.listen)?;
        let metrics_port = config.metrics_listen;
        let metrics_port = metrics_port.map(|at| Port::take("EXPERTISE_METRICS_LISTEN", at));
        let metrics_port = metrics_port.transpose()?;
        let authenticator = authenticator(&config.auth).await?;
        let traces = config
            .otlp_endpoint
            .as_ref()
            .map(Traces::start)
            .transpose()?;
        let watch = Watch::with(traces.as_ref().map(Traces::tracer));
        let gate = gate(&config, authenticator, watch);
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let store = Store::open(store::Options {
            database: config.database.clone(),
            replica: config.database_read.clone(),
            migrate: config.migrate,
            max_connections: config.database_max_connections,
            max_message_bytes: config.max_message_bytes,
        })
        .await?;
        let limits = Limits {
            max_message_bytes: config.max_message_bytes,
        };
        let (pulse, health) = health::health();
        let mut routes = grpc::routes(store.clone(), limits).add_service(health);
        if config.reflection {
            routes = with_reflection(routes)?;
        }
        let gated = gate.before(routes.prepare());
        let databases = 1 + u32::from(config.database_read.is_some());
        let operations = match metrics_port {
            None => None,
            Some(port) => {
                let (listener, address) = port.listen()?;
                let sent = traces.as_ref().map(Traces::sent);
                let operations = Operations::of(store.clone(), gate, pulse.clone(), sent);
                Some((listener, address, Arc::new(operations)))
            }
        };
        let peers = Peers::within_descriptors(config.database_max_connections * databases);
        let (listener, address) = port.listen()?;
        Ok(Self {
            config,
            store,
            listener,
            address,
            gated,
            tls,
            peers,
            pulse,
            operations,
            traces,
        })
    }

    /// Where the server listens, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics are served, if they are, with the port that was picked.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.operations.as_ref().map(|(_, address, _)| *address)
    }

    /// One line that says what runs where: no user, no password.
    pub fn start_line(&self) -> String {
        let metrics = self.metrics_addr().map(|at| format!(", metrics on {at}"));
        format!(
            "expertise {} listening on {} ({}, auth {}{})",
            env!("CARGO_PKG_VERSION"),
            self.address,
            self.config.database.place(),
            self.config.auth,
            metrics.unwrap_or_default(),
        )
    }

    /// A call to paste into another terminal, for a server without tokens and TLS.
    pub fn first_call(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!(
            "Try it:\n  grpcurl -plaintext -H 'x-account-id: demo' \
             -d '{{\"task\": {{\"name\": \"My first guide\", \"product_id\": 1}}}}' \
             {address} expertise.v1.TaskService/CreateTask\n"
        )
    }

    /// Serves until `shutdown` is ready: then health is NOT_SERVING, calls at
    /// hand go on, and the database is closed. All of that takes no longer than
    /// the grace, whatever peers do.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) {
        let Self {
            config,
            store,
            listener,
            address: _,
            gated,
            tls,
            peers,
            pulse,
            operations,
            traces,
        } = self;
        let (drain, draining) = oneshot::channel::<()>();
        let mut serving = Running(tokio::spawn(connections::serve(
            gated,
            tls,
            incoming(listener, Arc::clone(&peers)),
            // An error is a drain that was dropped: nothing is left to serve.
            async { drop(draining.await) },
        )));
        let following = tokio::spawn(pulse.clone().follow(store.clone()));
        let watching = tokio::spawn(Arc::clone(&peers).let_go_of_the_late());
        // Up to the last moment, so that the end can be watched too.
        let _operations = operations
            .map(|(listener, _, operations)| Running(tokio::spawn(operations.serve(listener))));

        shutdown.await;
        let end = Instant::now() + config.shutdown_grace;
        info!("shutting down");
        pulse.leave();
        drop(drain);
        let drained = drain_until(end - closing_time(config.shutdown_grace), &mut serving);
        tokio::select! {
            () = drained => {}
            () = peers.usher_out() => {}
        }
        following.abort();
        watching.abort();
        tokio::join!(close_until(end, &store), end_until(end, traces));
    }
}

/// Work that goes on as long as this is there.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn end_until(end: Instant, traces: Option<Traces>) {
    if let Some(traces) = traces {
        traces.end(end).await;
    }
}

async fn drain_until(end: Instant, serving: &mut Running) {
    match timeout_at(end, &mut serving.0).await {
        Ok(_) => info!("every connection ended"),
        Err(_) => warn!("connections were cut: the grace is over"),
    }
}

async fn close_until(end: Instant, store: &Store) {
    if timeout_at(end, store.close()).await.is_err() {
        warn!("the database was not closed in time");
    }
}

/// What of the grace is left for closing the database.
fn closing_time(grace: Duration) -> Duration {
    (grace / 8).min(Duration::from_millis(500))
}

async fn authenticator(auth: &AuthMode) -> Result<Authenticator, KeyError> {
    match auth {
        AuthMode::Header => Ok(Authenticator::Header),
        AuthMode::Jwt(rules) => {
            let tokens = Tokens::open(rules).await?;
            Ok(Authenticator::Jwt(Box::new(tokens)))
        }
    }
}

fn gate(config: &Config, authenticator: Authenticator, watch: Watch) -> Gate {
    let allowance = Allowance {
        request_timeout: config.request_timeout,
        max_message_bytes: config.max_message_bytes,
        max_inflight_bytes: config.max_inflight_bytes,
    };
    Gate::new(authenticator, &allowance, watch)
}

/// Adds reflection, both versions that clients ask for, of the contract, the
/// error details and health.
fn with_reflection(routes: Routes) -> Result<Routes, reflection::Error> {
    let described = || {
        let sets = [
            proto::FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            // Each version of reflection describes the other one too.
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        sets.into_iter().fold(
            reflection::Builder::configure(),
            reflection::Builder::register_encoded_file_descriptor_set,
        )
    };
    Ok(routes
        .add_service(described().build_v1()?)
        .add_service(described().build_v1alpha()?))
}
