//! All reads and writes of the database.
//!
//! *Invariants:* every query belongs to an account: it is a method of [`Account`] or of a
//! transaction of one, and filters by `account_id` first (but for commands in `whole_database.rs`). A write is done whole or not at
//! all (on SQLite several writes share a COMMIT), and all writes take the one way that
//! `write.rs` describes.

mod connection;
mod error;
mod feed_waits;
mod json_columns;
mod metrics;
mod read;
mod row_reader;
mod schema;
mod step_row;
mod values;
mod whole_database;
mod write;

use std::{sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use sea_orm::{ConnectionTrait, DbBackend, Select, Statement, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::info;

use crate::{
    call_context::CallContext,
    config::DatabaseUrl,
    domain::{
        self, Error,
        history::GuideCodec,
        ids::{AccountId, RequestId},
    },
};

use connection::{ConnectMessage, ConnectOptions, Database, DatabaseConnections};
use feed_waits::FeedWaits;
use metrics::StoreMetrics;
use read::{AnalysisThreads, ExpectedTranslations};
use schema::entity::OfAccount;
use write::{WriteQueue, WriteSlots};

pub use connection::{OpenError, SchemaChange, check, migrate, migrate_distributed};
pub use read::{
    FindingsCall, FindingsCursor, FindingsPage, GuideSource, PreviewCall, PreviewPage,
    ValidationCall, ValidationPage, run_by_weight,
};
pub use schema::newest_migration as schema;
pub use whole_database::{CopiedTable, WholeDatabaseError, accounts, copy, delete_account};
pub use write::{
    CreatedRevision, Import, Imported, NewRevisionRequest, RestoreRequest, RestoredRevision,
};

/// How many KiB of large resources and pages are read at once, those for writes included. The
/// driver holds what is read two or three times. A larger one is read alone.
const MAX_LARGE_READ_KIB: u32 = 64 * 1024;

/// How to reach and use the database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its address.
    pub database: DatabaseUrl,
    /// Whether to bring the schema up to date. Otherwise an old schema is refused.
    pub migrate: bool,
    /// Most connections to PostgreSQL.
    pub max_connections: u32,
    /// Most bytes of a message. Larger resources are not stored, as they could never be
    /// read.
    pub max_message_bytes: usize,
    /// How the history of guides is kept.
    pub history: HistoryOptions,
    /// How long changes are kept.
    pub changes_retention: Duration,
}

/// How the history of guides is kept.
#[derive(Clone, Copy, Debug)]
pub struct HistoryOptions {
    /// Most revisions of a task that are made without a request; 0 makes none.
    pub automatic_revisions: usize,
    /// How long the history of a deleted task is kept; zero keeps none.
    pub deleted_task_retention: Duration,
    /// Encodes the guides.
    pub codec: GuideCodec,
}

#[cfg(test)]
impl HistoryOptions {
    fn for_tests() -> Self {
        Self {
            automatic_revisions: 0,
            deleted_task_retention: Duration::ZERO,
            codec: GuideCodec {
                encode: |_| None,
                decode: |_| None,
                decoded_bytes: |_| None,
            },
        }
    }
}

/// Whether a write is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// The write is committed.
    Store,
    /// The write is run and rolled back.
    ValidateOnly,
}

/// How a retried create is recognised and answered.
pub struct RetryKey<T> {
    /// The request id that the caller chose.
    pub id: RequestId,
    /// Digest of the request, to refuse another request under the same id.
    pub digest: [u8; 32],
    /// Encodes the answer that a retry gets.
    pub encode: EncodeAnswer<T>,
}

/// Encodes an answer, to be stored for retries.
pub type EncodeAnswer<T> = Box<dyn Fn(&T) -> Vec<u8> + Send + Sync>;

/// How a write ended.
#[derive(Debug)]
pub enum WriteOutcome<T> {
    /// It was written by this call.
    Done(T),
    /// An earlier call with this request id wrote it, and got this answer.
    Replayed(Vec<u8>),
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    write_path: WritePath,
}

/// Which ways a write may take. Both leave equal rows, but for the numbers of changes. All writes of a
/// database go the same way, as only then these numbers are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePath {
    /// Without locks first, and under locks where that will not do.
    OptimisticFirst,
    /// For Citus: always under locks, and with no rows attached to another statement, as the rows of
    /// an INSERT inside WITH go through the coordinator. A write keeps its account on its node, and
    /// numbers its changes itself.
    LockedOnly,
}

/// How concurrent writes share the database.
enum Writers {
    /// PostgreSQL: each write takes a slot and a connection.
    Slots(WriteSlots),
    /// SQLite: writes run in turn on one connection and may share a transaction.
    Queue(WriteQueue),
}

struct Inner {
    connections: DatabaseConnections,
    max_message_bytes: usize,
    history: HistoryOptions,
    changes_retention: Duration,
    feed_waits: Arc<FeedWaits>,
    large_reads: Arc<Semaphore>,
    analysis_threads: AnalysisThreads,
    expected_translations: Arc<ExpectedTranslations>,
    metrics: Arc<StoreMetrics>,
}

