//! Every query of the service, and nothing but queries.
//!
//! *Invariants:* no query without an account: queries hang off [`Account`], which holds
//! it, and filter by `account_id` first. One write is one transaction, and all writes go
//! one way: see `write.rs`.

mod connection;
mod error;
mod json_columns;
mod metrics;
mod read;
mod schema;
mod write;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    config::{DatabaseUrl, PostgresUrl},
    domain::ids::{AccountId, RequestId},
};

use connection::{
    ConnectionEpoch, Connections, Database, Replica, ReplicaOrPrimary, ReplicaSettings,
};
use metrics::StoreMetrics;
use write::{WriteQueue, WriteSlots};

pub use connection::{OpenError, migrate};
pub use schema::newest as schema;
pub use write::{Import, Imported};

/// Steps of megabytes that are read at once: the driver holds each two or three times.
const MAX_LARGE_READS: usize = 4;

/// How to reach the database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which one.
    pub database: DatabaseUrl,
    /// A replica of it, for lists, exports and translation work. It may lag behind
    /// and may be away; one that is no replica of this database is not asked.
    pub replica: Option<PostgresUrl>,
    /// Whether to bring its schema up to date; if not, an old one is refused.
    pub migrate: bool,
    /// Most connections to PostgreSQL.
    pub max_connections: u32,
    /// Most bytes of a message: what would be larger is not stored, as it could
    /// never be read.
    pub max_message_bytes: usize,
}

/// Whether a write stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is stored.
    Store,
    /// Everything is done and taken back.
    ValidateOnly,
}

/// How a retry of a create is recognised and answered.
pub struct Retry<T> {
    /// The caller's id of the intent.
    pub id: RequestId,
    /// Stands for the payload.
    pub digest: [u8; 32],
    /// What is kept to answer a retry with.
    pub record: Record<T>,
}

/// Turns an outcome into what is kept of it.
pub type Record<T> = Box<dyn Fn(&T) -> Vec<u8> + Send + Sync>;

/// The outcome of a create.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It was done now.
    Done(T),
    /// It was done before; what was kept of it.
    Replayed(Vec<u8>),
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    write_path: WritePath,
}

/// Which ways a write may take. Both leave equal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePath {
    /// Without locks first, and under locks where that will not do.
    OptimisticFirst,
    /// Under locks alone: slower, for comparing the two.
    LockedOnly,
}

/// How writes share the database.
enum Writers {
    /// PostgreSQL: each has a slot and a connection of its own.
    Slots(WriteSlots),
    /// SQLite: one after the other on one connection, several in one transaction.
    Queue(WriteQueue),
}

struct Inner {
    connections: Connections,
    replica: Option<Replica>,
    page_key: [u8; 32],
    max_message_bytes: usize,
    large_reads: Semaphore,
    metrics: Arc<StoreMetrics>,
}

impl Store {
    /// Connects, creates the SQLite file if there is none, and brings the
    /// schema up to date or refuses an old one.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let Options {
            database,
            replica,
            migrate,
            max_connections,
            max_message_bytes,
        } = options;
        let metrics = Arc::<StoreMetrics>::default();
        let connections =
            connection::connect(&database, max_connections, migrate, &metrics).await?;
        let page_key = connection::page_key(&connections.reader).await?;
        let settings = |url| ReplicaSettings {
            url,
            page_key,
            max_connections,
            metrics: Arc::clone(&metrics),
        };
        let replica = match replica.map(settings) {
            Some(settings) => Some(Replica::follow(settings).await),
            None => None,
        };
        Ok(Self {
            write_path: WritePath::OptimisticFirst,
            inner: Arc::new(Inner {
                connections,
                replica,
                page_key,
                max_message_bytes,
                large_reads: Semaphore::new(MAX_LARGE_READS),
                metrics,
            }),
        })
    }

    /// The same database, whose writes go this way.
    pub fn with_write_path(&self, write_path: WritePath) -> Self {
        Self {
            write_path,
            ..self.clone()
        }
    }

    /// The database as one account sees it.
    pub fn account(&self, id: &AccountId) -> Account {
        Account {
            store: self.clone(),
            id: id.clone(),
        }
    }

    /// The secret under which page tokens are sealed, the same for every server
    /// of a database.
    pub fn page_key(&self) -> &[u8; 32] {
        &self.inner.page_key
    }

    /// How many statements this store has sent so far, not counting those that
    /// begin and end transactions.
    pub fn statements(&self) -> u64 {
        self.inner.metrics.statements()
    }

    /// Whether the database answers, asked over a connection that is for this
    /// alone.
    pub async fn ping(&self) -> bool {
        self.inner.connections.probe.answers().await
    }

    /// Names what is measured of this store in a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.inner.metrics.register(registry);
    }

    /// Looks at the connections, for what is [registered](Store::register).
    pub fn sample_pools(&self) {
        self.inner.connections.sample_pools(&self.inner.metrics);
    }

    /// Closes all connections; on SQLite the write-ahead log is folded in.
    pub async fn close(&self) {
        if let Some(replica) = &self.inner.replica {
            replica.close().await;
        }
        self.inner.connections.close().await;
    }
}

/// The database as one account sees it. No query can be made without it.
#[derive(Clone)]
pub struct Account {
    store: Store,
    id: AccountId,
}

impl Account {
    fn reader(&self) -> &Database {
        &self.store.inner.connections.reader
    }

    /// For reads that may lag.
    fn lagging(&self) -> ReplicaOrPrimary<'_> {
        ReplicaOrPrimary {
            primary: self.reader(),
            replica: self.store.inner.replica.as_ref().and_then(Replica::current),
        }
    }

    fn writer(&self) -> &Database {
        &self.store.inner.connections.writer
    }

    fn writers(&self) -> &Writers {
        &self.store.inner.connections.writers
    }

    fn write_path(&self) -> WritePath {
        self.store.write_path
    }

    fn metrics(&self) -> &StoreMetrics {
        &self.store.inner.metrics
    }

    fn connection_epoch(&self) -> &ConnectionEpoch {
        &self.store.inner.connections.epoch
    }

    /// A permit to read what is large, until it is dropped.
    async fn large_read_permit(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.store.inner.large_reads.acquire().await.ok()
    }

    fn max_message_bytes(&self) -> usize {
        self.store.inner.max_message_bytes
    }
}

/// Which of the two databases a connection speaks to.
fn backend(db: &impl ConnectionTrait) -> DbBackend {
    db.get_database_backend()
}

/// A statement whose placeholders `$1…` both databases understand. `$1` is the account
/// id.
fn statement(
    backend: DbBackend,
    account: &AccountId,
    sql: impl Into<String>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let account = Value::from(account.as_str());
    Statement::from_sql_and_values(backend, sql, std::iter::once(account).chain(values))
}

/// So many placeholders from a number on, as a list.
fn placeholders(first: usize, count: usize) -> String {
    let placeholders: Vec<String> = (first..first + count).map(|n| format!("${n}")).collect();
    placeholders.join(", ")
}
