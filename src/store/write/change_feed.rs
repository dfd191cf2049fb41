//! Puts the entries of the change feed in order, and deletes old ones.
//!
//! A write adds its entries with a `seq`, which it draws while it holds all of its locks, and
//! without a position. Whoever reads gives positions to what is new, under the lock of the
//! account's row in `change_feeds`, which nothing else locks:
//!
//! 1. *Nothing is skipped.* Positions are given in the transaction that moves `head`, by a
//!    statement whose snapshot is taken after the lock. So every snapshot sees the positions up to
//!    `head`, and none below appears later.
//! 2. *Order.* A write that waited for another one, or read what it left, draws its `seq` after that
//!    one has drawn all of its own. On Citus, where several nodes would draw, it takes numbers above
//!    those that it sees.
//!
//! Neither depends on a clock, on ids of transactions, or on how many servers write. A server that
//! dies between a write and its sequencing leaves the entries to the next reader.

use std::time::Duration;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{LockBehavior, LockType},
};
use tokio::time::sleep;
use tracing::warn;
use uuid::Uuid;

use super::{
    Operation,
    statements::FeedNumbers,
    transaction::{Tx, now},
};
use crate::{
    domain::{Error, Outage, Result, changes::Changes, decide::WriteContext, time::Timestamp},
    store::{
        Account, WriteMode,
        error::StoreError,
        schema::entity::{change, change_feed},
    },
};

/// About how many entries one transaction puts in order.
const WINDOW: i64 = 5_000;
/// The most entries that one transaction deletes.
const MAX_PRUNED: u64 = 1_000;
/// After how many writes of a server the feed of the account that made the last one is pruned.
const WRITES_PER_PRUNING: u64 = 256;
/// How often pruning finds the feed locked before it is left to a later write.
const PRUNING_ATTEMPTS: u32 = 100;
const PRUNING_PAUSE: Duration = Duration::from_millis(100);

/// Gives positions from `$2` on to the oldest entries without one, at most `$3` of them: whole
/// transactions, ordered by the first `seq` of each. Of a transaction that was read in part, and of
/// those that begin after it, none is numbered; unless all entries were read, as then every
/// transaction is complete.
///
/// It is an upsert, which finds each entry by its key: an UPDATE with a join may compare all pairs,
/// depending on PostgreSQL's statistics. Every entry exists, so that none is inserted.
const NUMBER: &str = "WITH new AS (SELECT seq, transaction_id, transaction_size FROM changes \
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

const MOVE_HEAD: &str = "UPDATE change_feeds SET head = $2 WHERE account_id = $1";
const MOVE_MARK: &str =
    "UPDATE change_feeds SET pruned = $2, pruned_transaction = $3 WHERE account_id = $1";
const DELETE: &str = "DELETE FROM changes WHERE account_id = $1 AND position <= $2";

