//! The listener, what every call passes, health, reflection and shutdown.

mod admission;
mod body;
mod call;
mod deadline;
mod gate;
mod health;
mod intake;
mod normalise;
mod peers;
mod shed;
mod tls;

use std::{
    future::{Future, ready},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
    time::{Instant, sleep, timeout_at},
};
use tonic::{
    service::Routes,
    transport::{self, server::TcpIncoming},
};
use tonic_reflection::server as reflection;
use tracing::{info, warn};

pub use self::tls::TlsError;
use self::{
    gate::{Allowance, GateLayer},
    health::Pulse,
    peers::{Peers, Wire},
};
use crate::{
    auth::{Authenticator, KeyError, Tokens},
    config::{AuthMode, Config},
    grpc::{self, Limits},
    proto,
    store::{self, OpenError, Store},
};

/// Calls at once on a connection; the message of each is held in memory.
const MAX_CONCURRENT_STREAMS: u32 = 256;
/// Streams that a peer opens and resets before we saw them, and those we reset
/// for a peer's errors, before the connection is closed: floods of either cost
/// work without end otherwise. Callers with short deadlines, who may share a
/// connection with patient ones, may give up all their streams at once.
const MAX_PENDING_RESETS: usize = MAX_CONCURRENT_STREAMS as usize + 44;
const MAX_ERROR_RESETS: usize = 1024;
/// Request headers of a call, in bytes, beyond which the connection is at fault;
/// the gate refuses far smaller ones with a proper answer.
const MAX_HEADERS: u32 = 256 * 1024;
/// What a peer may send ahead on a call and on a connection, in bytes: messages
/// reach 64 MB, and each window costs a round trip.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// A peer that is silent for this long is asked, and let go when it does not
/// answer in time.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Connections that are accepted and wait for their turn.
const WAITING: usize = 1024;
/// The rest after a connection could not be accepted, as for want of file
/// descriptors: the next attempt would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that has its database and its port, and does not serve yet.
pub struct Server {
    config: Config,
    store: Store,
    listener: TcpListener,
    address: SocketAddr,
    transport: Transport,
    peers: Arc<Peers>,
    routes: Routes,
    pulse: Pulse,
}

type Transport =
    transport::Server<tower::layer::util::Stack<GateLayer, tower::layer::util::Identity>>;

/// Why a server cannot start. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {}", listen_advice(.reason))]
    Listen {
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
    /// Reflection cannot describe the contract: a fault of the build.
    #[error("reflection cannot describe the contract: {0}")]
    Reflection(#[from] reflection::Error),
}

/// Why a server stopped serving by itself.
#[derive(Debug, thiserror::Error)]
#[error("the listener ended: {0:?}")]
pub struct ServeError(#[from] transport::Error);

impl Server {
    /// Takes the port, then reads keys and certificates and opens the database.
    /// Connections are not accepted before all are there.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let listen_error = |reason| StartError::Listen {
            address: config.listen,
            reason,
        };
        let socket = bind(config.listen).map_err(listen_error)?;
        let authenticator = authenticator(&config.auth).await?;
        let transport = transport(&config, authenticator)?;
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
        let databases = 1 + u32::from(config.database_read.is_some());
        let peers = Peers::within_descriptors(config.database_max_connections * databases);
        let listener = socket.listen(BACKLOG).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self {
            config,
            store,
            listener,
            address,
            transport,
            peers,
            routes,
            pulse,
        })
    }

    /// Where the server listens, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// One line that says what runs where: no user, no password.
    pub fn start_line(&self) -> String {
        format!(
            "expertise {} listening on {} ({}, auth {})",
            env!("CARGO_PKG_VERSION"),
            self.address,
            self.config.database.place(),
            self.config.auth,
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
    pub async fn serve(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let Self {
            config,
            store,
            listener,
            address: _,
            transport,
            peers,
            routes,
            pulse,
        } = self;
        let (drain, draining) = oneshot::channel::<()>();
        let mut serving = pin!(transport.serve_with_incoming_shutdown(
            routes.prepare(),
            incoming(listener, Arc::clone(&peers)),
            // An error is a drain that was dropped: nothing is left to serve.
            async { drop(draining.await) },
        ));
        let following = tokio::spawn(pulse.clone().follow(store.clone()));
        let watching = tokio::spawn(Arc::clone(&peers).let_go_of_the_late());

        let served = tokio::select! {
            served = &mut serving => served,
            () = shutdown => {
                let end = Instant::now() + config.shutdown_grace;
                info!("shutting down");
                pulse.leave();
                drop(drain);
                let drained = drain_until(end - closing_time(config.shutdown_grace), serving);
                tokio::select! {
                    () = drained => {}
                    () = peers.usher_out() => {}
                }
                following.abort();
                watching.abort();
                close_until(end, &store).await;
                return Ok(());
            }
        };
        following.abort();
        watching.abort();
        store.close().await;
        Ok(served?)
    }
}

async fn drain_until(end: Instant, serving: impl Future<Output = Result<(), transport::Error>>) {
    match timeout_at(end, serving).await {
        Ok(Ok(())) => info!("every connection ended"),
        Ok(Err(error)) => warn!(?error, "the listener ended"),
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

/// tonic has its server unlimited unless told otherwise.
fn transport(config: &Config, authenticator: Authenticator) -> Result<Transport, TlsError> {
    let server = transport::Server::builder()
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .http2_max_pending_accept_reset_streams(Some(MAX_PENDING_RESETS))
        .http2_max_local_error_reset_streams(Some(MAX_ERROR_RESETS))
        .http2_max_header_list_size(MAX_HEADERS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .layer(GateLayer::new(
            authenticator,
            &Allowance {
                request_timeout: config.request_timeout,
                max_message_bytes: config.max_message_bytes,
                max_inflight_bytes: config.max_inflight_bytes,
            },
        ));
    tls::apply(server, config.tls.as_ref())
}

/// Accepted connections. One that fails is waited out; the server goes on.
fn incoming(listener: TcpListener, peers: Arc<Peers>) -> impl Stream<Item = io::Result<Wire>> {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(KEEPALIVE))
        .then(|accepted| async {
            if let Err(error) = &accepted {
                warn!(%error, "a connection was not accepted");
                sleep(ACCEPT_PAUSE).await;
            }
            accepted
        })
        .map(move |accepted| {
            let peers = Arc::clone(&peers);
            async move {
                match accepted {
                    Ok(stream) => peers.admit_in_turn(stream).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        })
        .buffer_unordered(WAITING)
        .filter_map(ready)
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for old connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen_advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the port is taken: stop what holds it, or set \
             EXPERTISE_LISTEN to another (port 0 picks a free one)"
            .to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address: set \
             EXPERTISE_LISTEN to one of its own"
            .to_owned(),
        io::ErrorKind::PermissionDenied => "the system does not allow the port: set \
             EXPERTISE_LISTEN to one from 1024"
            .to_owned(),
        _ => error.to_string(),
    }
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
