//! Writing automatic translations. The check of a lock and the write are one
//! transaction, under the lock of the task or step.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{
    ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

use super::{
    Account, Mode,
    entity::{step, step_translation, task, task_translation},
    fault::Fault,
    row,
    step_write::{self, overlay_size, source_row},
    task_write::{self, byte_count},
    transaction::Tx,
};
use crate::domain::{
    Error, Result,
    ids::{StepId, TaskId},
    translation::{LANGUAGES_MAX, Language, StepOverlay, TaskOverlay},
    violation::{Path, Reason},
    work::{Automatic, Digest, Target, Verdict},
};

impl Account {
    /// Writes automatic translations, each on its own: what became of each, in
    /// order.
    pub async fn write_translations(&self, items: Vec<Automatic>) -> Result<Vec<Verdict>> {
        let items = Arc::new(items);
        self.write(Mode::Store, move |tx| {
            let items = Arc::clone(&items);
            Box::pin(async move { write(tx, &items).await })
        })
        .await
    }
}

async fn write(tx: &Tx, items: &[Automatic]) -> Result<Vec<Verdict>, Fault> {
    // The tasks of the steps are locked too: batches on one guide wait for each
    // other there, and not step by step.
    let mut ids = parents(tx, items).await?;
    ids.extend(items.iter().map(|item| TaskId(item.guid)));
    let tasks: BTreeMap<Uuid, task::Model> = tx
        .lock_tasks(&ids)
        .await?
        .into_iter()
        .map(|locked| (locked.row.guid, locked.row))
        .collect();
    let steps = lock_steps(tx, items).await?;
    let mut verdicts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let verdict = if let Some(task) = tasks.get(&item.guid) {
            write_task(tx, index, item, task).await?
        } else if let Some(step) = steps.get(&item.guid) {
            write_step(tx, index, item, step).await?
        } else {
            Verdict::NotFound
        };
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// The tasks of the steps that translations are of. A step never changes its
/// task, so they can be looked up before anything is locked.
async fn parents(tx: &Tx, items: &[Automatic]) -> Result<Vec<TaskId>, Fault> {
    let tasks: Vec<Uuid> = step::Entity::find()
        .select_only()
        .column(step::Column::Task)
        .distinct()
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::Guid.is_in(items.iter().map(|item| item.guid)))
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(tasks.into_iter().map(TaskId).collect())
}

/// Locks the steps that translations are of, in the order of ids.
async fn lock_steps(tx: &Tx, items: &[Automatic]) -> Result<BTreeMap<Uuid, step::Model>, Fault> {
    let rows = step::Entity::find()
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::Guid.is_in(items.iter().map(|item| item.guid)))
        .order_by_asc(step::Column::Guid)
        .lock_exclusive()
        .all(&tx.db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.guid, row)).collect())
}

async fn write_task(
    tx: &Tx,
    index: usize,
    item: &Automatic,
    task: &task::Model,
) -> Result<Verdict, Fault> {
    use task_translation::{Column, Entity};
    let language = item.language.as_str();
    let key = (tx.account_id().to_owned(), task.guid, language.to_owned());
    let known = Entity::find_by_id(key).one(&tx.db).await?;
    if known.as_ref().is_some_and(|row| row.locked) {
        return Ok(Verdict::Locked);
    }
    if item.digest != Some(Digest::of_task(&task.name)) {
        return Ok(Verdict::Stale);
    }
    let target = Target::Task(TaskId(task.guid));
    let overlay = item.task_overlay();
    let bytes = |name: Option<&str>| byte_count(name.map_or(0, str::len) + language.len() + 16);
    let TaskOverlay { name, .. } = &overlay;
    let new = bytes(name.as_ref().map(|name| name.as_str()));
    let mut grown = new;
    match &known {
        Some(row) if row.name.as_deref() == name.as_ref().map(|name| name.as_str()) => {
            if row.made_name == task.name {
                return Ok(Verdict::Written(target));
            }
            grown = 0;
        }
        Some(row) => grown = new - bytes(row.name.as_deref()),
        None => {
            let rows = Entity::find()
                .filter(Column::AccountId.eq(tx.account_id()))
                .filter(Column::Task.eq(task.guid));
            check_room(count(tx, rows).await?, index)?;
        }
    }
    let row = task_write::overlay_row(tx, TaskId(task.guid), &task.name, &item.language, &overlay);
    task_write::put_overlays(tx, task_write::Overlays::of_texts(row)).await?;
    use task::Column as Task;
    task::Entity::update_many()
        .col_expr(Task::Size, Expr::col(Task::Size).add(grown))
        .col_expr(Task::Version, Expr::col(Task::Version).add(1))
        .col_expr(Task::DirtyRecord, Expr::value(true))
        .col_expr(Task::ModifiedTs, Expr::value(tx.now.0))
        .filter(Task::AccountId.eq(tx.account_id()))
        .filter(Task::Guid.eq(task.guid))
        .exec(&tx.db)
        .await?;
    Ok(Verdict::Written(target))
}

