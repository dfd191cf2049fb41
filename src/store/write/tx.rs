//! A write in progress: its transaction, its account, and what decisions need.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait, QueryOrder,
    QuerySelect, Select, TryGetable,
};

use super::ids::new_id;
use crate::{
    domain::{decide::WriteContext, history::GuideCodec, ids::TaskId, time::Timestamp},
    store::{
        Account, WriteMode,
        account::Scope,
        entity::{AccountEntity, change_feed},
        error::StoreError,
        read::MaxBytes,
    },
};

/// A write in progress.
pub struct Tx<'t> {
    /// Its transaction. Others may share it on SQLite.
    db: &'t DatabaseTransaction,
    /// The account, and the time of the write.
    pub context: WriteContext,
    pub mode: WriteMode,
    /// How many bytes of rows the write may read.
    pub max_bytes: MaxBytes,
    pub guide_codec: GuideCodec,
    /// Whether Citus distributes the tables.
    pub is_distributed: bool,
    pub checkpoint_interval: Duration,
    /// When the guides of locked tasks, and of the tasks of locked steps, were last known to be kept. None for
    /// a managed task.
    pub kept_ts: Mutex<BTreeMap<TaskId, Option<i64>>>,
}

impl Account {
    /// The context for the decision of a write that begins now.
    pub(in crate::store) fn write_context(&self) -> WriteContext {
        let history = &self.options().history;
        WriteContext {
            account: self.id.clone(),
            subject: self.subject.clone(),
            now: now(),
            new_id,
            max_message_bytes: self.max_message_bytes(),
            automatic_revisions: history.automatic_revisions,
            keeps_deleted_tasks: !history.deleted_task_retention.is_zero(),
        }
    }
}

impl<'t> Tx<'t> {
    pub fn new(
        account: &Account,
        db: &'t DatabaseTransaction,
        mode: WriteMode,
        max_bytes: MaxBytes,
    ) -> Self {
        Self {
            db,
            context: account.write_context(),
            mode,
            max_bytes,
            guide_codec: account.options().guide_codec,
            is_distributed: account.store.inner.connections.is_distributed,
            checkpoint_interval: account.options().history.checkpoint_interval,
            kept_ts: Mutex::default(),
        }
    }

    pub fn scope(&self) -> Scope<'_, DatabaseTransaction> {
        Scope {
            db: self.db,
            account: &self.context.account,
        }
    }

    /// The connection, for statements that a [`Scope`] has built.
    pub fn db(&self) -> &'t DatabaseTransaction {
        self.db
    }

    pub fn find<E: AccountEntity>(&self) -> Select<E> {
        self.scope().find()
    }

    /// Reads one column of the selected rows.
    pub async fn read_column<E: EntityTrait, T: TryGetable + Send>(
        &self,
        rows: Select<E>,
        column: E::Column,
    ) -> Result<Vec<T>, StoreError> {
        let values = rows.select_only().column(column).into_tuple();
        Ok(values.all(self.db).await?)
    }

    pub fn backend(&self) -> DbBackend {
        self.db.get_database_backend()
    }

    /// Locks the selected rows in the order of their ids. On SQLite the transaction itself is the lock,
    /// and rows are unordered.
    pub fn locked<E: AccountEntity>(&self, rows: Select<E>, id: E::Column) -> Select<E> {
        match self.backend() {
            DbBackend::Postgres => rows.order_by_asc(id).lock_exclusive(),
            _ => rows,
        }
    }

    /// Prevents Citus from moving the account to another node before the transaction ends. A move waits
    /// for transactions with a modifying statement, even if it changes no row, but not for row locks.
    /// Without this, another write could wait for such a lock, read the stale row on the old node, and
    /// overwrite the row that was written after the move.
    pub async fn keep_on_node(&self) -> Result<(), StoreError> {
        if self.is_distributed {
            let no_row = self.scope().delete::<change_feed::Entity>();
            let no_row = sea_orm::QueryFilter::filter(no_row, change_feed::Column::Head.lt(0));
            no_row.exec(self.db).await?;
        }
        Ok(())
    }
}

pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
