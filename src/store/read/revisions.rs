//! Reads the history of guides.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, ExprTrait, FromQueryResult, IdenStatic, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait, RelationTrait, Select, SelectExt, sea_query::Expr,
};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::{
    domain::{
        Error, Missing, Result,
        etag::GuideEtag,
        history::{
            DeletedBy, DeletedTask, EncodedGuide, Note, RevisionAlias, RevisionAliases,
            RevisionCause, RevisionName, TaskRevision,
        },
        ids::TaskId,
        page::{Page, PageSize},
        size::stored_count,
        text::Name,
        time::Timestamp,
    },
    store::{
        Account,
        account::Scope,
        entity::{
            revision_alias, task, task_history,
            task_revision::{self, Column},
        },
        error::StoreError,
        rows::{read_product, valid},
    },
};

/// A revision without its guide, and its aliases, separated by commas.
#[derive(FromQueryResult)]
struct RevisionRow {
    #[sea_orm(nested)]
    revision: task_revision::Model,
    aliases: Option<String>,
}

impl RevisionRow {
    fn read(self) -> Result<TaskRevision, StoreError> {
        let row = self.revision;
        let aliases = self.aliases.as_deref().unwrap_or_default();
        let aliases = aliases.split(',').filter(|alias| !alias.is_empty());
        let mut aliases: Vec<RevisionAlias> = aliases.map(read_alias).collect::<Result<_, _>>()?;
        aliases.sort_unstable();
        Ok(TaskRevision {
            task: TaskId(row.task),
            number: row.number,
            cause: RevisionCause::from_repr(row.cause).ok_or(StoreError::Corrupt("cause"))?,
            note: valid(Note::parse(row.note), "note")?,
            subject: row.subject,
            created: Timestamp(row.created_ts),
            task_name: valid(Name::parse(row.task_name), "task_name")?,
            product: read_product(row.product_id)?,
            step_count: row.step_count,
            guide_etag: GuideEtag::stored(row.guide_etag),
            size: row.size,
            aliases,
        })
    }
}

fn read_alias(alias: &str) -> Result<RevisionAlias, StoreError> {
    RevisionAlias::parse(alias).ok_or(StoreError::Corrupt("alias"))
}

/// Selects the account's revisions. One statement reads revisions and aliases, so they are of one state.
fn revisions(scope: Scope<'_, impl ConnectionTrait>) -> Select<task_revision::Entity> {
    let aliases = scope
        .find::<revision_alias::Entity>()
        .select_only()
        .expr(Expr::cust("string_agg(alias, ',')"))
        .filter(revision_alias::Relation::Revision.def());
    scope
        .find::<task_revision::Entity>()
        .select_except([Column::Content])
        .expr_as(Expr::value(Vec::<u8>::new()), Column::Content.as_str())
        .expr_as(aliases.into_query(), "aliases")
}

/// The aliases of a task.
pub async fn aliases(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
) -> Result<RevisionAliases, StoreError> {
    let rows = scope
        .find::<revision_alias::Entity>()
        .filter(revision_alias::Column::Task.eq(task.0))
        .all(scope.db)
        .await?;
    let aliases = rows.into_iter();
    aliases
        .map(|row| Ok((read_alias(&row.alias)?, row.number)))
        .collect()
}

/// The revision that a field of the request names, with the bytes of its document. Fails with
/// TASK_NOT_FOUND if there is neither the task nor a history of it.
pub async fn get(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    name: &RevisionName,
    field: &'static str,
) -> Result<(TaskRevision, usize), StoreError> {
    use revision_alias::Column as Alias;
    let is_named = match name {
        RevisionName::Number(number) => Column::Number.eq(*number),
        RevisionName::LargerNumber(_) => Column::Number.is_null(),
        RevisionName::Alias(alias) => {
            let named = scope
                .find::<revision_alias::Entity>()
                .select_only()
                .column(Alias::Number)
                .filter(Alias::Task.eq(task.0))
                .filter(Alias::Alias.eq(alias.as_str()));
            Column::Number.in_subquery(named.into_query())
        }
    };
    let rows = revisions(scope)
        .filter(Column::Task.eq(task.0))
        .filter(is_named)
        .into_model::<RevisionRow>()
        .all(scope.db)
        .await?;
    if let Some(row) = rows.into_iter().next() {
        let document_bytes = usize::try_from(row.revision.document_size).unwrap_or(usize::MAX);
        return Ok((row.read()?, document_bytes));
    }
    if !exists_or_has_history(scope, task).await? {
        return Err(Error::task_not_found(task, "task").into());
    }
    let missing = Missing::Revision(task, name.clone());
    Err(Error::not_found(missing, field).into())
}

/// The guide of a revision, compressed.
pub async fn content(
    scope: Scope<'_, impl ConnectionTrait>,
    task: TaskId,
    number: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut contents: Vec<Vec<u8>> = scope
        .find::<task_revision::Entity>()
        .select_only()
        .column(Column::Content)
        .filter(Column::Task.eq(task.0))
        .filter(Column::Number.eq(number))
        .into_tuple()
        .all(scope.db)
        .await?;
    Ok(contents.pop())
}

