//! Access to the data of one account. Statements on account data are built here, so each one filters by
//! the account. Clippy rejects `Entity::find` and similar calls elsewhere.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use opentelemetry::context::FutureExt;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    DeleteMany, IsolationLevel, QueryFilter, Select, Statement, TransactionOptions,
    TransactionTrait, UpdateMany, Value,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use super::{
    Options, Store, entity::AccountEntity, error::StoreError, feed_waits::FeedWaits,
    metrics::StoreMetrics,
};
use crate::{
    analysis_threads::AnalysisThreads,
    call_context::{CallContext, memory_limit},
    domain::{self, Error, SizedResource, ids::AccountId},
};

/// The maximum KiB of large resources and pages that are read concurrently. While one is read,
/// memory holds several copies of it. A larger one is read alone.
const MAX_LARGE_READ_KIB: u32 = 64 * 1024;
/// Each large read counts as at least this much, so that at most four of them hold connections.
const MIN_LARGE_READ_KIB: u32 = MAX_LARGE_READ_KIB / 4;

pub fn large_reads() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_LARGE_READ_KIB as usize))
}

/// The account's rows on a connection.
pub struct Scope<'a, C> {
    pub db: &'a C,
    pub account: &'a AccountId,
}

impl<C> Clone for Scope<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Scope<'_, C> {}

impl<C: ConnectionTrait> Scope<'_, C> {
    pub fn find<E: AccountEntity>(&self) -> Select<E> {
        E::find().filter(E::ACCOUNT.eq(self.account.as_str()))
    }

    pub fn update<E: AccountEntity>(&self) -> UpdateMany<E> {
        E::update_many().filter(E::ACCOUNT.eq(self.account.as_str()))
    }

    pub fn delete<E: AccountEntity>(&self) -> DeleteMany<E> {
        E::delete_many().filter(E::ACCOUNT.eq(self.account.as_str()))
    }

    pub fn backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    /// A statement that SeaORM cannot express. `$1` is the account; `values` begin at `$2`.
    pub fn statement(
        &self,
        sql: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
    ) -> Statement {
        let values = std::iter::once(Value::from(self.account.as_str())).chain(values);
        Statement::from_sql_and_values(self.backend(), sql, values)
    }

    /// Runs such a statement, and returns how many rows it changed.
    pub async fn execute(
        &self,
        sql: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        let statement = self.statement(sql, values);
        Ok(self.db.execute_raw(statement).await?.rows_affected())
    }
}

/// Begins a transaction whose statements all see the same state. It must not be canceled: sqlx 0.9
/// returns a PostgreSQL connection to the pool inside a transaction if BEGIN is canceled.
pub async fn begin_snapshot(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        // SQLite reads one state in any transaction.
        isolation_level: (db.get_database_backend() == DbBackend::Postgres)
            .then_some(IsolationLevel::RepeatableRead),
        ..TransactionOptions::default()
    };
    db.begin_with_options(options).await
}

pub struct Snapshot {
    transaction: DatabaseTransaction,
    account: AccountId,
}

impl Snapshot {
    pub fn scope(&self) -> Scope<'_, DatabaseTransaction> {
        Scope {
            db: &self.transaction,
            account: &self.account,
        }
    }
}

#[derive(Clone)]
pub struct Account {
    pub(super) store: Store,
    pub(super) id: AccountId,
    /// The author of changes; empty if the credentials do not name one.
    pub(super) subject: String,
}

impl Account {
    /// The same account, for writes of this author.
    pub fn with_subject(self, subject: String) -> Self {
        Self { subject, ..self }
    }

    /// For reads of a single statement.
    pub(super) fn reader(&self) -> Scope<'_, DatabaseConnection> {
        Scope {
            db: &self.store.inner.connections.pools.reader,
            account: &self.id,
        }
    }

    /// Begins a read transaction. BEGIN runs in its own task because it must not be canceled.
    pub(super) async fn begin_snapshot(&self) -> Result<Snapshot, StoreError> {
        let db = self.store.inner.connections.pools.reader.clone();
        let begin = async move { begin_snapshot(&db).await };
        let begin = begin.with_current_context().in_current_span();
        let begun = tokio::spawn(begin).await;
        Ok(Snapshot {
            transaction: begun.map_err(|_| Error::Internal("a BEGIN panicked".to_owned()))??,
            account: self.id.clone(),
        })
    }

    pub(super) fn feed_waits(&self) -> &Arc<FeedWaits> {
        &self.store.inner.feed_waits
    }

    pub(super) fn options(&self) -> &Options {
        &self.store.inner.options
    }

    pub(super) fn metrics(&self) -> &StoreMetrics {
        &self.store.inner.metrics
    }

    pub(super) fn max_message_bytes(&self) -> usize {
        self.options().max_message_bytes
    }

    /// Waits until a large resource or page of this size may be read, and reserves memory for it in
    /// the response until the call ends. Fails with [`Error::Overloaded`] if there is not enough
    /// memory at present, and with [`Error::TooLarge`] if there never will be.
    ///
    /// *Invariant:* a call that waits for a permit holds no connection or lock, because the holder of
    /// the permit may be waiting for one.
    pub(super) async fn large_read_permit(
        &self,
        bytes: usize,
    ) -> domain::Result<OwnedSemaphorePermit> {
        let limit = memory_limit();
        if bytes > limit {
            let resource = SizedResource::Call;
            return Err(Error::TooLarge { resource, limit });
        }
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.store.inner.large_reads)
            .acquire_many_owned(kib.clamp(MIN_LARGE_READ_KIB, MAX_LARGE_READ_KIB))
            .await
            .map_err(|_| Error::Internal("no large reads".to_owned()))?;
        CallContext::reserve_response(bytes)?;
        Ok(permit)
    }

    /// Runs CPU-bound work of this weight, in KiB, on an analysis thread unless it is light.
    pub async fn analyze<T: Send + 'static>(
        &self,
        weight: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> domain::Result<T> {
        let threads = self.analysis_threads();
        threads.run_once(weight, |_| Some(work())).await
    }

    pub(super) fn analysis_threads(&self) -> &AnalysisThreads {
        &self.store.inner.analysis_threads
    }
}