async fn write_step(
    tx: &Tx,
    index: usize,
    item: &Automatic,
    step: &step::Model,
) -> Result<Verdict, Fault> {
    use step_translation::{Column, Entity};
    let language = item.language.as_str();
    let key = (tx.account_id().to_owned(), step.guid, language.to_owned());
    let known = Entity::find_by_id(key).one(&tx.db).await?;
    if known.as_ref().is_some_and(|row| row.locked) {
        return Ok(Verdict::Locked);
    }
    let rest = <[u8; 16]>::try_from(step.rest_digest.as_slice())
        .map_err(|_| Fault::Corrupt("rest_digest"))?;
    if item.digest != Some(Digest::of_step(&step.title, Digest(rest))) {
        return Ok(Verdict::Stale);
    }
    let target = Target::Step(StepId(step.guid));
    let overlay = item.step_overlay();
    let mut grown = Sizes::of(&item.language, &overlay);
    match known {
        Some(row) => {
            let made = row.made_title == step.title && row.made_rest == step.rest_digest;
            let before = read_overlay(row)?;
            if made && before == overlay {
                return Ok(Verdict::Written(target));
            }
            grown = grown.less(Sizes::of(&item.language, &before));
        }
        None => {
            let rows = Entity::find()
                .filter(Column::AccountId.eq(tx.account_id()))
                .filter(Column::Step.eq(step.guid));
            check_room(count(tx, rows).await?, index)?;
        }
    }
    let source = (StepId(step.guid), step.title.as_str(), rest.as_slice());
    let row = source_row(tx, source, &item.language, &overlay);
    step_write::put_overlays(tx, step_write::Overlays::of_texts(row)).await?;
    use step::Column as Step;
    step::Entity::update_many()
        .col_expr(Step::Size, Expr::col(Step::Size).add(grown.listed))
        .col_expr(Step::BodySize, Expr::col(Step::BodySize).add(grown.bodies))
        .col_expr(Step::Version, Expr::col(Step::Version).add(1))
        .col_expr(Step::DirtyRecord, Expr::value(true))
        .col_expr(Step::ModifiedTs, Expr::value(tx.now.0))
        .filter(Step::AccountId.eq(tx.account_id()))
        .filter(Step::Guid.eq(step.guid))
        .exec(&tx.db)
        .await?;
    fits(tx, step.guid).await?;
    Ok(Verdict::Written(target))
}

/// Refuses what makes a step too large to be returned.
async fn fits(tx: &Tx, guid: Uuid) -> Result<(), Fault> {
    let sizes: Option<(i64, i64)> = step::Entity::find_by_id((tx.account_id().to_owned(), guid))
        .select_only()
        .column(step::Column::Size)
        .column(step::Column::BodySize)
        .into_tuple()
        .one(&tx.db)
        .await?;
    let (listed, bodies) = sizes.unwrap_or_default();
    step_write::check_size(tx, listed, bodies)
}

/// The bytes that a row adds to its step.
struct Sizes {
    listed: i64,
    bodies: i64,
}

impl Sizes {
    fn of(language: &Language, row: &StepOverlay) -> Self {
        Self {
            listed: byte_count(overlay_size(language, row)),
            bodies: byte_count(row.body.as_ref().map_or(0, |body| body.as_str().len())),
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            listed: self.listed - other.listed,
            bodies: self.bodies - other.bodies,
        }
    }
}

fn read_overlay(row: step_translation::Model) -> Result<StepOverlay, Fault> {
    use crate::domain::text::{Body, Title};
    const WHAT: &str = "step_translations";
    let title = row.title.map(|title| row::text(Title::parse(title), WHAT));
    let body = row.body.map(|body| row::text(Body::parse(body), WHAT));
    Ok(StepOverlay {
        title: title.transpose()?,
        body: body.transpose()?,
        instructions: row::read_instructions(row.instructions)?,
        feedback: row::read_feedback(row.feedback_config)?,
        locked: row.locked,
    })
}

async fn count<E>(tx: &Tx, rows: sea_orm::Select<E>) -> Result<u64, Fault>
where
    E: EntityTrait,
    E::Model: Sync,
{
    use sea_orm::PaginatorTrait;
    Ok(rows.count(&tx.db).await?)
}

/// Refuses one language too many.
fn check_room(languages: u64, index: usize) -> Result<(), Fault> {
    if usize::try_from(languages).is_ok_and(|languages| languages < LANGUAGES_MAX) {
        return Ok(());
    }
    let path = Path::root("translations");
    let path = path.index(index);
    Err(Error::invalid(
        &path.field("language"),
        Reason::TooManyElements,
        format!("is one more than the {LANGUAGES_MAX} languages that a resource may have"),
    )
    .into())
}
