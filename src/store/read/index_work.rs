//! Lists what an external index still has to read or to forget.
//!
//! An index may hold items that were listed but never acknowledged: its worker may have crashed, or
//! its acknowledgement may have come too late. So a page is returned only after its items are
//! marked as listed, and the deletion of a marked item is work.

use sea_orm::{ColumnTrait, ConnectionTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::{
    domain::{
        Result,
        etag::Etag,
        ids::TaskId,
        index_work::{IndexCursor, IndexKind, IndexPart, IndexWork, IndexWorkState},
        page::{Page, PageSize},
        time::Timestamp,
    },
    store::{
        Account,
        account::Scope,
        entity::{AccountEntity, index_deletion, step, task},
        error::StoreError,
    },
};

impl Account {
    /// A page of the work of an index: tasks, steps, and deletions, each by id.
    pub async fn list_index_work(
        &self,
        after: Option<IndexCursor>,
        size: PageSize,
    ) -> Result<Page<(IndexCursor, IndexWork)>> {
        let mut after = after.unwrap_or(IndexCursor {
            part: IndexPart::Tasks,
            guid: Uuid::nil(),
        });
        loop {
            let mut page = self.read_index_work(after, size).await?;
            let new = page.items.iter().map(|(_, work)| work);
            let new: Vec<IndexWork> = new.filter(|work| !work.listed).cloned().collect();
            if new.is_empty() {
                return Ok(page);
            }
            let marked = self.mark_listed(new).await?;
            let last = page.items.last().map(|(cursor, _)| *cursor);
            // Omit items deleted before they were marked: their deletion would never be listed.
            page.items
                .retain(|(_, work)| work.listed || marked.contains(&work.guid));
            match last {
                // An empty page would have no token, and so end the list.
                Some(last) if page.items.is_empty() && page.more => after = last,
                Some(_) | None => return Ok(page),
            }
        }
    }

    async fn read_index_work(
        &self,
        after: IndexCursor,
        size: PageSize,
    ) -> Result<Page<(IndexCursor, IndexWork)>> {
        self.read_snapshot(|snapshot, _| async move {
            let mut rows = Vec::new();
            for part in IndexPart::ALL
                .into_iter()
                .skip_while(|part| *part < after.part)
            {
                let limit = size.rows() - rows.len() as u64;
                if limit == 0 {
                    break;
                }
                let last = if part == after.part {
                    after.guid
                } else {
                    Uuid::nil()
                };
                let work = list_part(snapshot.scope(), part, last, limit).await?;
                rows.extend(work.into_iter().map(|work| {
                    let guid = work.guid;
                    (IndexCursor { part, guid }, work)
                }));
            }
            Ok(Page::from_rows(rows, size))
        })
        .await
    }
}

async fn list_part(
    scope: Scope<'_, impl ConnectionTrait>,
    part: IndexPart,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    match part {
        IndexPart::Tasks => {
            use task::{Column, Entity};
            let columns = [
                Column::Guid,
                Column::Guid,
                Column::MvnIndexed,
                Column::Version,
                Column::ModifiedTs,
                Column::Listed,
            ];
            let dirty = Column::DirtyRecord;
            list_dirty::<Entity>(scope, IndexKind::Task, columns, dirty, after, limit).await
        }
        IndexPart::Steps => {
            use step::{Column, Entity};
            let columns = [
                Column::Guid,
                Column::Task,
                Column::Indexed,
                Column::Version,
                Column::ModifiedTs,
                Column::Listed,
            ];
            let dirty = Column::DirtyRecord;
            list_dirty::<Entity>(scope, IndexKind::Step, columns, dirty, after, limit).await
        }
        IndexPart::Deletions => {
            use index_deletion::{Column, Entity};
            let rows = scope
                .find::<Entity>()
                .filter(Column::Guid.gt(after))
                .order_by_asc(Column::Guid)
                .limit(limit)
                .all(scope.db)
                .await?;
            rows.into_iter().map(read_deletion).collect()
        }
    }
}

/// Lists tasks or steps that the index has not acknowledged. `columns` are the id, the task, whether the
/// index holds an earlier version, the version, when it was written, and whether it was listed.
async fn list_dirty<E: AccountEntity>(
    scope: Scope<'_, impl ConnectionTrait>,
    kind: IndexKind,
    columns: [E::Column; 6],
    dirty: E::Column,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    let [guid, ..] = columns;
    let rows: Vec<(Uuid, TaskId, bool, i64, i64, bool)> = scope
        .find::<E>()
        .select_only()
        .columns(columns)
        // The condition of the partial index, which a bound value would not match.
        .filter(dirty.into_expr())
        .filter(guid.gt(after))
        .order_by_asc(guid)
        .limit(limit)
        .into_tuple()
        .all(scope.db)
        .await?;
    let work = |(guid, task, indexed, version, modified, listed)| IndexWork {
        guid,
        kind,
        task,
        state: if indexed {
            IndexWorkState::Changed
        } else {
            IndexWorkState::New
        },
        etag: Etag::for_version(guid, version, Timestamp(modified)).into_string(),
        listed,
    };
    Ok(rows.into_iter().map(work).collect())
}

fn read_deletion(row: index_deletion::Model) -> Result<IndexWork, StoreError> {
    Ok(IndexWork {
        guid: row.guid,
        kind: IndexKind::from_repr(row.kind).ok_or(StoreError::Corrupt("kind"))?,
        task: TaskId(row.task),
        state: IndexWorkState::Deleted,
        etag: row.mark.to_string(),
        listed: true,
    })
}
