//! The listener, the layers of calls, health, reflection, metrics and shutdown.

mod health;
mod layers;
mod listen;
mod operations;
mod reflection;
mod tls;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use tokio::{
    net::TcpListener,
    sync::{SetOnce, oneshot},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tonic::{service::Routes, transport};
use tracing::{info, warn};

pub use self::tls::TlsError;
use self::{
    health::{HealthMonitor, HealthState},
    layers::{CallMetrics, MAX_PROBE_BYTES},
    listen::{ConnectionLimit, incoming, listen, listen_advice},
    tls::ServerTls,
};
use crate::{
    auth::{Authenticator, KeyError, Tokens},
    call_limits::CallLimits,
    config::{AuthMode, Config},
    grpc,
    store::{self, OpenError, SchemaChange, Store},
    telemetry::{Traces, TracesError},
};

/// How often peers are pinged, and how long they may take to answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// At shutdown, the remaining connections are dropped after this time without calls, which is
/// enough to send the last responses.
const DRAIN_QUIET_TIME: Duration = Duration::from_millis(500);
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Concurrent calls per connection.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// How many streams a peer may open and reset before the server handles them. Above this, its
/// connection is closed. Callers with short deadlines may reset all their streams together.
const MAX_PENDING_RESETS: usize = 200;
/// The largest headers of a request that are read. Headers above the limit of calls get a gRPC error; above this limit,
/// a plain HTTP 431.
const MAX_HEADER_BYTES: u32 = 40 * 1024;
/// How many bytes a peer may send ahead on a stream and on a connection. Messages may have 64 MB,
/// and each window costs a round trip.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// What the parts of a server share. It lives as long as the process, so that no call counts
/// references.
struct Shared {
    config: Config,
    authenticator: Authenticator,
    tls: Option<ServerTls>,
    connections: ConnectionLimit,
    operations_connections: ConnectionLimit,
    limits: &'static CallLimits,
    metrics: CallMetrics,
    health: HealthMonitor,
    /// The database, once it is open.
    store: OnceLock<Store>,
    /// The services of the API, once the database is open.
    services: SetOnce<Routes>,
    started: SystemTime,
}

/// A server that has opened its ports but does not serve yet.
pub struct Server {
    state: &'static Shared,
    listener: TcpListener,
    address: SocketAddr,
    health_and_reflection: Routes,
    operations: Option<(TcpListener, SocketAddr)>,
    traces: Option<Traces>,
}

/// Why a server cannot start. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {}", listen_advice(.setting, .reason))]
    Listen {
        setting: &'static str,
        address: SocketAddr,
        reason: io::Error,
    },
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// Reflection cannot describe the API, which is a bug.
    #[error("cannot set up reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl StartError {
    /// Whether the server cannot start until a setting is changed.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Store(error) => error.is_wrong_setting(),
            Self::Keys(error) => error.is_wrong_setting(),
            Self::Tls(_) => true,
            Self::Listen { .. } | Self::Traces(_) | Self::Reflection(_) => false,
        }
    }
}

/// Checks the certificates, keys and database that a server with these settings needs, without
/// changing anything. Returns what the server would do to the schema, or each reason why it would
/// not start.
pub async fn check(config: &Config) -> Result<SchemaChange, Vec<StartError>> {
    let mut errors = Vec::<StartError>::new();
    errors.extend(open_tls(config).await.err().map(StartError::from));
    let authenticator = authenticator(&config.auth).await;
    errors.extend(authenticator.err().map(StartError::from));
    match store::check(&config.database.url, config.database.migrate).await {
        Ok(change) if errors.is_empty() => Ok(change),
        checked => {
            errors.extend(checked.err().map(StartError::from));
            Err(errors)
        }
    }
}

