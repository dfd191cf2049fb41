//! Reads the history of guides. All of it is read from the primary.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, IdenStatic, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    Select, Value,
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::{
    domain::{
        Error, Result,
        etag::GuideEtag,
        history::{
            DeletedBy, DeletedTask, DeletedTaskCursor, EncodedGuide, Note, RevisionAlias,
            RevisionAliases, RevisionCause, RevisionName, TaskRevision, aliases_of,
        },
        ids::{AccountId, TaskId},
        page::{Page, PageSize},
        text::Name,
        time::Timestamp,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns,
        read::task_tree::LARGE_TREE_BYTES,
        row_reader::RowReader,
        schema::entity::{
            OfAccount, revision_alias, task, task_history,
            task_revision::{self, Column},
        },
        statement,
        values::list,
    },
};

/// The columns of a revision, without its guide, in the order in which [`read_revision`] takes them.
const REVISION_COLUMNS: [Column; 12] = [
    Column::Task,
    Column::Number,
    Column::Cause,
    Column::Note,
    Column::Subject,
    Column::CreatedTs,
    Column::TaskName,
    Column::ProductId,
    Column::StepCount,
    Column::GuideEtag,
    Column::Size,
    Column::DocumentSize,
];

/// Reads a revision, without its aliases, and the bytes of its document.
fn read_revision(row: &mut RowReader<'_>) -> Result<(TaskRevision, usize), StoreError> {
    let revision = TaskRevision {
        task: TaskId(row.take()?),
        number: row.take()?,
        cause: RevisionCause::from_number(row.take()?).ok_or(StoreError::Corrupt("cause"))?,
        note: json_columns::valid(Note::parse(row.take()?), "note")?,
        subject: row.take()?,
        created: Timestamp(row.take()?),
        task_name: json_columns::valid(Name::parse(row.take()?), "task_name")?,
        product: json_columns::product(row.take()?)?,
        step_count: row.take()?,
        guide_etag: GuideEtag::stored(row.take()?),
        size: row.take()?,
        aliases: Vec::new(),
    };
    let document_bytes: i64 = row.take()?;
    let document_bytes = usize::try_from(document_bytes).unwrap_or(usize::MAX);
    Ok((revision, document_bytes))
}

/// The revisions of a task.
fn revisions(account: &AccountId, task: TaskId) -> Select<task_revision::Entity> {
    task_revision::Entity::select(account).filter(Column::Task.eq(task.0))
}

/// The aliases of a task.
pub async fn aliases(
    db: &impl ConnectionTrait,
    account: &AccountId,
    task: TaskId,
) -> Result<RevisionAliases, StoreError> {
    let rows: Vec<(String, i64)> = revision_alias::Entity::select(account)
        .select_only()
        .columns([
            revision_alias::Column::Alias,
            revision_alias::Column::Number,
        ])
        .filter(revision_alias::Column::Task.eq(task.0))
        .into_tuple()
        .all(db)
        .await?;
    let alias = |(alias, number): (String, i64)| {
        let alias = RevisionAlias::parse(&alias).ok_or(StoreError::Corrupt("alias"))?;
        Ok((alias, number))
    };
    rows.into_iter().map(alias).collect()
}

/// A revision of a task with the bytes of its document; `None` if there is none of this name.
/// `aliases` are those of the task.
pub async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    task: TaskId,
    name: &RevisionName,
    aliases: &RevisionAliases,
) -> Result<Option<(TaskRevision, usize)>, StoreError> {
    let number = match name {
        RevisionName::Number(number) => Some(*number),
        RevisionName::Alias(alias) => aliases.get(alias).copied(),
    };
    let Some(number) = number else {
        return Ok(None);
    };
    let statement = revisions(account, task)
        .select_only()
        .columns(REVISION_COLUMNS)
        .filter(Column::Number.eq(number))
        .build(backend(db));
    let Some(row) = db.query_one_raw(statement).await? else {
        return Ok(None);
    };
    let (mut revision, document_bytes) = read_revision(&mut RowReader::new(&row))?;
    revision.aliases = aliases_of(aliases, number);
    Ok(Some((revision, document_bytes)))
}

/// The guide of a revision, compressed.
pub async fn content(
    db: &impl ConnectionTrait,
    account: &AccountId,
    task: TaskId,
    number: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let content: Option<Vec<u8>> = revisions(account, task)
        .select_only()
        .column(Column::Content)
        .filter(Column::Number.eq(number))
        .into_tuple()
        .one(db)
        .await?;
    Ok(content)
}

/// The error of a revision that was not found: TASK_NOT_FOUND if there is neither the task nor a
/// history of it.
pub async fn not_found(
    db: &impl ConnectionTrait,
    account: &AccountId,
    task: TaskId,
    revision: &RevisionName,
    field: &'static str,
) -> Result<Error, StoreError> {
    let revision = revision.clone();
    Ok(match exists_or_has_history(db, account, task).await? {
        true => Error::RevisionNotFound {
            task,
            revision,
            field,
        },
        false => Error::task_not_found(task, "task"),
    })
}

/// Whether a task exists or has a history.
pub async fn exists_or_has_history(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: TaskId,
) -> Result<bool, StoreError> {
    let history = task_history::Entity::select(account)
        .select_only()
        .column(task_history::Column::Task)
        .filter(task_history::Column::Task.eq(guid.0))
        .into_tuple::<Uuid>();
    if history.one(db).await?.is_some() {
        return Ok(true);
    }
    let task = task::Entity::select(account)
        .select_only()
        .column(task::Column::Guid)
        .filter(task::Column::Guid.eq(guid.0))
        .into_tuple::<Uuid>();
    Ok(task.one(db).await?.is_some())
}