impl Account {
    /// Gives positions to entries that have none. Returns whether it did to at least one; not if
    /// somebody else is doing so, or the database takes no writes.
    pub(in crate::store) async fn sequence_changes(&self) -> Result<bool> {
        let sequence = Sequence { prune_before: None };
        let done = match self.write(sequence, WriteMode::Store).await {
            Ok(done) => done.unwrap_or_default(),
            Err(Error::Unavailable(Outage::ReadOnly)) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.were_sequenced(done.numbered);
        Ok(done.numbered > 0)
    }

    fn were_sequenced(&self, numbered: u64) {
        self.metrics().count_sequenced_changes(numbered);
        if numbered > 0 {
            // Others may wait, who found this one at work.
            self.feed_waits().wake(&self.id);
        }
    }

    /// Called after each write that added entries.
    pub(super) fn changes_were_written(&self) {
        self.feed_waits().wake(&self.id);
        if self
            .feed_waits()
            .count_write()
            .is_multiple_of(WRITES_PER_PRUNING)
        {
            let account = self.clone();
            tokio::spawn(async move {
                if let Err(error) = account.prune_changes().await {
                    // A later write tries again.
                    warn!(%error, "old changes were not deleted");
                }
            });
        }
    }

    /// Deletes the entries that are older than the retention, but for the newest one. It first puts
    /// in order what nobody has read, but for the last ones. A server does so for one account at a
    /// time; a later write tries again for another.
    async fn prune_changes(&self) -> Result<()> {
        let Ok(_pruning) = self.feed_waits().pruning.try_lock() else {
            return Ok(());
        };
        let retention = self.store.inner.changes_retention.as_micros();
        let retention = i64::try_from(retention).unwrap_or(i64::MAX);
        let prune_before = Some(Timestamp(now().0.saturating_sub(retention)));
        let mut attempts = 0;
        while attempts < PRUNING_ATTEMPTS {
            let sequence = Sequence { prune_before };
            let Some(done) = self.write(sequence, WriteMode::Store).await? else {
                // A reader puts changes in order. With many readers one often does.
                attempts += 1;
                sleep(PRUNING_PAUSE).await;
                continue;
            };
            self.were_sequenced(done.numbered);
            self.metrics().count_pruned_changes(done.pruned);
            // Some new entries are there again each time while others write.
            if done.numbered < WINDOW.unsigned_abs() / 2 && done.pruned < MAX_PRUNED {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Gives positions to new entries, and deletes old ones. It changes nothing that [`Changes`] name,
/// and does its work under the lock that it takes.
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
    /// `None` if somebody else has locked the feed.
    type Snapshot = Option<Sequenced>;
    type Answer = Option<Sequenced>;

    async fn read_locked(&self, tx: &Tx) -> Result<Option<Sequenced>, StoreError> {
        let Some(feed) = tx.lock_feed().await? else {
            return Ok(None);
        };
        let numbered = tx.number_changes(feed.head).await?;
        let head = feed.head.saturating_add_unsigned(numbered);
        if numbered > 0 {
            tx.execute(MOVE_HEAD, [head.into()]).await?;
        }
        let pruned = match self.prune_before {
            Some(before) => tx.prune_changes(feed.pruned, head, before).await?,
            None => 0,
        };
        Ok(Some(Sequenced { numbered, pruned }))
    }

    fn decide(
        &self,
        done: Option<Sequenced>,
        _: &WriteContext,
    ) -> Result<(Changes, Option<Sequenced>)> {
        Ok((Changes::default(), done))
    }
}

impl Tx {
    /// Keeps the account on its node until the transaction ends. Citus waits with a move for
    /// transactions that modify something, even no row, but not for those that lock rows: another
    /// write could wait for such a lock, read the row that was left behind, and write it over the one
    /// that was written after the move.
    pub(in crate::store) async fn keep_on_node(&self) -> Result<(), StoreError> {
        let no_row = "DELETE FROM change_feeds WHERE account_id = $1 AND head < 0";
        self.execute(no_row, []).await?;
        Ok(())
    }

    /// The numbers of a transaction that holds all of its locks.
    pub(in crate::store) async fn next_numbers(
        &self,
        transaction: Uuid,
    ) -> Result<FeedNumbers, StoreError> {
        let last: Option<i64> = self
            .select::<change::Entity>()
            .select_only()
            .column(change::Column::Seq)
            .order_by_desc(change::Column::AccountId)
            .order_by_desc(change::Column::Seq)
            .limit(1)
            .into_tuple()
            .one(&self.db)
            .await?;
        Ok(FeedNumbers::above(last.unwrap_or_default(), transaction))
    }

    /// Locks the feed of the account; `None` if somebody else has locked it, or has just made it.
    async fn lock_feed(&self) -> Result<Option<change_feed::Model>, StoreError> {
        let feed = self
            .select::<change_feed::Entity>()
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .one(&self.db)
            .await?;
        if feed.is_some() {
            return Ok(feed);
        }
        let insert = "INSERT INTO change_feeds (account_id, head, pruned, pruned_transaction) \
                      VALUES ($1, 0, 0, $2) ON CONFLICT (account_id) DO NOTHING";
        let inserted = self.execute(insert, [Uuid::nil().into()]).await?;
        Ok((inserted > 0).then(|| change_feed::Model {
            account_id: self.account().as_str().to_owned(),
            head: 0,
            pruned: 0,
            pruned_transaction: Uuid::nil(),
        }))
    }

    /// Gives positions behind `head` to new entries, and returns how many got one. The first
    /// transaction may have more entries than a window.
    async fn number_changes(&self, head: i64) -> Result<u64, StoreError> {
        let key = match self.backend() {
            DbBackend::Sqlite => "seq",
            _ => "account_id, seq",
        };
        let number = NUMBER.replace("{key}", key);
        let mut window = WINDOW;
        loop {
            let numbered = self.execute(&number, [head.into(), window.into()]).await?;
            if numbered > 0 || !self.has_new_changes().await? {
                return Ok(numbered);
            }
            window = window.saturating_mul(2);
        }
    }

    async fn has_new_changes(&self) -> Result<bool, StoreError> {
        let first: Option<i64> = self
            .select::<change::Entity>()
            .select_only()
            .column(change::Column::Seq)
            .filter(change::Column::Position.is_null())
            .limit(1)
            .into_tuple()
            .one(&self.db)
            .await?;
        Ok(first.is_some())
    }

    /// Deletes the oldest entries as long as they were made before a time, but for the one at
    /// `head`, and moves the mark. Returns how many they were.
    async fn prune_changes(
        &self,
        pruned: i64,
        head: i64,
        before: Timestamp,
    ) -> Result<u64, StoreError> {
        use change::Column;
        let oldest: Vec<(i64, Uuid, i64)> = self
            .select::<change::Entity>()
            .select_only()
            .columns([Column::Position, Column::TransactionId, Column::ChangedTs])
            .filter(Column::Position.gt(pruned))
            .filter(Column::Position.lt(head))
            .order_by_asc(Column::Position)
            .limit(MAX_PRUNED)
            .into_tuple()
            .all(&self.db)
            .await?;
        let expired = oldest.iter().take_while(|(_, _, at)| *at < before.0);
        let Some((position, transaction, _)) = expired.last() else {
            return Ok(0);
        };
        let deleted = self.execute(DELETE, [(*position).into()]).await?;
        let mark = [(*position).into(), (*transaction).into()];
        self.execute(MOVE_MARK, mark).await?;
        Ok(deleted)
    }

    /// Runs a statement, whose `$1` is the account. Returns how many rows it has changed.
    async fn execute(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = sea_orm::Value>,
    ) -> Result<u64, StoreError> {
        let statement = self.statement(sql, values);
        Ok(self.db.execute_raw(statement).await?.rows_affected())
    }
}