impl Server {
    /// Reads certificates and keys, then listens on the ports. Connections are accepted only after
    /// that.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let tls = open_tls(&config).await?;
        let authenticator = authenticator(&config.auth).await?;
        let (listener, address) = listen("EXPERTISE_LISTEN", config.listen).await?;
        let operations = match config.telemetry.metrics_listen {
            Some(address) => Some(listen("EXPERTISE_METRICS_LISTEN", address).await?),
            None => None,
        };
        let traces = config
            .telemetry
            .otlp_endpoint
            .as_ref()
            .map(Traces::start)
            .transpose()?;
        let (health, health_service) = HealthMonitor::new().await;
        let health_service = health_service.max_decoding_message_size(MAX_PROBE_BYTES);
        let mut health_and_reflection = Routes::default().add_service(health_service);
        if config.reflection {
            health_and_reflection = reflection::add(health_and_reflection)?;
        }
        let metrics_connections = operations
            .as_ref()
            .map_or(0, |_| operations::MAX_CONNECTIONS);
        let reserved_connections = config.database.max_connections as usize + metrics_connections;
        Ok(Self {
            state: Box::leak(Box::new(Shared {
                authenticator,
                tls,
                connections: ConnectionLimit::within_descriptors(reserved_connections),
                operations_connections: ConnectionLimit::new(
                    operations::MAX_CONNECTIONS,
                    "find the clients that open so many to EXPERTISE_METRICS_LISTEN",
                ),
                limits: CallLimits::new(config.limits.max_inflight_bytes),
                metrics: CallMetrics::new(),
                health,
                store: OnceLock::new(),
                services: SetOnce::new(),
                started: SystemTime::now(),
                config,
            })),
            listener,
            address,
            health_and_reflection,
            operations,
            traces,
        })
    }

    /// The address that the server listens on, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// One line with version, addresses and database, without user and password.
    pub fn start_line(&self) -> String {
        let metrics = self.operations.as_ref();
        let metrics = metrics.map(|(_, address)| format!(", metrics on {address}"));
        format!(
            "expertise {} listening on {} ({}, auth {}{})",
            env!("CARGO_PKG_VERSION"),
            self.address,
            self.state.config.database.url.address(),
            self.state.config.auth,
            metrics.unwrap_or_default(),
        )
    }

    /// A first call to paste into a terminal, for a server without tokens and TLS.
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

    /// Serves until `shutdown` completes. Then reports NOT_SERVING, finishes running calls and
    /// closes the database, all within the shutdown grace, regardless of what peers do.
    ///
    /// Calls `started` once the database is open. Until then, health is NOT_SERVING, and calls wait
    /// for two seconds before they fail with UNAVAILABLE. Fails if the database cannot be used,
    /// but waits if it cannot be reached.
    pub async fn serve(
        self,
        started: impl FnOnce(),
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), StartError> {
        let state = self.state;
        let Shared { config, health, .. } = state;
        // Dropping it aborts its tasks. The endpoint for operators is served to the end, so that the shutdown
        // can be observed.
        let mut background = JoinSet::new();
        if let Some((listener, _)) = self.operations {
            background.spawn(operations::serve(listener, state));
        }
        let port = layers::port(state, self.health_and_reflection);
        let (drain, draining) = oneshot::channel::<()>();
        let serving = transport_server(config).serve_with_incoming_shutdown(
            port,
            incoming(self.listener, state, &state.connections, state.tls.as_ref()),
            // Ready when `drain` is dropped.
            async { drop(draining.await) },
        );
        let serving = tokio::spawn(serving);
        let mut shutdown = pin!(shutdown);
        let store = tokio::select! {
            store = open_store(config) => Some(store?),
            () = &mut shutdown => None,
        };
        let mut store_tasks = JoinSet::new();
        if let Some(store) = &store {
            let services = grpc::routes(store.clone(), config.limits.max_message_bytes);
            // They are set nowhere else.
            let _ = state.services.set(services.prepare());
            let _ = state.store.set(store.clone());
            health.set(HealthState::Serving).await;
            let address = config.database.url.address();
            store_tasks.spawn(health.follow_database(store.clone(), address));
            store_tasks.spawn(store.clone().follow_changes());
            store_tasks.spawn(store.clone().enforce_retention());
            started();
            shutdown.await;
        }
        let deadline = Instant::now() + config.limits.shutdown_grace;
        info!("shutting down");
        store_tasks.shutdown().await;
        health.shut_down().await;
        if let Some(store) = &store {
            store.end_waits();
        }
        drop(drain);
        // The rest of the grace period is for closing the database.
        let closing = (config.limits.shutdown_grace / 8).min(Duration::from_millis(500));
        let drained = deadline - closing;
        drain_until(drained, serving, state.limits).await;
        let close = async {
            if let Some(store) = store
                && timeout_at(deadline, store.close()).await.is_err()
            {
                warn!("the database was not closed within the shutdown grace");
            }
        };
        let end = async {
            if let Some(traces) = self.traces {
                traces.end(deadline).await;
            }
        };
        tokio::join!(close, end);
        Ok(())
    }
}

fn transport_server(config: &Config) -> transport::Server {
    let server = transport::Server::builder()
        // Browsers use it without TLS.
        .accept_http1(true)
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_max_pending_accept_reset_streams(Some(MAX_PENDING_RESETS))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT));
    match config.limits.max_connection_age {
        Some(age) => server.max_connection_age(age),
        None => server,
    }
}

async fn open_store(config: &Config) -> Result<Store, OpenError> {
    Store::open(store::Options {
        database: config.database.clone(),
        history: config.history.clone(),
        max_message_bytes: config.limits.max_message_bytes,
        request_timeout: config.limits.request_timeout,
        guide_codec: grpc::GUIDE_CODEC,
    })
    .await
}

/// Waits until all connections have ended, or there have been no calls for a moment, so that silent
/// peers do not delay the shutdown.
async fn drain_until(
    deadline: Instant,
    serving: JoinHandle<Result<(), transport::Error>>,
    limits: &CallLimits,
) {
    let calls_end = async {
        let mut quiet = Duration::ZERO;
        while quiet < DRAIN_QUIET_TIME {
            sleep(DRAIN_CHECK_INTERVAL).await;
            quiet += DRAIN_CHECK_INTERVAL;
            if limits.calls_in_progress() > 0 {
                quiet = Duration::ZERO;
            }
        }
    };
    tokio::select! {
        _ = serving => info!("all connections have ended"),
        () = calls_end => info!("all calls have ended"),
        () = sleep_until(deadline) => {
            warn!("the shutdown grace is over: calls in progress are ended");
        }
    }
}

async fn open_tls(config: &Config) -> Result<Option<ServerTls>, TlsError> {
    Ok(match &config.tls {
        Some(tls) => Some(ServerTls::open(tls).await?),
        None => None,
    })
}

async fn authenticator(auth: &AuthMode) -> Result<Authenticator, KeyError> {
    Ok(match auth {
        AuthMode::Header => Authenticator::Header,
        AuthMode::Jwt(config) => Authenticator::Jwt(Tokens::open(config).await?),
    })
}
