//! Sequences the entries of the change feed, and deletes old ones.
//!
//! A write adds its entries with a `seq`, which it draws while it holds all of its locks, and
//! without a position. Readers give positions to new entries while they hold the lock of the
//! account's row in `change_feeds`, which nothing else locks:
//!
//! 1. *The feed skips no entry.* Positions are given in the transaction that moves `head`, by a
//!    statement whose snapshot is taken after the lock. So every snapshot sees the positions up to
//!    `head`, and no position below it appears later.
//! 2. *Order.* If a write waited for another one, or read what that one wrote, it draws its `seq` after
//!    the other has drawn all of its own.
//!
//! Neither depends on a clock, on ids of transactions, or on how many servers write. If a server
//! dies between a write and its sequencing, the next reader sequences the entries.

use std::time::Duration;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DbBackend, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, LockBehavior, LockType},
};
use tokio::time::sleep;
use tracing::warn;
use uuid::Uuid;

use super::{
    Operation, Tx,
    batch::{Batch, existing},
    tx::now,
};
use crate::{
    domain::{Error, Outage, Result, changes::Changes, time::Timestamp},
    store::{
        Account, WriteMode,
        entity::{
            change::{Column, Entity},
            change_feed,
        },
        error::StoreError,
        read::has_new_changes,
    },
};

/// The approximate number of entries that one transaction sequences.
const WINDOW_ENTRIES: i64 = 5_000;
/// The maximum number of entries that one transaction deletes.
const MAX_PRUNED: u64 = 1_000;
/// How many times pruning finds the feed locked before it is left to a later write.
const PRUNING_ATTEMPTS: u32 = 100;
const PRUNING_PAUSE: Duration = Duration::from_millis(100);
/// After this many writes, a server prunes the feed of the account that made the last one.
const WRITES_PER_PRUNING: u64 = 256;

/// Gives positions from `$2` on to the oldest entries without one, at most `$3` of them: whole
/// transactions, ordered by the first `seq` of each. If a transaction was read only in part, neither it
/// nor any transaction that begins after it is numbered. If all entries were read, every transaction is
/// complete.
///
/// It is written in SQL because its three steps with window functions are easier to check that way. It
/// is an upsert, which finds each entry by its key: an UPDATE with a join may compare all pairs,
/// depending on PostgreSQL's statistics. Every entry exists, so none is inserted.
const NUMBER_CHANGES_SQL: &str = "WITH new AS (SELECT seq, transaction_id, transaction_size FROM changes \
      WHERE account_id = $1 AND position IS NULL ORDER BY seq LIMIT $3), \
    of_transaction AS (SELECT seq, transaction_id, transaction_size, MIN(seq) OVER t AS first_seq, \
      COUNT(*) OVER t AS present FROM new WINDOW t AS (PARTITION BY transaction_id)), \
    numbered AS (SELECT seq, transaction_id, $2 + ROW_NUMBER() OVER (ORDER BY first_seq, seq) AS position \
      FROM of_transaction WHERE (SELECT COUNT(*) FROM new) < $3 OR first_seq < COALESCE( \
        (SELECT MIN(first_seq) FROM of_transaction WHERE present < transaction_size), \
        9223372036854775807)) \
    INSERT INTO changes (account_id, seq, position, changed_ts, transaction_id, task, \
      transaction_size, step_count, kind, rpc, fields, subject) \
    SELECT $1, seq, position, 0, transaction_id, transaction_id, 0, 0, 0, 0, '', '' FROM numbered \
    WHERE true ON CONFLICT ({key}) DO UPDATE SET position = excluded.position";

