//! Lists what an external index has still to read or to forget.

use sea_orm::{ConnectionTrait, QueryResult};
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
    store::{Account, backend, error::StoreError, row_reader::RowReader, statement},
};

/// Dirty tasks behind the id `$2`; and so on.
const TASKS: &str = "SELECT guid, mvn_indexed, version, modified_ts, guid FROM tasks \
    WHERE account_id = $1 AND dirty_record AND guid > $2 ORDER BY guid LIMIT $3";
const STEPS: &str = "SELECT guid, indexed, version, modified_ts, task FROM steps \
    WHERE account_id = $1 AND dirty_record AND guid > $2 ORDER BY guid LIMIT $3";
const DELETIONS: &str = "SELECT guid, kind, mark, task FROM index_deletions \
    WHERE account_id = $1 AND guid > $2 ORDER BY guid LIMIT $3";

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
            let behind = after.filter(|after| after.part == part);
            let behind = behind.map_or(Uuid::nil(), |after| after.guid);
            let wanted = size + 1 - items.len();
            items.extend(self.index_work_of(part, behind, wanted).await?);
            if items.len() > size {
                break;
            }
        }
        let more = items.len() > size;
        items.truncate(size);
        Ok(Page { items, more })
    }

    async fn index_work_of(
        &self,
        part: IndexPart,
        behind: Uuid,
        count: usize,
    ) -> Result<Vec<(IndexCursor, IndexWork)>, StoreError> {
        let sql = match part {
            IndexPart::Tasks => TASKS,
            IndexPart::Steps => STEPS,
            IndexPart::Deletions => DELETIONS,
        };
        let db = self.reader();
        let limit = i64::try_from(count).unwrap_or(i64::MAX);
        let values = [behind.into(), limit.into()];
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        let item = |row: &QueryResult| {
            let work = match part {
                IndexPart::Tasks => read_dirty(row, IndexKind::Task)?,
                IndexPart::Steps => read_dirty(row, IndexKind::Step)?,
                IndexPart::Deletions => read_deletion(row)?,
            };
            let guid = work.guid;
            Ok((IndexCursor { part, guid }, work))
        };
        rows.iter().map(item).collect()
    }
}

fn read_dirty(row: &QueryResult, kind: IndexKind) -> Result<IndexWork, StoreError> {
    let mut row = RowReader::new(row);
    let guid: Uuid = row.take()?;
    let state = match row.take()? {
        true => IndexWorkState::Changed,
        false => IndexWorkState::New,
    };
    let (version, modified) = (row.take()?, Timestamp(row.take()?));
    Ok(IndexWork {
        guid,
        kind,
        task: TaskId(row.take()?),
        state,
        etag: Etag::of_version(guid, version, modified).into_string(),
    })
}

fn read_deletion(row: &QueryResult) -> Result<IndexWork, StoreError> {
    let mut row = RowReader::new(row);
    let guid = row.take()?;
    let kind = IndexKind::from_number(row.take()?).ok_or(StoreError::Corrupt("kind"))?;
    let mark: Uuid = row.take()?;
    Ok(IndexWork {
        guid,
        kind,
        task: TaskId(row.take()?),
        state: IndexWorkState::Deleted,
        etag: mark.to_string(),
    })
}
