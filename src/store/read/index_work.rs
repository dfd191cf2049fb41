//! Lists what an external index still has to read or to forget.

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Select,
};
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
        let first = after.map_or(IndexPart::Tasks, |after| after.part);
        let mut rows = Vec::new();
        for part in IndexPart::ALL.into_iter().filter(|part| *part >= first) {
            let after = after.filter(|after| after.part == part);
            let after = after.map_or(Uuid::nil(), |after| after.guid);
            let limit = size.rows() - rows.len() as u64;
            if limit == 0 {
                break;
            }
            let work = self.list_part(part, after, limit).await?;
            rows.extend(work.into_iter().map(|work| {
                let guid = work.guid;
                (IndexCursor { part, guid }, work)
            }));
        }
        Ok(Page::from_rows(rows, size))
    }

    async fn list_part(
        &self,
        part: IndexPart,
        after: Uuid,
        limit: u64,
    ) -> Result<Vec<IndexWork>, StoreError> {
        let scope = self.reader();
        let dirty = |rows: Vec<DirtyRow>, kind| {
            let work = rows.into_iter().map(|row| row.read(kind));
            Ok(work.collect())
        };
        match part {
            IndexPart::Tasks => {
                let tasks = next(dirty_tasks(scope), task::Column::Guid, after, limit);
                dirty(tasks.into_model().all(scope.db).await?, IndexKind::Task)
            }
            IndexPart::Steps => {
                let steps = next(dirty_steps(scope), step::Column::Guid, after, limit);
                dirty(steps.into_model().all(scope.db).await?, IndexKind::Step)
            }
            IndexPart::Deletions => {
                let rows = scope.find::<index_deletion::Entity>();
                let deletions = next(rows, index_deletion::Column::Guid, after, limit);
                let rows = deletions.all(scope.db).await?.into_iter();
                rows.map(read_deletion).collect()
            }
        }
    }
}

/// A task or step that the index has not acknowledged.
#[derive(FromQueryResult)]
struct DirtyRow {
    guid: Uuid,
    /// The task of a step, or the task itself.
    task: Uuid,
    /// Whether the index holds an earlier version.
    indexed: bool,
    version: i64,
    modified_ts: i64,
}

impl DirtyRow {
    fn read(self, kind: IndexKind) -> IndexWork {
        let state = if self.indexed {
            IndexWorkState::Changed
        } else {
            IndexWorkState::New
        };
        let etag = Etag::of_version(self.guid, self.version, Timestamp(self.modified_ts));
        IndexWork {
            guid: self.guid,
            kind,
            task: TaskId(self.task),
            state,
            etag: etag.into_string(),
        }
    }
}

fn dirty_tasks(scope: Scope<'_, impl ConnectionTrait>) -> Select<task::Entity> {
    use task::Column;
    scope
        .find::<task::Entity>()
        .select_only()
        .columns([Column::Guid, Column::Version, Column::ModifiedTs])
        .column_as(Column::Guid, "task")
        .column_as(Column::MvnIndexed, "indexed")
        // The condition of the partial index, which a bound value would not match.
        .filter(Column::DirtyRecord.into_expr())
}

fn dirty_steps(scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
    use step::Column;
    scope
        .find::<step::Entity>()
        .select_only()
        .columns([Column::Guid, Column::Task, Column::Indexed])
        .columns([Column::Version, Column::ModifiedTs])
        // As for tasks.
        .filter(Column::DirtyRecord.into_expr())
}

/// The first rows after an id.
fn next<E: EntityTrait>(rows: Select<E>, guid: E::Column, after: Uuid, limit: u64) -> Select<E> {
    rows.filter(guid.gt(after)).order_by_asc(guid).limit(limit)
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
