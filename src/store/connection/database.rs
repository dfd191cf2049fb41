//! A pool of connections to a database.

use std::sync::Arc;

use prometheus_client::metrics::histogram::Histogram;
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, prelude::async_trait,
};

use super::{
    driver::DriverPool,
    pool::{Generation, Pool, PooledConnection},
    transaction::{Transaction, TransactionMode},
};
use crate::{
    domain::ids::AccountId,
    store::metrics::{ConnectionWait, StatementKind, StoreMetrics},
};

/// A pool of connections to a database.
#[derive(Clone)]
pub struct Database {
    pub pool: Pool,
    /// The pool's label in metrics.
    pub pool_name: &'static str,
    /// How long calls wait for connections of this pool.
    connection_waits: Histogram,
    pub metrics: Arc<StoreMetrics>,
    /// Whose statements it runs. Accounts take turns with the connections.
    account: AccountId,
}

impl Database {
    /// A pool whose metrics nobody reads.
    pub fn new(pool: DriverPool, generation: Arc<Generation>) -> Self {
        let metrics = Arc::<StoreMetrics>::default();
        let pool_name = "unmeasured";
        Self {
            pool: Pool::new(pool, generation),
            pool_name,
            connection_waits: metrics.connection_waits(pool_name),
            metrics,
            account: AccountId::NONE,
        }
    }

    /// From now on records the waits for connections of this pool, its prepared statements and its
    /// commits of writes. Clones made earlier stay unmeasured.
    pub fn measure(&mut self, pool_name: &'static str, metrics: &Arc<StoreMetrics>) {
        self.pool_name = pool_name;
        self.connection_waits = metrics.connection_waits(pool_name);
        self.metrics = Arc::clone(metrics);
    }

    /// The same pool, for statements of an account.
    pub fn for_account(&self, account: &AccountId) -> Self {
        Self {
            account: account.clone(),
            ..self.clone()
        }
    }

    /// Waits for a connection, and records the wait.
    async fn acquire(&self) -> Result<PooledConnection, DbErr> {
        let _wait = ConnectionWait::begin(&self.connection_waits);
        self.pool.acquire(&self.account).await
    }

    /// Begins a transaction in one round trip.
    pub async fn begin(&self, mode: TransactionMode) -> Result<Transaction, DbErr> {
        let sql = mode.begin_sql(self.pool.backend()).to_owned();
        let mut connection = self.acquire().await?;
        if let Err(error) = connection.begin(sql).await {
            // What follows BEGIN may have failed inside the transaction.
            connection.execute_unprepared("ROLLBACK").await.ok();
            return Err(error);
        }
        let (backend, metrics) = (self.pool.backend(), self.metrics.clone());
        Ok(Transaction::begun(connection, backend, metrics))
    }

    /// Begins a transaction of SeaORM, which its migrator needs. Whoever cancels this must not use
    /// the pool again.
    pub async fn begin_seaorm_transaction(
        &self,
        mode: TransactionMode,
    ) -> Result<DatabaseTransaction, DbErr> {
        let pool = self.pool.for_migrations();
        let options = TransactionOptions {
            sqlite_transaction_mode: (mode == TransactionMode::Write)
                .then_some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let transaction = pool.begin_with_options(options).await?;
        // SQLite always reads one state. Elsewhere this comes before any other statement.
        if mode == TransactionMode::Snapshot && self.get_database_backend() == DbBackend::Postgres {
            let one_state = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
            transaction.execute_unprepared(one_state).await?;
        }
        Ok(transaction)
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Database {
    fn get_database_backend(&self) -> DbBackend {
        self.pool.backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.execute(statement))
            .await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.acquire().await?.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.fetch_optional(statement))
            .await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let kind = StatementKind::of(&statement.sql);
        let mut connection = self.acquire().await?;
        self.metrics
            .measure_statement(kind, connection.fetch_all(statement))
            .await
    }
}
