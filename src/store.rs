//! The database: reads and writes of accounts, on SeaORM.
//!
//! *Invariants:* every statement on account data goes through a `Scope`, which filters by the
//! account (except for commands in `whole_database.rs`). A write is one transaction, and all writes
//! work as `write.rs` describes.

mod account;
mod connect;
mod entity;
mod error;
mod feed_waits;
mod json;
mod metrics;
mod read;
mod rows;
mod schema;
mod whole_database;
mod write;

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use tracing::info;

use crate::{
    analysis_threads::AnalysisThreads,
    config::{DatabaseConfig, HistoryConfig, TableLayout},
    domain::{
        history::GuideCodec,
        ids::{AccountId, RequestId},
    },
};

use connect::{ConnectOptions, Connections};
use feed_waits::FeedWaits;
use metrics::StoreMetrics;
use write::Writers;

pub use account::Account;
pub use connect::{OpenError, SchemaChange, check, migrate};
pub use read::{
    FindingsCall, FindingsPage, GuideSource, PreviewCall, PreviewPage, ValidationCall,
    ValidationPage,
};
pub use schema::newest_migration as schema;
pub use whole_database::{WholeDatabaseError, accounts, copy, delete_account};
pub use write::{CreatedRevision, Import, NewRevisionRequest, RestoreRequest};

#[derive(Clone, Debug)]
pub struct Options {
    pub database: DatabaseConfig,
    pub history: HistoryConfig,
    /// The maximum number of bytes of a message. Larger resources are not stored, because they
    /// could never be read.
    pub max_message_bytes: usize,
    /// How long a call may take.
    pub request_timeout: Duration,
    pub guide_codec: GuideCodec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    Store,
    /// A dry run: the write is run and rolled back.
    ValidateOnly,
}

/// How a retried create is recognized and answered.
pub struct RetryKey<T> {
    /// The request id that the caller chose.
    pub id: RequestId,
    /// Digest of the request, to refuse another request under the same id.
    pub digest: [u8; 32],
    /// Encodes the response that a retry gets.
    pub encode: EncodeAnswer<T>,
}

/// Encodes a response, to be stored for retries.
pub type EncodeAnswer<T> = Box<dyn Fn(&T) -> Vec<u8> + Send + Sync>;

#[derive(Debug)]
pub enum WriteOutcome<T> {
    /// It was written by this call.
    Done(T),
    /// An earlier call with this request id wrote it, and got this response.
    Replayed(Vec<u8>),
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    connections: Connections,
    writers: Writers,
    options: Options,
    feed_waits: Arc<FeedWaits>,
    large_reads: Arc<Semaphore>,
    analysis_threads: AnalysisThreads,
    metrics: Arc<StoreMetrics>,
    /// Whether a write failed in an outage, and none has succeeded since.
    writes_fail: AtomicBool,
}

impl Store {
    /// Connects, creates a missing SQLite file, and brings the schema up to date or
    /// refuses an old one. Waits for a PostgreSQL that cannot be reached.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let connect_options = ConnectOptions {
            max_connections: options.database.max_connections,
            migrate: options.database.migrate,
            layout: TableLayout::Plain,
            serves: true,
            request_timeout: options.request_timeout,
        };
        let mut connections = connect::connect(&options.database.url, &connect_options).await?;
        let (schema, address) = (schema(), options.database.url.address());
        match connections.schema_change {
            SchemaChange::Created => info!("created the schema {schema} in {address}"),
            SchemaChange::Migrated => {
                info!("brought the schema up to date, to {schema}, in {address}");
            }
            SchemaChange::Current => {}
        }
        let metrics: Arc<StoreMetrics> = Arc::default();
        metrics.measure(&mut connections.pools.writer);
        metrics.measure(&mut connections.pools.reader);
        Ok(Self {
            inner: Arc::new(Inner {
                writers: Writers::new(&connections, &metrics),
                connections,
                options,
                feed_waits: Arc::default(),
                large_reads: account::large_reads(),
                analysis_threads: AnalysisThreads::new(),
                metrics,
                writes_fail: AtomicBool::new(false),
            }),
        })
    }

    pub fn account(&self, id: &AccountId) -> Account {
        Account {
            store: self.clone(),
            id: id.clone(),
            subject: String::new(),
        }
    }

    /// The secret that signs page tokens, the same for all servers of a database.
    pub fn page_key(&self) -> &[u8; 32] {
        &self.inner.connections.page_key
    }

    /// Checks whether the database answers, even if calls use all connections. The error says why it
    /// does not, without texts of the driver.
    pub async fn ping(&self) -> Result<(), Cow<'static, str>> {
        self.inner.connections.pools.probe.check().await
    }

    /// Registers the metrics of the database as they are now.
    pub fn register_sampled(&self, registry: &mut Registry) {
        let metrics = &self.inner.metrics;
        for (name, pool) in self.inner.connections.named_pools() {
            metrics.sample_pool(name, pool);
        }
        metrics.sample_waiting_calls(self.inner.feed_waits.waiting());
        metrics.register(registry);
    }

    /// Closes all connections. SQLite then moves its write-ahead log into the file.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }
}
