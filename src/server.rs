//! The listener, the middleware of calls, health, reflection, metrics and shutdown.

mod connections;
mod handshake_log;
mod health;
mod http2;
mod listen;
mod middleware;
mod operations;
mod routes;
mod tls;

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use prost::Message;
use prost_types::FileDescriptorSet;
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tonic::service::Routes;
use tonic_reflection::server as reflection;
use tracing::{info, warn};

pub use self::tls::TlsError;
use self::{
    connections::Connections,
    health::HealthMonitor,
    listen::{incoming, listen, listen_advice},
    middleware::{CallLimits, CallService, MAX_PROBE_BYTES, Middleware},
    operations::{MetricSources, OperationsEndpoint},
    routes::ServerRoutes,
    tls::ServerTls,
};
use crate::{
    auth::{Authenticator, KeyError, Tokens},
    config::{AuthMode, Config},
    grpc::{self, Limits},
    proto,
    store::{self, OpenError, SchemaChange, Store},
    telemetry::{Traces, TracesError},
};

/// How often peers are pinged.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// The pause after a connection could not be accepted, for example for want of file
/// descriptors: the next attempt would fail at once.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A server that has opened its ports, and does not serve yet.
pub struct Server {
    config: Config,
    listener: TcpListener,
    address: SocketAddr,
    middleware: Arc<Middleware>,
    routes: ServerRoutes,
    tls: Option<ServerTls>,
    connections: Arc<Connections>,
    health: HealthMonitor,
    operations: Option<OperationsPort>,
    traces: Option<Traces>,
}

/// The endpoint for operators, and its port.
struct OperationsPort {
    listener: TcpListener,
    address: SocketAddr,
    endpoint: Arc<OperationsEndpoint>,
}

impl OperationsPort {
    /// Serves the endpoint until the task is dropped.
    fn start(self) -> (Arc<OperationsEndpoint>, AbortOnDrop) {
        let serving = tokio::spawn(Arc::clone(&self.endpoint).serve(self.listener));
        (self.endpoint, AbortOnDrop(serving))
    }
}

