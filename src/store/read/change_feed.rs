//! Reads the change feed of an account: always from the primary, as a cursor must be behind
//! everything that was committed before.

use sea_orm::{ConnectionTrait, QueryResult};
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
    store::{Account, backend, error::StoreError, row_reader::RowReader, statement},
};

/// The most entries that a call looks at.
const MAX_LOOKED_AT: usize = 2_000;
/// The most transactions in which the start at the present puts entries in order.
const MAX_ROUNDS_TO_NOW: usize = 20;

/// The state of the feed, and the entries from a position on, the one there included. One row, at
/// least. `$2` is the position, `$3` the number of entries.
///
/// Whether there are new entries is asked for the first of them: for EXISTS, PostgreSQL may read the
/// whole table while one account has most of its rows.
const PAGE: &str = "SELECT f.head, f.pruned, f.pruned_transaction, \
      (SELECT n.seq FROM changes n WHERE n.account_id = $1 AND n.position IS NULL \
        ORDER BY n.account_id, n.seq LIMIT 1) IS NOT NULL, \
      c.position, c.transaction_id, c.kind, c.task, c.step, c.version, c.changed_ts, \
      c.step_count, c.fields, c.rpc, c.subject \
    FROM (SELECT 1 AS one) o LEFT JOIN change_feeds f ON f.account_id = $1 \
    LEFT JOIN (SELECT * FROM changes WHERE account_id = $1 AND position >= $2 \
      ORDER BY position LIMIT $3) c ON true \
    ORDER BY c.position";

/// The state of the feed, and the transaction of its newest entry.
const NOW: &str = "SELECT f.head, f.pruned, f.pruned_transaction, \
      (SELECT n.seq FROM changes n WHERE n.account_id = $1 AND n.position IS NULL \
        ORDER BY n.account_id, n.seq LIMIT 1) IS NOT NULL, \
      c.position, c.transaction_id \
    FROM (SELECT 1 AS one) o LEFT JOIN change_feeds f ON f.account_id = $1 \
    LEFT JOIN changes c ON c.account_id = $1 AND c.position = f.head";

/// How far the feed of an account is sequenced and pruned.
struct FeedState {
    head: i64,
    pruned: FeedCursor,
    /// Whether there are entries without a position.
    has_new: bool,
}

/// The entries behind a cursor.
struct Found {
    page: FeedPage,
    /// Whether it ends at the newest entry that has a position, and newer ones have none yet.
    needs_order: bool,
}

impl Account {
    /// The entries of the feed from `start` on, of all tasks or of one.
    ///
    /// Entries without a position are put in order first, if the page has room for them. If this
    /// cannot be done now, as somebody else does it or the database takes no writes, the page is
    /// not caught up.
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
            let found = self.read_changes(start, task, size).await?;
            if !found.needs_order {
                return Ok(found.page);
            }
            if !self.sequence_changes().await? {
                // Somebody else may have done it meanwhile.
                break;
            }
        }
        Ok(self.read_changes(start, task, size).await?.page)
    }

    async fn read_changes(
        &self,
        start: FeedStart,
        task: Option<TaskId>,
        size: PageSize,
    ) -> Result<Found, StoreError> {
        let (sql, position) = match start {
            FeedStart::After(cursor) => (PAGE, cursor.position),
            FeedStart::Oldest => (PAGE, 0),
            FeedStart::Now => (NOW, 0),
        };
        let size = size.get() as usize;
        let look_at = match task {
            Some(_) => MAX_LOOKED_AT,
            None => size,
        };
        // One more on both sides: the entry at the cursor, and the one that tells whether the last
        // one ends its transaction.
        let limit = i64::try_from(look_at + 2).unwrap_or(i64::MAX);
        let values = match start {
            FeedStart::Now => Vec::new(),
            FeedStart::After(_) | FeedStart::Oldest => vec![position.into(), limit.into()],
        };
        let db = self.reader();
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        let state = feed_state(rows.first())?;
        let cursors = rows.iter().map(cursor).collect::<Result<Vec<_>, _>>()?;
        let mut cursors: Vec<FeedCursor> = cursors.into_iter().flatten().collect();
        let mut rows = rows.as_slice();
        let from = match start {
            FeedStart::After(cursor) => {
                let at = match cursor.position == state.pruned.position {
                    true => Some(&state.pruned),
                    false => cursors.first(),
                };
                if at != Some(&cursor) || cursor.position < state.pruned.position {
                    return Err(Error::from(Precondition::CursorExpired).into());
                }
                if cursors.first() == Some(&cursor) {
                    cursors.remove(0);
                    rows = rows.get(1..).unwrap_or_default();
                }
                cursor
            }
            FeedStart::Oldest => state.pruned,
            FeedStart::Now => cursors.pop().unwrap_or(state.pruned),
        };
        let mut page = FeedPage {
            entries: Vec::new(),
            next: from,
            is_at_head: false,
            caught_up: false,
        };
        for (index, (row, cursor)) in rows.iter().zip(&cursors).enumerate().take(look_at) {
            if page.entries.len() == size {
                break;
            }
            page.next = *cursor;
            // A transaction is put in order as a whole.
            let next = cursors.get(index + 1);
            let is_last = next.is_none_or(|next| next.transaction != cursor.transaction);
            let entry = read_entry(row, *cursor, is_last)?;
            if task.is_none_or(|task| task == entry.task) {
                page.entries.push(entry);
            }
        }
        page.is_at_head = page.next.position == state.head;
        page.caught_up = page.is_at_head && !state.has_new;
        Ok(Found {
            needs_order: page.is_at_head && state.has_new && page.entries.len() < size,
            page,
        })
    }
}

fn feed_state(row: Option<&QueryResult>) -> Result<FeedState, StoreError> {
    let row = row.ok_or(StoreError::Corrupt("head"))?;
    let mut row = RowReader::new(row);
    Ok(FeedState {
        head: row.take::<Option<i64>>()?.unwrap_or(0),
        pruned: FeedCursor {
            position: row.take::<Option<i64>>()?.unwrap_or(0),
            transaction: row.take::<Option<Uuid>>()?.unwrap_or_default(),
        },
        has_new: row.take()?,
    })
}

/// Where a row stands in the feed; `None` if it has no entry.
fn cursor(row: &QueryResult) -> Result<Option<FeedCursor>, StoreError> {
    let mut row = RowReader::at(row, 4);
    let (position, transaction) = (row.take()?, row.take()?);
    Ok(match (position, transaction) {
        (Some(position), Some(transaction)) => Some(FeedCursor {
            position,
            transaction,
        }),
        _ => None,
    })
}

fn read_entry(
    row: &QueryResult,
    cursor: FeedCursor,
    is_last: bool,
) -> Result<FeedEntry, StoreError> {
    let mut row = RowReader::at(row, 6);
    let kind = ChangeKind::from_number(row.take()?).ok_or(StoreError::Corrupt("kind"))?;
    let task = TaskId(row.take()?);
    let step = row.take::<Option<Uuid>>()?.map(StepId);
    let about = step.map_or(task.0, |step| step.0);
    let version: Option<i64> = row.take()?;
    let changed = Timestamp(row.take()?);
    Ok(FeedEntry {
        cursor,
        kind,
        task,
        step,
        etag: version.map(|version| Etag::of_version(about, version, changed)),
        changed,
        step_count: row.take()?,
        fields: split_fields(row.take()?),
        rpc: WriteRpc::name_of(row.take()?).ok_or(StoreError::Corrupt("rpc"))?,
        subject: row.take()?,
        is_last,
    })
}
