//! Lists what an external index still has to read or to forget.

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
        entity::{index_deletion, step, task},
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
        let size = size.get() as usize;
        let first = after.map_or(IndexPart::Tasks, |after| after.part);
        let mut items = Vec::new();
        for part in IndexPart::ALL.into_iter().filter(|part| *part >= first) {
            let after = after.filter(|after| after.part == part);
            let after = after.map_or(Uuid::nil(), |after| after.guid);
            let limit = (size + 1 - items.len()) as u64;
            let work = match part {
                IndexPart::Tasks => list_tasks(self.reader(), after, limit).await?,
                IndexPart::Steps => list_steps(self.reader(), after, limit).await?,
                IndexPart::Deletions => list_deletions(self.reader(), after, limit).await?,
            };
            items.extend(work.into_iter().map(|work| {
                let guid = work.guid;
                (IndexCursor { part, guid }, work)
            }));
            if items.len() > size {
                break;
            }
        }
        let more = items.len() > size;
        items.truncate(size);
        Ok(Page { items, more })
    }
}

async fn list_tasks(
    scope: Scope<'_, impl ConnectionTrait>,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    use task::Column;
    let rows: Vec<(Uuid, bool, i64, i64)> = scope
        .find::<task::Entity>()
        .select_only()
        .columns([
            Column::Guid,
            Column::MvnIndexed,
            Column::Version,
            Column::ModifiedTs,
        ])
        // The condition of the partial index, which a bound value would not match.
        .filter(Column::DirtyRecord.into_expr())
        .filter(Column::Guid.gt(after))
        .order_by_asc(Column::Guid)
        .limit(limit)
        .into_tuple()
        .all(scope.db)
        .await?;
    let work = rows
        .into_iter()
        .map(|(guid, indexed, version, modified)| IndexWork {
            guid,
            kind: IndexKind::Task,
            task: TaskId(guid),
            state: dirty_state(indexed),
            etag: Etag::of_version(guid, version, Timestamp(modified)).into_string(),
        });
    Ok(work.collect())
}

async fn list_steps(
    scope: Scope<'_, impl ConnectionTrait>,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    use step::Column;
    let rows: Vec<(Uuid, Uuid, bool, i64, i64)> = scope
        .find::<step::Entity>()
        .select_only()
        .columns([
            Column::Guid,
            Column::Task,
            Column::Indexed,
            Column::Version,
            Column::ModifiedTs,
        ])
        // As for tasks.
        .filter(Column::DirtyRecord.into_expr())
        .filter(Column::Guid.gt(after))
        .order_by_asc(Column::Guid)
        .limit(limit)
        .into_tuple()
        .all(scope.db)
        .await?;
    let rows = rows.into_iter();
    let work = rows.map(|(guid, task, indexed, version, modified)| IndexWork {
        guid,
        kind: IndexKind::Step,
        task: TaskId(task),
        state: dirty_state(indexed),
        etag: Etag::of_version(guid, version, Timestamp(modified)).into_string(),
    });
    Ok(work.collect())
}

fn dirty_state(indexed: bool) -> IndexWorkState {
    if indexed {
        IndexWorkState::Changed
    } else {
        IndexWorkState::New
    }
}

async fn list_deletions(
    scope: Scope<'_, impl ConnectionTrait>,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    use index_deletion::Column;
    let rows = scope
        .find::<index_deletion::Entity>()
        .filter(Column::Guid.gt(after))
        .order_by_asc(Column::Guid)
        .limit(limit)
        .all(scope.db)
        .await?;
    let work = rows.into_iter().map(|row| {
        Ok(IndexWork {
            guid: row.guid,
            kind: IndexKind::from_number(row.kind).ok_or(StoreError::Corrupt("kind"))?,
            task: TaskId(row.task),
            state: IndexWorkState::Deleted,
            etag: row.mark.to_string(),
        })
    });
    work.collect()
}