/// Why a server cannot start. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {}", listen_advice(.setting, .reason))]
    Listen {
        /// The setting with the address.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The keys that verify tokens cannot be read or fetched.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// TLS cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// Reflection cannot describe the contract: a bug.
    #[error("reflection cannot describe the contract: {0}")]
    Reflection(#[from] reflection::Error),
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

/// Checks what a server with these settings needs before it serves calls, and changes nothing:
/// certificates, keys, and the database. Returns what the server would do to the schema, or
/// each reason why it would not serve.
pub async fn check(config: &Config) -> Result<SchemaChange, Vec<StartError>> {
    let mut errors = Vec::<StartError>::new();
    let tls = open_tls(config).await;
    errors.extend(tls.err().map(StartError::from));
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
    /// Reads certificates and keys, and listens on the ports. Connections are accepted only
    /// after all of this.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let tls = open_tls(&config).await?;
        let authenticator = authenticator(&config.auth).await?;
        let (listener, address) = listen("EXPERTISE_LISTEN", config.listen)?;
        let metrics = config.telemetry.metrics_listen;
        let metrics = metrics.map(|address| listen("EXPERTISE_METRICS_LISTEN", address));
        let metrics = metrics.transpose()?;
        let traces = config.telemetry.otlp_endpoint.as_ref().map(Traces::start);
        let traces = traces.transpose()?;
        let call_limits = CallLimits {
            request_timeout: config.limits.request_timeout,
            max_message_bytes: config.limits.max_message_bytes,
            max_inflight_bytes: config.limits.max_inflight_bytes,
        };
        let tracer = traces.as_ref().map(Traces::tracer);
        let middleware = Arc::new(Middleware::new(authenticator, call_limits, tracer));
        let (health, health_service) = HealthMonitor::new().await;
        let health_service = health_service.max_decoding_message_size(MAX_PROBE_BYTES);
        let mut routes = Routes::default().add_service(health_service);
        if config.reflection {
            routes = with_reflection(routes)?;
        }
        let connections = Connections::within_descriptors(config.database.max_connections);
        let operations = metrics.map(|(listener, address)| OperationsPort {
            listener,
            address,
            endpoint: Arc::new(OperationsEndpoint::new(MetricSources {
                middleware: Arc::clone(&middleware),
                health: health.clone(),
                connections: Arc::clone(&connections),
                tls: tls.clone(),
            })),
        });
        Ok(Self {
            config,
            listener,
            address,
            middleware,
            routes: ServerRoutes::new(routes),
            tls,
            connections,
            health,
            operations,
            traces,
        })
    }

    /// The address that the server listens on, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The address that metrics are served on, with the port that was picked.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        let operations = self.operations.as_ref();
        operations.map(|operations| operations.address)
    }

    /// One line with version, addresses and database, without user and password.
    pub fn start_line(&self) -> String {
        let metrics = self.metrics_addr();
        let metrics = metrics.map(|address| format!(", metrics on {address}"));
        format!(
            "expertise {} listening on {} ({}, auth {}{})",
            env!("CARGO_PKG_VERSION"),
            self.address,
            self.config.database.url.address(),
            self.config.auth,
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

    /// Serves until `shutdown` completes. Then health is NOT_SERVING, running calls are
    /// finished and the database is closed, all within the shutdown grace, whatever
    /// peers do.
    ///
    /// `started` is called once the database is open. Until then calls wait for it for five
    /// seconds, and then answer UNAVAILABLE; health is NOT_SERVING. A database that cannot be
    /// used is an error, but one that cannot be reached is waited for.
    pub async fn serve(
        self,
        started: impl FnOnce(),
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), StartError> {
        let Self {
            config,
            listener,
            address: _,
            middleware,
            routes,
            tls,
            connections,
            health,
            operations,
            traces,
        } = self;
        let (drain, draining) = oneshot::channel::<()>();
        let mut serving = AbortOnDrop(tokio::spawn(http2::serve(
            CallService::new(middleware, routes.clone()),
            tls,
            incoming(listener, Arc::clone(&connections)),
            // Ready when `drain` is dropped.
            async { drop(draining.await) },
        )));
        let closing_stalled = tokio::spawn(Arc::clone(&connections).close_stalled_readers());
        let _closing_stalled = AbortOnDrop(closing_stalled);
        // Served to the end, so that the shutdown can be observed.
        let (endpoint, _operations) = operations.map(OperationsPort::start).unzip();

        let mut shutdown = pin!(shutdown);
        let store = tokio::select! {
            store = open_store(&config) => Some(store?),
            () = &mut shutdown => None,
        };
        let mut monitoring = None;
        if let Some(store) = &store {
            let max_message_bytes = config.limits.max_message_bytes;
            routes.open(grpc::routes(store.clone(), Limits { max_message_bytes }));
            if let Some(endpoint) = endpoint {
                endpoint.add_store(store.clone());
            }
            health.start().await;
            let address = config.database.url.address();
            let following = health.clone().follow_database(store.clone(), address);
            let retention = store.clone().enforce_retention();
            monitoring = Some([
                AbortOnDrop(tokio::spawn(following)),
                AbortOnDrop(tokio::spawn(store.clone().follow_changes())),
                AbortOnDrop(tokio::spawn(retention)),
            ]);
            started();
            shutdown.await;
        }
        let deadline = Instant::now() + config.limits.shutdown_grace;
        info!("shutting down");
        health.shut_down().await;
        if let Some(store) = &store {
            store.end_waits();
        }
        drop(drain);
        let drained = drain_until(
            deadline - closing_time(config.limits.shutdown_grace),
            &mut serving,
        );
        tokio::select! {
            () = drained => {}
            () = connections.close_idle() => {}
        }
        drop(monitoring);
        tokio::join!(
            close_store_until(deadline, store),
            end_traces_until(deadline, traces)
        );
        Ok(())
    }
}

async fn open_store(config: &Config) -> Result<Store, OpenError> {
    Store::open(store::Options {
        database: config.database.url.clone(),
        migrate: config.database.migrate,
        max_connections: config.database.max_connections,
        max_message_bytes: config.limits.max_message_bytes,
        history: store::HistoryOptions {
            automatic_revisions: config.history.automatic_revisions,
            checkpoint_interval: config.history.checkpoint_interval,
            deleted_task_retention: config.history.deleted_task_retention,
            codec: grpc::GUIDE_CODEC,
        },
        changes_retention: config.history.changes_retention,
    })
    .await
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn drain_until(deadline: Instant, serving: &mut AbortOnDrop) {
    match timeout_at(deadline, &mut serving.0).await {
        Ok(_) => info!("all connections have ended"),
        Err(_) => warn!("the shutdown grace is over: the remaining connections are cut"),
    }
}

async fn close_store_until(deadline: Instant, store: Option<Store>) {
    if let Some(store) = store
        && timeout_at(deadline, store.close()).await.is_err()
    {
        warn!("the database was not closed within the shutdown grace");
    }
}

async fn end_traces_until(deadline: Instant, traces: Option<Traces>) {
    if let Some(traces) = traces {
        traces.end(deadline).await;
    }
}

/// The part of the grace that is kept for closing the database.
fn closing_time(grace: Duration) -> Duration {
    (grace / 8).min(Duration::from_millis(500))
}

async fn open_tls(config: &Config) -> Result<Option<ServerTls>, TlsError> {
    match &config.tls {
        Some(tls) => ServerTls::open(tls).await.map(Some),
        None => Ok(None),
    }
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

/// The error details. Their files have the names that Google's have, as a client in Python that knows
/// these can know no others with the same messages.
fn error_details() -> FileDescriptorSet {
    let set = FileDescriptorSet::decode(tonic_types::pb::FILE_DESCRIPTOR_SET);
    // The descriptors are valid: a test reads them.
    let mut set = set.unwrap_or_default();
    for name in set.file.iter_mut().filter_map(|file| file.name.as_mut()) {
        if !name.contains('/') {
            name.insert_str(0, "google/rpc/");
        }
    }
    set
}

/// Adds reflection, in both versions that clients use, for the contract, the error
/// details and health.
fn with_reflection(routes: Routes) -> Result<Routes, reflection::Error> {
    let builder = || {
        let sets = [
            proto::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            // Each version of reflection describes both.
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        sets.into_iter().fold(
            reflection::Builder::configure().register_file_descriptor_set(error_details()),
            reflection::Builder::register_encoded_file_descriptor_set,
        )
    };
    let v1 = builder().build_v1()?;
    let v1alpha = builder().build_v1alpha()?;
    Ok(routes
        .add_service(v1.max_decoding_message_size(MAX_PROBE_BYTES))
        .add_service(v1alpha.max_decoding_message_size(MAX_PROBE_BYTES)))
}
