//! What managed tasks and subtask steps take from their sources.

use std::collections::BTreeMap;

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

use super::{
    entity::{step, task},
    fault::Fault,
    transaction::Tx,
};
use crate::domain::{
    ids::TaskId,
    link::{Following, LinkChanges},
};

/// Gives subtask steps the names of the tasks they refer to.
const SYNC: &str = "UPDATE steps SET title = t.name, \
      size = steps.size + octet_length(t.name) - octet_length(steps.title), \
      version = steps.version + 1, dirty_record = $2, modified_ts = $3 \
    FROM tasks t \
    WHERE steps.account_id = $1 AND t.account_id = $1 AND t.guid = steps.subtask_id \
      AND steps.title <> t.name AND t.guid IN ";

/// How many ids one statement names.
const CHUNK: usize = 1_000;

/// Changes the tasks that a question manages, and unlinks those that it manages
/// no longer. The caller holds the locks of them all.
pub(super) async fn apply(tx: &Tx, changes: &LinkChanges) -> Result<(), Fault> {
    let LinkChanges {
        following,
        unlinked,
        unmatched: _,
    } = changes;
    let mut renamed = Vec::new();
    if !following.is_empty() {
        let tasks: Vec<TaskId> = following.iter().map(|following| following.task).collect();
        let rows: BTreeMap<Uuid, task::Model> = tx
            .lock_tasks(&tasks)
            .await?
            .into_iter()
            .map(|locked| (locked.guid.0, locked.row))
            .collect();
        for following in following {
            let row = rows
                .get(&following.task.0)
                .ok_or(Fault::Corrupt("link to a missing task"))?;
            if row.name != following.name.as_str() {
                renamed.push(following.task);
            } else if row.idx == following.idx {
                continue;
            }
            follow(tx, following, row).await?;
        }
    }
    unlink(tx, unlinked).await?;
    sync_titles(tx, &renamed).await
}

async fn follow(tx: &Tx, following: &Following, row: &task::Model) -> Result<(), Fault> {
    use task::Column;
    let Following {
        task: guid,
        name,
        idx,
    } = following;
    let grown = super::task_write::byte_count(name.as_str().len())
        - super::task_write::byte_count(row.name.len());
    task::Entity::update_many()
        .col_expr(Column::Name, Expr::value(name.as_str()))
        .col_expr(Column::Idx, Expr::value(*idx))
        .col_expr(Column::Size, Expr::col(Column::Size).add(grown))
        .col_expr(Column::Version, Expr::col(Column::Version).add(1))
        .col_expr(Column::DirtyRecord, Expr::value(true))
        .col_expr(Column::ModifiedTs, Expr::value(tx.now.0))
        .filter(Column::AccountId.eq(tx.account_id()))
        .filter(Column::Guid.eq(guid.0))
        .exec(&tx.db)
        .await?;
    Ok(())
}

/// Makes managed tasks ordinary ones, and their wiring steps ordinary subtask
/// steps.
pub(super) async fn unlink(tx: &Tx, tasks: &[TaskId]) -> Result<(), Fault> {
    for tasks in tasks.chunks(CHUNK) {
        let ids = || tasks.iter().map(|task| task.0);
        task::Entity::update_many()
            .col_expr(task::Column::Kind, Expr::value(0))
            .col_expr(task::Column::ParentGuid, Expr::value(None::<Uuid>))
            .col_expr(task::Column::Idx, Expr::value(0))
            .col_expr(
                task::Column::Version,
                Expr::col(task::Column::Version).add(1),
            )
            .col_expr(task::Column::DirtyRecord, Expr::value(true))
            .col_expr(task::Column::ModifiedTs, Expr::value(tx.now.0))
            .filter(task::Column::AccountId.eq(tx.account_id()))
            .filter(task::Column::Guid.is_in(ids()))
            .exec(&tx.db)
            .await?;
        step::Entity::update_many()
            .col_expr(step::Column::Link, Expr::value(None::<Uuid>))
            .col_expr(
                step::Column::Version,
                Expr::col(step::Column::Version).add(1),
            )
            .col_expr(step::Column::DirtyRecord, Expr::value(true))
            .col_expr(step::Column::ModifiedTs, Expr::value(tx.now.0))
            .filter(step::Column::AccountId.eq(tx.account_id()))
            .filter(step::Column::Link.is_in(ids()))
            .exec(&tx.db)
            .await?;
    }
    Ok(())
}

/// Gives every subtask step that refers to one of these tasks the task's name.
/// The steps are locked in the order of their ids first, as everyone does who
/// changes several.
pub(super) async fn sync_titles(tx: &Tx, tasks: &[TaskId]) -> Result<(), Fault> {
    for tasks in tasks.chunks(CHUNK) {
        step::Entity::find()
            .select_only()
            .column(step::Column::Guid)
            .filter(step::Column::AccountId.eq(tx.account_id()))
            .filter(step::Column::SubtaskId.is_in(tasks.iter().map(|task| task.0)))
            .order_by_asc(step::Column::Guid)
            .lock_exclusive()
            .into_tuple::<Uuid>()
            .all(&tx.db)
            .await?;
        let places: Vec<String> = (0..tasks.len()).map(|n| format!("${}", n + 4)).collect();
        let sql = format!("{SYNC}({})", places.join(", "));
        let fixed = [true.into(), tx.now.0.into()];
        let ids = tasks.iter().map(|task| task.0.into());
        let statement = tx.statement(sql, fixed.into_iter().chain(ids));
        tx.db.execute_raw(statement).await?;
    }
    Ok(())
}

/// The tasks that the observations of a task manage.
pub(super) async fn managed_by(tx: &Tx, parent: TaskId) -> Result<Vec<TaskId>, Fault> {
    let tasks: Vec<Uuid> = task::Entity::find()
        .select_only()
        .column(task::Column::Guid)
        .filter(task::Column::AccountId.eq(tx.account_id()))
        .filter(task::Column::ParentGuid.eq(parent.0))
        .order_by_asc(task::Column::Guid)
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(tasks.into_iter().map(TaskId).collect())
}
