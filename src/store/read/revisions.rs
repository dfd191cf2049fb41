//! Reads the history of guides. All of it is read from the primary.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, DerivePartialModel, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Select, Value,
};
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
        schema::entity::{
            OfAccount, revision_alias, task, task_history,
            task_revision::{self, Column},
        },
        statement,
    },
};

/// The row of a revision without its guide.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "task_revision::Entity")]
struct RevisionRow {
    task: Uuid,
    number: i64,
    cause: i32,
    note: String,
    subject: String,
    created_ts: i64,
    task_name: String,
    product_id: i64,
    step_count: i64,
    guide_etag: String,
    size: i64,
    document_size: i64,
}

impl RevisionRow {
    fn revision(self, aliases: Vec<RevisionAlias>) -> Result<TaskRevision, StoreError> {
        let Self {
            task,
            number,
            cause,
            note,
            subject,
            created_ts,
            task_name,
            product_id,
            step_count,
            guide_etag,
            size,
            document_size: _,
        } = self;
        Ok(TaskRevision {
            task: TaskId(task),
            number,
            cause: RevisionCause::from_number(cause).ok_or(StoreError::Corrupt("cause"))?,
            note: json_columns::valid(Note::parse(note), "note")?,
            subject,
            created: Timestamp(created_ts),
            task_name: json_columns::valid(Name::parse(task_name), "task_name")?,
            product: json_columns::product(product_id)?,
            step_count,
            size,
            aliases,
            guide_etag: GuideEtag::stored(guide_etag),
        })
    }
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
    let row = revisions(account, task)
        .filter(Column::Number.eq(number))
        .into_partial_model::<RevisionRow>()
        .one(db)
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let document_bytes = usize::try_from(row.document_size).unwrap_or(usize::MAX);
    let revision = row.revision(aliases_of(aliases, number))?;
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

    /// The same with its guide.
    pub async fn get_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
    ) -> Result<(TaskRevision, EncodedGuide)> {
        let (revision, document_bytes) = self.find_revision(task, name, field).await?;
        let _permit = match document_bytes {
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
                Ok((revision, guide))
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
        let mut rows = revisions(account, task)
            .filter(Column::Number.lt(before.unwrap_or(i64::MAX)))
            .order_by_desc(Column::Number)
            .limit(u64::from(size.get()) + 1)
            .into_partial_model::<RevisionRow>()
            .all(db)
            .await
            .map_err(StoreError::from)?;
        if rows.is_empty() && !exists_or_has_history(db, account, task).await? {
            return Err(Error::task_not_found(task, "task"));
        }
        let more = rows.len() > size.get() as usize;
        rows.truncate(size.get() as usize);
        let aliases = aliases(db, account, task).await?;
        let revision = |row: RevisionRow| {
            let aliases = aliases_of(&aliases, row.number);
            row.revision(aliases)
        };
        let items = rows.into_iter().map(revision);
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
        // The newest revision of each task is found by the key.
        let sql = format!(
            "SELECT h.deleted_ts, h.deleted_by, {REVISION_COLUMNS} FROM task_histories h \
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
            let deleted = DeletedBy {
                at: Timestamp(row.try_get("", "deleted_ts")?),
                subject: row.try_get("", "deleted_by")?,
            };
            rows.push((deleted, RevisionRow::from_query_result(&row, "")?));
        }
        let more = rows.len() > size.get() as usize;
        rows.truncate(size.get() as usize);
        let tasks = rows.iter().map(|(_, row)| row.task);
        let mut aliases = self.aliases_of_tasks(tasks.collect()).await?;
        let mut items = Vec::with_capacity(rows.len());
        for (deleted, row) in rows {
            let named = aliases.remove(&(row.task, row.number)).unwrap_or_default();
            let latest = row.revision(named)?;
            items.push(DeletedTask { latest, deleted });
        }
        Ok(Page { items, more })
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

/// The columns of a revision `r`, without its guide.
const REVISION_COLUMNS: &str = "r.task, r.number, r.cause, r.note, r.subject, r.created_ts, \
    r.task_name, r.product_id, r.step_count, r.guide_etag, r.size, r.document_size";