impl Store {
    /// Connects, creates a missing SQLite file, and brings the schema up to date or
    /// refuses an old one. Waits for a PostgreSQL that cannot be reached.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let Options {
            database,
            migrate,
            max_connections,
            max_message_bytes,
            history,
            changes_retention,
        } = options;
        let options = ConnectOptions {
            max_connections,
            migrate,
            serves: true,
            max_wait: None,
            metrics: Arc::default(),
        };
        let connections = connection::connect(&database, &options).await?;
        let (schema, address) = (schema(), database.address());
        match connections.schema_change {
            SchemaChange::Created => info!("created the schema {schema} in {address}"),
            SchemaChange::Migrated => {
                info!("brought the schema up to date, to {schema}, in {address}");
            }
            SchemaChange::Current => {}
        }
        let metrics = options.metrics;
        Ok(Self {
            write_path: match connections.is_distributed {
                true => WritePath::LockedOnly,
                false => WritePath::OptimisticFirst,
            },
            inner: Arc::new(Inner {
                connections,
                max_message_bytes,
                history,
                changes_retention,
                feed_waits: Arc::default(),
                large_reads: Arc::new(Semaphore::new(MAX_LARGE_READ_KIB as usize)),
                analysis_threads: AnalysisThreads::new(),
                expected_translations: Arc::default(),
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

    /// The data of one account.
    pub fn account(&self, id: &AccountId) -> Account {
        let connections = &self.inner.connections;
        Account {
            store: self.clone(),
            id: id.clone(),
            reader: connections.reader.for_account(id),
            writer: connections.writer.for_account(id),
            subject: String::new(),
        }
    }

    /// The secret that signs page tokens, the same for all servers of a database.
    pub fn page_key(&self) -> &[u8; 32] {
        &self.inner.connections.page_key
    }

    /// How many statements have ended so far, without those that begin and end
    /// transactions.
    pub fn statements(&self) -> u64 {
        self.inner.metrics.statements()
    }

    /// Checks whether the database answers, on a connection of its own. The error says why it
    /// does not, without texts of the driver.
    pub async fn ping(&self) -> Result<(), ConnectMessage> {
        self.inner.connections.probe.check().await
    }

    /// Registers the store's metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.inner.metrics.register(registry);
    }

    /// Updates the [registered](Store::register) metrics of connections.
    pub fn sample_connections(&self) {
        let metrics = &self.inner.metrics;
        self.inner.connections.sample_pools(metrics);
        metrics.set_waiting_calls(self.inner.feed_waits.waiting());
    }

    /// Closes all connections. SQLite then moves its write-ahead log into the file.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }
}

/// The data of one account. Every query is a method of it.
#[derive(Clone)]
pub struct Account {
    store: Store,
    id: AccountId,
    reader: Database,
    writer: Database,
    /// Who works on it; empty if the credentials do not say.
    subject: String,
}

impl Account {
    /// The account's rows of a table.
    fn select<E: OfAccount>(&self) -> Select<E> {
        E::select(&self.id)
    }

    /// The same account, for writes of this caller.
    pub fn with_subject(self, subject: String) -> Self {
        Self { subject, ..self }
    }

    fn feed_waits(&self) -> &Arc<FeedWaits> {
        &self.store.inner.feed_waits
    }

    fn history(&self) -> &HistoryOptions {
        &self.store.inner.history
    }

    fn reader(&self) -> &Database {
        &self.reader
    }

    fn writer(&self) -> &Database {
        &self.writer
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

    /// Waits until a large resource or page of so many bytes may be read, and reserves memory for
    /// it in the response. Others wait until the permit is dropped; the memory is reserved until
    /// the call ends. Fails with [`Error::Overloaded`] if it does not fit beside other calls.
    ///
    /// *Invariant:* a call that waits for it holds no slot, connection or lock, as whoever has a
    /// permit may wait for these.
    async fn large_read_permit(&self, bytes: usize) -> domain::Result<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.store.inner.large_reads);
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        let permit = permits.acquire_many_owned(kib.clamp(1, MAX_LARGE_READ_KIB));
        let permit = permit.await;
        let permit = permit.map_err(|_| Error::Internal("no large reads".to_owned()))?;
        match CallContext::try_reserve_response(bytes) {
            true => Ok(permit),
            false => Err(Error::Overloaded),
        }
    }

    /// Runs pure work of this weight, in KiB, on one of the threads for analyses, unless it is
    /// light.
    pub async fn analyse<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> domain::Result<T> {
        self.analysis_threads()
            .run_once(weight, |_| Some(work()))
            .await
    }

    fn analysis_threads(&self) -> &AnalysisThreads {
        &self.store.inner.analysis_threads
    }

    /// Whether resources of accounts are expected to have translations.
    fn expected_translations(&self) -> &Arc<ExpectedTranslations> {
        &self.store.inner.expected_translations
    }

    fn max_message_bytes(&self) -> usize {
        self.store.inner.max_message_bytes
    }
}

#[cfg(test)]
impl Account {
    /// An account in a new SQLite database in memory.
    #[allow(clippy::expect_used)]
    async fn for_tests() -> Self {
        let config = crate::config::Config::for_tests("sqlite::memory:");
        let store = Store::open(Options {
            database: config.database,
            migrate: true,
            max_connections: 1,
            max_message_bytes: config.max_message_bytes,
            history: HistoryOptions::for_tests(),
            changes_retention: Duration::from_secs(3_600),
        });
        let store = store.await.expect("a database");
        store.account(&AccountId::parse("42").expect("an account"))
    }
}

/// Whether a connection leads to SQLite or to PostgreSQL.
fn backend(db: &impl ConnectionTrait) -> DbBackend {
    db.get_database_backend()
}

/// A statement for both databases. `$1` is the account id; `values` begin at `$2`.
fn statement(
    backend: DbBackend,
    account: &AccountId,
    sql: impl Into<String>,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let account = Value::from(account.as_str());
    Statement::from_sql_and_values(backend, sql, std::iter::once(account).chain(values))
}
