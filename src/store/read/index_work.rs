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
        let after = after.unwrap_or(IndexCursor {
            part: IndexPart::Tasks,
            guid: Uuid::nil(),
        });
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
/// index holds an earlier version, the version, and when it was written.
async fn list_dirty<E: AccountEntity>(
    scope: Scope<'_, impl ConnectionTrait>,
    kind: IndexKind,
    columns: [E::Column; 5],
    dirty: E::Column,
    after: Uuid,
    limit: u64,
) -> Result<Vec<IndexWork>, StoreError> {
    let [guid, ..] = columns;
    let rows: Vec<(Uuid, TaskId, bool, i64, i64)> = scope
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
    let work = |(guid, task, indexed, version, modified)| IndexWork {
        guid,
        kind,
        task,
        state: match indexed {
            true => IndexWorkState::Changed,
            false => IndexWorkState::New,
        },
        etag: Etag::of_version(guid, version, Timestamp(modified)).into_string(),
    };
    Ok(rows.into_iter().map(work).collect())
}

fn read_deletion(row: index_deletion::Model) -> Result<IndexWork, StoreError> {
    Ok(IndexWork {
        guid: row.guid,
        kind: IndexKind::from_number(row.kind).ok_or(StoreError::Corrupt("kind"))?,
        task: TaskId(row.task),
        state: IndexWorkState::Deleted,
        etag: row.mark.to_string(),
    })
}