impl Account {
    /// Gives positions to entries that have none. Returns whether at least one got a position. None
    /// does if another transaction is sequencing the feed, or the database takes no writes.
    pub(in crate::store) async fn sequence_changes(&self) -> Result<bool> {
        let sequence = Sequence { prune_before: None };
        let done = match self.write(sequence, WriteMode::Store).await {
            Ok(done) => done.unwrap_or_default(),
            // Reads may still work.
            Err(Error::Unavailable(
                Outage::ReadOnly | Outage::Full | Outage::Disk | Outage::Locked,
            )) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.were_sequenced(done.numbered);
        Ok(done.numbered > 0)
    }

    fn were_sequenced(&self, numbered: u64) {
        self.metrics().sequenced_changes.inc_by(numbered);
        if numbered > 0 {
            // Readers that found the feed locked may be waiting.
            self.feed_waits().wake(&self.id);
        }
    }

    /// Called after each write that added entries.
    pub(super) fn changes_were_written(&self) {
        let waits = self.feed_waits();
        waits.wake(&self.id);
        if waits.count_write().is_multiple_of(WRITES_PER_PRUNING) {
            let account = self.clone();
            tokio::spawn(async move {
                if let Err(error) = account.prune_changes().await {
                    // A later write tries again.
                    warn!(%error, "old changes were not deleted");
                }
            });
        }
    }

    /// Deletes the entries that are older than the retention, except the newest one. It first sequences
    /// the entries that nobody has read, except the last ones. A server prunes one account at a
    /// time; a later write tries again for another.
    async fn prune_changes(&self) -> Result<()> {
        let Ok(_pruning) = self.feed_waits().pruning.try_lock() else {
            return Ok(());
        };
        let retention = self.options().history.changes_retention.as_micros();
        let retention = i64::try_from(retention).unwrap_or(i64::MAX);
        let prune_before = Some(Timestamp(now().0.saturating_sub(retention)));
        let mut attempts = 0;
        while attempts < PRUNING_ATTEMPTS {
            let sequence = Sequence { prune_before };
            let Some(done) = self.write(sequence, WriteMode::Store).await? else {
                // A reader is sequencing the feed, which is frequent with many readers.
                attempts += 1;
                sleep(PRUNING_PAUSE).await;
                continue;
            };
            self.were_sequenced(done.numbered);
            self.metrics().pruned_changes.inc_by(done.pruned);
            // Concurrent writes add some new entries each time.
            if done.numbered < WINDOW_ENTRIES.unsigned_abs() / 2 && done.pruned < MAX_PRUNED {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Gives positions to new entries, and deletes old ones. It returns no [`Changes`], but writes as
/// soon as it holds the lock.
struct Sequence {
    /// Entries that are older are deleted.
    prune_before: Option<Timestamp>,
}

/// What was done to the feed.
#[derive(Clone, Copy, Default)]
struct Sequenced {
    numbered: u64,
    pruned: u64,
}

impl Operation for Sequence {
    /// `None` if another transaction has locked the feed.
    type Answer = Option<Sequenced>;

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Option<Sequenced>), StoreError> {
        use change_feed::{Column, Entity};
        let Some(feed) = tx.lock_feed().await? else {
            return Ok((Changes::default(), None));
        };
        let numbered = tx.number_changes(feed.head).await?;
        let head = feed.head.saturating_add_unsigned(numbered);
        let mut update = tx.scope().update::<Entity>();
        update = update.col_expr(Column::Head, Expr::value(head));
        let mut pruned = 0;
        if let Some(before) = self.prune_before
            && let Some((last, transaction)) = tx.find_expired(feed.pruned, head, before).await?
        {
            pruned = tx.delete_changes(last).await?;
            update = update
                .col_expr(Column::Pruned, Expr::value(last))
                .col_expr(Column::PrunedTransaction, Expr::value(transaction));
        }
        if numbered > 0 || pruned > 0 {
            update.exec(tx.db()).await?;
        }
        let sequenced = Sequenced { numbered, pruned };
        Ok((Changes::default(), Some(sequenced)))
    }
}

impl Tx<'_> {
    /// Locks the feed of the account, and creates it if it is missing; `None` if another
    /// transaction has locked it.
    async fn lock_feed(&self) -> Result<Option<change_feed::Model>, StoreError> {
        let feeds = self.find::<change_feed::Entity>();
        let feeds = feeds.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        if let Some(feed) = feeds.clone().all(self.db()).await?.pop() {
            return Ok(Some(feed));
        }
        let feed = change_feed::ActiveModel {
            account_id: Set(self.context.account.as_str().to_owned()),
            head: Set(0),
            pruned: Set(0),
            pruned_transaction: Set(Uuid::nil()),
        };
        let mut batch = Batch::new(self);
        let keep = existing::<change_feed::ActiveModel>()
            .do_nothing()
            .to_owned();
        batch.insert_rows(vec![feed], Some(keep));
        batch.send().await?;
        Ok(feeds.all(self.db()).await?.pop())
    }

    /// Gives positions after `head` to new entries, and returns how many got one. The first
    /// transaction may have more entries than a window.
    async fn number_changes(&self, head: i64) -> Result<u64, StoreError> {
        let key = match self.backend() {
            DbBackend::Sqlite => "seq",
            _ => "account_id, seq",
        };
        let number = NUMBER_CHANGES_SQL.replace("{key}", key);
        let mut window = WINDOW_ENTRIES;
        loop {
            let values = [head.into(), window.into()];
            let numbered = self.scope().execute(&number, values).await?;
            if numbered > 0 || !has_new_changes(self.scope()).await? {
                return Ok(numbered);
            }
            window = window.saturating_mul(2);
        }
    }

    /// The position and transaction of the last entry to delete: of the oldest entries, at most
    /// [`MAX_PRUNED`], the newest one that was made before a time. Never the entry at `head`.
    async fn find_expired(
        &self,
        pruned: i64,
        head: i64,
        before: Timestamp,
    ) -> Result<Option<(i64, Uuid)>, StoreError> {
        let oldest: Vec<(i64, Uuid, i64)> = self
            .find::<Entity>()
            .select_only()
            .columns([Column::Position, Column::TransactionId, Column::ChangedTs])
            .filter(Column::Position.gt(pruned))
            .filter(Column::Position.lt(head))
            .order_by_asc(Column::Position)
            .limit(MAX_PRUNED)
            .into_tuple()
            .all(self.db())
            .await?;
        let expired = oldest.into_iter().take_while(|(_, _, at)| *at < before.0);
        Ok(expired
            .last()
            .map(|(last, transaction, _)| (last, transaction)))
    }

    /// Deletes the entries up to a position, and returns how many were deleted.
    async fn delete_changes(&self, last: i64) -> Result<u64, StoreError> {
        let delete = self.scope().delete::<Entity>();
        let deleted = delete.filter(Column::Position.lte(last)).exec(self.db());
        Ok(deleted.await?.rows_affected)
    }
}