impl Account {
    /// A revision that this field of a request names.
    pub async fn find_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
    ) -> Result<(TaskRevision, usize)> {
        let (db, account) = (self.reader(), &self.id);
        let aliases = aliases(db, account, task).await?;
        match find(db, account, task, name, &aliases).await? {
            Some(found) => Ok(found),
            None => Err(not_found(db, account, task, name, field).await?),
        }
    }

    /// The same with its guide. A large one comes with a permit, to be kept until it is decoded.
    pub async fn get_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
    ) -> Result<(TaskRevision, EncodedGuide, Option<OwnedSemaphorePermit>)> {
        let (revision, document_bytes) = self.find_revision(task, name, field).await?;
        let permit = match document_bytes {
            ..=LARGE_TREE_BYTES => None,
            _ => Some(self.large_read_permit(document_bytes).await?),
        };
        let (db, account) = (self.reader(), &self.id);
        match content(db, account, task, revision.number).await? {
            Some(content) => {
                let guide = EncodedGuide {
                    content,
                    document_bytes,
                };
                Ok((revision, guide, permit))
            }
            // It was deleted meanwhile.
            None => Err(not_found(db, account, task, name, field).await?),
        }
    }

    /// A page of the revisions of a task, the newest first, behind one of this number.
    pub async fn list_revisions(
        &self,
        task: TaskId,
        before: Option<i64>,
        size: PageSize,
    ) -> Result<Page<TaskRevision>> {
        let (db, account) = (self.reader(), &self.id);
        let statement = revisions(account, task)
            .select_only()
            .columns(REVISION_COLUMNS)
            .filter(Column::Number.lt(before.unwrap_or(i64::MAX)))
            .order_by_desc(Column::Number)
            .limit(u64::from(size.get()) + 1)
            .build(backend(db));
        let rows = db.query_all_raw(statement).await;
        let mut rows = rows.map_err(StoreError::from)?;
        if rows.is_empty() && !exists_or_has_history(db, account, task).await? {
            return Err(Error::task_not_found(task, "task"));
        }
        let more = rows.len() > size.get() as usize;
        rows.truncate(size.get() as usize);
        let aliases = aliases(db, account, task).await?;
        let revision = |row| {
            let (mut revision, _) = read_revision(&mut RowReader::new(row))?;
            revision.aliases = aliases_of(&aliases, revision.number);
            Ok(revision)
        };
        let items = rows.iter().map(revision);
        let items = items.collect::<Result<_, StoreError>>()?;
        Ok(Page { items, more })
    }

    /// A page of the deleted tasks that have revisions, the latest deletion first.
    pub async fn list_deleted_tasks(
        &self,
        after: Option<DeletedTaskCursor>,
        size: PageSize,
    ) -> Result<Page<DeletedTask>> {
        Ok(self.read_deleted_tasks(after, size).await?)
    }

    async fn read_deleted_tasks(
        &self,
        after: Option<DeletedTaskCursor>,
        size: PageSize,
    ) -> Result<Page<DeletedTask>, StoreError> {
        let (db, account) = (self.reader(), &self.id);
        let after = after.unwrap_or(DeletedTaskCursor {
            deleted: Timestamp(i64::MAX),
            task: TaskId(Uuid::max()),
        });
        let columns = list(
            REVISION_COLUMNS
                .iter()
                .map(|column| format!("r.{}", column.as_str())),
        );
        // The newest revision of each task is found by the key.
        let sql = format!(
            "SELECT h.deleted_ts, h.deleted_by, {columns} FROM task_histories h \
             JOIN task_revisions r ON r.account_id = $1 AND r.task = h.task AND r.number = \
               (SELECT MAX(n.number) FROM task_revisions n \
                WHERE n.account_id = $1 AND n.task = h.task) \
             WHERE h.account_id = $1 AND (h.deleted_ts, h.task) < ($2, $3) \
             ORDER BY h.deleted_ts DESC, h.task DESC LIMIT $4"
        );
        let limit = i64::from(size.get()) + 1;
        let values: [Value; 3] = [after.deleted.0.into(), after.task.0.into(), limit.into()];
        let statement = statement(backend(db), account, sql, values);
        let mut rows = Vec::new();
        for row in db.query_all_raw(statement).await? {
            let mut row = RowReader::new(&row);
            let deleted = DeletedBy {
                at: Timestamp(row.take()?),
                subject: row.take()?,
            };
            let (latest, _) = read_revision(&mut row)?;
            rows.push(DeletedTask { latest, deleted });
        }
        let more = rows.len() > size.get() as usize;
        rows.truncate(size.get() as usize);
        let tasks = rows.iter().map(|deleted| deleted.latest.task.0);
        let mut aliases = self.aliases_of_tasks(tasks.collect()).await?;
        for DeletedTask { latest, .. } in &mut rows {
            let named = aliases.remove(&(latest.task.0, latest.number));
            latest.aliases = named.unwrap_or_default();
        }
        Ok(Page { items: rows, more })
    }

    /// The aliases of tasks, by task and number.
    async fn aliases_of_tasks(
        &self,
        tasks: Vec<Uuid>,
    ) -> Result<BTreeMap<(Uuid, i64), Vec<RevisionAlias>>, StoreError> {
        if tasks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows = self
            .select::<revision_alias::Entity>()
            .filter(revision_alias::Column::Task.is_in(tasks))
            .order_by_asc(revision_alias::Column::Alias)
            .all(self.reader())
            .await?;
        let mut aliases: BTreeMap<_, Vec<RevisionAlias>> = BTreeMap::new();
        for row in rows {
            let alias = RevisionAlias::parse(&row.alias).ok_or(StoreError::Corrupt("alias"))?;
            aliases
                .entry((row.task, row.number))
                .or_default()
                .push(alias);
        }
        Ok(aliases)
    }
}