/// Whether a task exists or has a history.
pub async fn exists_or_has_history(
    scope: Scope<'_, impl ConnectionTrait>,
    guid: TaskId,
) -> Result<bool, StoreError> {
    let histories = scope.find::<task_history::Entity>();
    let tasks = scope.find::<task::Entity>();
    Ok(histories
        .filter(task_history::Column::Task.eq(guid.0))
        .exists(scope.db)
        .await?
        || tasks
            .filter(task::Column::Guid.eq(guid.0))
            .exists(scope.db)
            .await?)
}

impl Account {
    /// The revision that this field of a request names.
    pub async fn get_revision(
        &self,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
    ) -> Result<TaskRevision> {
        Ok(get(self.reader(), task, name, field).await?.0)
    }

    /// Also reads the guide. For a large guide, keep the permit until it is decoded.
    pub async fn get_revision_and_guide(
        &self,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
    ) -> Result<((TaskRevision, EncodedGuide), Option<OwnedSemaphorePermit>)> {
        self.read_with_permit(|snapshot, max_bytes| async move {
            let scope = snapshot.scope();
            let (revision, document_bytes) = get(scope, task, name, field).await?;
            max_bytes.check(stored_count(document_bytes))?;
            let content = content(scope, task, revision.number).await?;
            let guide = EncodedGuide {
                content: content.ok_or(StoreError::Corrupt("content"))?,
                document_bytes,
            };
            Ok((revision, guide))
        })
        .await
    }

    /// A page of the revisions of a task, the newest first, after the one with this number.
    pub async fn list_revisions(
        &self,
        task: TaskId,
        before: Option<i64>,
        size: PageSize,
    ) -> Result<Page<TaskRevision>> {
        let scope = self.reader();
        let rows: Vec<RevisionRow> = revisions(scope)
            .filter(Column::Task.eq(task.0))
            .filter(Column::Number.lt(before.unwrap_or(i64::MAX)))
            .order_by_desc(Column::Number)
            .limit(size.rows())
            .into_model()
            .all(scope.db)
            .await
            .map_err(StoreError::from)?;
        if rows.is_empty() && !exists_or_has_history(scope, task).await? {
            return Err(Error::task_not_found(task, "task"));
        }
        Ok(Page::from_rows(rows, size).try_map(RevisionRow::read)?)
    }

    /// A page of the deleted tasks that have revisions, the latest deletion first. `after` is the time of a
    /// deletion and its task.
    pub async fn list_deleted_tasks(
        &self,
        after: Option<(Timestamp, TaskId)>,
        size: PageSize,
    ) -> Result<Page<DeletedTask>> {
        self.read_snapshot(|snapshot, _| async move {
            let scope = snapshot.scope();
            let histories = deleted_histories(scope, after).limit(size.rows());
            let page = Page::from_rows(histories.all(scope.db).await?, size);
            let tasks = page.items.iter().map(|history| history.task);
            let mut newest = newest_revisions(scope, tasks.collect()).await?;
            page.try_map(|history| {
                let latest = newest.remove(&history.task);
                let (Some(deleted), Some(latest)) = (history.deleted_ts, latest) else {
                    return Err(StoreError::Corrupt("deleted_ts"));
                };
                let deleted = DeletedBy {
                    at: Timestamp(deleted),
                    subject: history.deleted_by,
                };
                Ok(DeletedTask { latest, deleted })
            })
        })
        .await
    }
}

/// Selects the histories of deleted tasks that have revisions, the latest deletion first.
fn deleted_histories(
    scope: Scope<'_, impl ConnectionTrait>,
    after: Option<(Timestamp, TaskId)>,
) -> Select<task_history::Entity> {
    use task_history::Column as History;
    let revisions = scope
        .find::<task_revision::Entity>()
        .select_only()
        .column(Column::Number)
        .filter(Column::Task.into_expr().eq(History::Task.into_expr()));
    scope
        .find::<task_history::Entity>()
        .filter(History::DeletedTs.is_not_null())
        .apply_if(after, |histories, (deleted, task)| {
            let place = Expr::tuple([History::DeletedTs.into_expr(), History::Task.into_expr()]);
            let after = [deleted.0.into(), task.0.into()].map(Expr::Value);
            histories.filter(place.lt(Expr::tuple(after)))
        })
        .filter(Expr::exists(revisions.into_query()))
        .order_by_desc(History::DeletedTs)
        .order_by_desc(History::Task)
}

/// The newest revisions of tasks.
async fn newest_revisions(
    scope: Scope<'_, impl ConnectionTrait>,
    tasks: Vec<Uuid>,
) -> Result<BTreeMap<Uuid, TaskRevision>, StoreError> {
    let numbers = scope
        .find::<task_revision::Entity>()
        .select_only()
        .column(Column::Task)
        .expr(Column::Number.max())
        .filter(Column::Task.is_in(tasks))
        .group_by(Column::Task);
    let key = Expr::tuple([Column::Task.into_expr(), Column::Number.into_expr()]);
    let rows = revisions(scope).filter(key.in_subquery(numbers.into_query()));
    let rows: Vec<RevisionRow> = rows.into_model().all(scope.db).await?;
    let rows = rows.into_iter();
    rows.map(|row| Ok((row.revision.task, row.read()?)))
        .collect()
}
