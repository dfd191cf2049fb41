//! Reads the change feed of an account.

use sea_orm::{
    ColumnTrait, ConnectionTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use crate::{
    domain::{
        Error, Precondition, Result,
        change_feed::{
            ChangeKind, FeedCursor, FeedEntry, FeedPage, FeedStart, WriteRpc, split_fields,
        },
        etag::Etag,
        ids::{StepId, TaskId},
        page::PageSize,
        time::Timestamp,
    },
    store::{Account, account::Scope, entity::change, error::StoreError},
};

/// The maximum number of entries that a call looks at.
const MAX_EXAMINED: usize = 2_000;
/// The maximum number of transactions in which a call with `CHANGE_START_NOW` sequences entries.
const MAX_ROUNDS_TO_NOW: usize = 20;

/// Selects the state of the feed and at most `$3` entries from position `$2` on. If `$2` is NULL,
/// selects the newest entry instead. Returns at least one row. It is one statement because callers
/// poll, and because a cursor must not skip entries that are sequenced or deleted between two
/// statements.
///
/// To find out whether there are new entries, it selects the first of them. For EXISTS, PostgreSQL
/// may read the whole table if one account has most of its rows.
const PAGE_SQL: &str = "SELECT COALESCE(f.head, 0) AS head, COALESCE(f.pruned, 0) AS pruned, \
      f.pruned_transaction, \
      (SELECT n.seq FROM changes n WHERE n.account_id = $1 AND n.position IS NULL \
        ORDER BY n.account_id, n.seq LIMIT 1) IS NOT NULL AS has_new, c.* \
    FROM (SELECT 1 AS one) o LEFT JOIN change_feeds f ON f.account_id = $1 \
    LEFT JOIN (SELECT * FROM changes WHERE account_id = $1 AND position >= \
        COALESCE($2, (SELECT head FROM change_feeds WHERE account_id = $1), 0) \
      ORDER BY position LIMIT $3) c ON true \
    ORDER BY c.position";

/// A row of [`PAGE_SQL`].
#[derive(FromQueryResult)]
struct FeedRow {
    #[sea_orm(nested)]
    state: FeedState,
    /// An entry that has a position.
    #[sea_orm(nested)]
    entry: Option<change::Model>,
}

/// How far the feed of an account is sequenced and pruned.
#[derive(Clone, Copy, FromQueryResult)]
struct FeedState {
    head: i64,
    pruned: i64,
    pruned_transaction: Option<Uuid>,
    /// Whether there are entries without a position.
    has_new: bool,
}

/// Whether there are entries without a position.
pub async fn has_new_changes(scope: Scope<'_, impl ConnectionTrait>) -> Result<bool, StoreError> {
    let first: Vec<i64> = scope
        .find::<change::Entity>()
        .select_only()
        .column(change::Column::Seq)
        .filter(change::Column::Position.is_null())
        .order_by_asc(change::Column::AccountId)
        .order_by_asc(change::Column::Seq)
        .limit(1)
        .into_tuple()
        .all(scope.db)
        .await?;
    Ok(!first.is_empty())
}

impl Account {
    /// A page of the feed from `start` on, for all tasks or for one.
    ///
    /// Entries without a position are sequenced first, if the page has room for them. If another server
    /// is doing so, or the database takes no writes, the page is not caught up.
    pub async fn list_changes(
        &self,
        start: FeedStart,
        task: Option<TaskId>,
        size: PageSize,
    ) -> Result<FeedPage> {
        let rounds = match start {
            FeedStart::Now => MAX_ROUNDS_TO_NOW,
            FeedStart::After(_) | FeedStart::Oldest => 1,
        };
        for _ in 0..rounds {
            let page = self.read_changes(start, task, size).await?;
            let has_room = page.entries.len() < size.get() as usize;
            if !page.is_at_head || page.caught_up || !has_room {
                return Ok(page);
            }
            if !self.sequence_changes().await? {
                // Another server may have done it meanwhile.
                break;
            }
        }
        Ok(self.read_changes(start, task, size).await?)
    }

    async fn read_changes(
        &self,
        start: FeedStart,
        task: Option<TaskId>,
        size: PageSize,
    ) -> Result<FeedPage, StoreError> {
        let size = size.get() as usize;
        let max_examined = if task.is_some() { MAX_EXAMINED } else { size };
        // One more at each end: the entry at the cursor, and the entry that shows whether the last
        // one ends its transaction.
        let (state, mut entries) = self.read_feed(start, max_examined + 2).await?;
        let from = match start {
            FeedStart::After(cursor) => {
                let first = entries.first().map(entry_cursor);
                // The entry at the mark is deleted, but the mark has its transaction.
                let stored = if cursor.position == state.pruned {
                    Some(state.pruned())
                } else {
                    first
                };
                if stored != Some(cursor) || cursor.position < state.pruned {
                    return Err(Error::from(Precondition::CursorExpired).into());
                }
                if first == Some(cursor) {
                    entries.remove(0);
                }
                cursor
            }
            FeedStart::Oldest => state.pruned(),
            FeedStart::Now => {
                let newest = entries.pop();
                newest.map_or(state.pruned(), |newest| entry_cursor(&newest))
            }
        };
        let (mut page, mut next, mut examined) = (Vec::new(), from, 0);
        let mut entries = entries.into_iter().peekable();
        while page.len() < size
            && examined < max_examined
            && let Some(entry) = entries.next()
        {
            examined += 1;
            next = entry_cursor(&entry);
            // A transaction is sequenced as a whole.
            let is_last = (entries.peek())
                .is_none_or(|following| following.transaction_id != entry.transaction_id);
            if task.is_none_or(|task| task.0 == entry.task) {
                page.push(read_entry(entry, is_last)?);
            }
        }
        let is_at_head = next.position == state.head;
        Ok(FeedPage {
            entries: page,
            next,
            is_at_head,
            caught_up: is_at_head && !state.has_new,
        })
    }

    /// The newest position, and whether there are entries without one.
    pub(in crate::store) async fn feed_head(&self) -> Result<(i64, bool), StoreError> {
        let (state, _) = self.read_feed(FeedStart::Now, 0).await?;
        Ok((state.head, state.has_new))
    }

    async fn read_feed(
        &self,
        start: FeedStart,
        limit: usize,
    ) -> Result<(FeedState, Vec<change::Model>), StoreError> {
        let position = match start {
            FeedStart::After(cursor) => Some(cursor.position),
            FeedStart::Oldest => Some(0),
            FeedStart::Now => None,
        };
        let scope = self.reader();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let page = scope.statement(PAGE_SQL, [position.into(), limit.into()]);
        let rows = FeedRow::find_by_statement(page).all(scope.db).await?;
        let state = rows.first().ok_or(StoreError::Corrupt("head"))?.state;
        let entries = rows.into_iter().filter_map(|row| row.entry);
        Ok((state, entries.collect()))
    }
}

impl FeedState {
    /// The last entry that was deleted.
    fn pruned(&self) -> FeedCursor {
        FeedCursor {
            position: self.pruned,
            transaction: self.pruned_transaction.unwrap_or_default(),
        }
    }
}

fn entry_cursor(entry: &change::Model) -> FeedCursor {
    FeedCursor {
        position: entry.position.unwrap_or_default(),
        transaction: entry.transaction_id,
    }
}

fn read_entry(entry: change::Model, is_last: bool) -> Result<FeedEntry, StoreError> {
    let resource = entry.step.unwrap_or(entry.task);
    let changed = Timestamp(entry.changed_ts);
    let etag = |version| Etag::for_version(resource, version, changed);
    Ok(FeedEntry {
        cursor: entry_cursor(&entry),
        kind: ChangeKind::from_repr(entry.kind).ok_or(StoreError::Corrupt("kind"))?,
        task: TaskId(entry.task),
        step: entry.step.map(StepId),
        etag: entry.version.map(etag),
        changed,
        step_count: entry.step_count,
        fields: split_fields(&entry.fields),
        rpc: WriteRpc::from_repr(entry.rpc)
            .ok_or(StoreError::Corrupt("rpc"))?
            .into(),
        subject: entry.subject,
        is_last,
    })
}
