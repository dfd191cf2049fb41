//! Every query of the service, and nothing but queries.
//!
//! *Invariants:* no query without an account: queries hang off [`Account`],
//! which holds it, and filter by `account_id` first. One write is one
//! transaction, begun in `transaction.rs` and nowhere else.

mod batch;
mod cells;
mod connect;
mod database;
mod entity;
mod fault;
mod import;
mod link;
mod meter;
mod migration;
mod place;
mod queue;
mod retry;
mod role;
mod row;
mod script;
mod step;
mod step_quick;
mod step_read;
mod step_row;
mod step_write;
mod task;
mod task_quick;
mod task_read;
mod task_write;
mod transaction;
mod translation;
mod tree;
mod work;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use sea_orm::ConnectionTrait;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    config::{DatabaseUrl, PostgresUrl},
    domain::ids::{AccountId, RequestId},
};

use connect::{Connections, Freshness, Lagging, Replica, Role};
use database::Database;
use meter::Meter;
use queue::Queue;
use transaction::Turns;

pub use connect::{OpenError, migrate};
pub use import::{Import, Imported};
pub use migration::newest as schema;

/// Bodies of megabytes that are read at once: on the way from the database each is there
/// twice or three times.
const LARGE_READS: usize = 4;

/// Name of the key that seals page tokens.
const PAGE_KEY: &str = "page_token";

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
}

/// How writes share the database.
enum Writers {
    /// PostgreSQL: each has a connection of its own, when it is its turn.
    Turns(Turns),
    /// SQLite: one after the other on one connection, several in one transaction.
    Queue(Queue),
}

struct Inner {
    connections: Connections,
    replica: Option<Replica>,
    page_key: [u8; 32],
    max_message_bytes: usize,
    large_reads: Semaphore,
    meter: Arc<Meter>,
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
        let meter = Arc::<Meter>::default();
        let connections = connect::connect(&database, max_connections, migrate, &meter).await?;
        let page_key = connect::page_key(&connections.reader).await?;
        let role = |url| Role {
            url,
            page_key,
            max_connections,
            meter: Arc::clone(&meter),
        };
        let replica = match replica.map(role) {
            Some(role) => Some(Replica::follow(role).await),
            None => None,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                connections,
                replica,
                page_key,
                max_message_bytes,
                large_reads: Semaphore::new(LARGE_READS),
                meter,
            }),
        })
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
        self.inner.meter.statements()
    }

    /// Whether the database answers, asked over a connection that is for this
    /// alone.
    pub async fn ping(&self) -> bool {
        self.inner.connections.probe.answers().await
    }

    /// Names what is measured of this store in a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.inner.meter.register(registry);
    }

    /// Looks at the connections, for what is [registered](Store::register).
    pub fn look(&self) {
        self.inner.connections.look(&self.inner.meter);
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
    fn lagging(&self) -> Lagging<'_> {
        Lagging {
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

    fn meter(&self) -> &Meter {
        &self.store.inner.meter
    }

    fn freshness(&self) -> &Freshness {
        &self.store.inner.connections.freshness
    }

    /// A turn to read what is large, until it is dropped.
    async fn large_read(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.store.inner.large_reads.acquire().await.ok()
    }

    fn max_message_bytes(&self) -> usize {
        self.store.inner.max_message_bytes
    }
}

/// Which of the two databases a connection speaks to.
fn backend(db: &impl ConnectionTrait) -> sea_orm::DbBackend {
    db.get_database_backend()
}
