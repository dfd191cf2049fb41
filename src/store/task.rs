//! Writing tasks.

use std::sync::Arc;

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::Set,
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, ExprTrait, OnConflict},
};
use uuid::Uuid;

use super::{
    Account, Mode, Outcome, Retry,
    batch::in_batches,
    entity::{step, task, task_translation},
    fault::Fault,
    link,
    retry::once,
    row,
    task_read::{LINKED, STEP_GUID_BYTES},
    transaction::Tx,
};
use crate::domain::{
    Error, Precondition, Result,
    etag::Expected,
    ids::{StepId, TaskId},
    task::{IndexState, NewTask, Task, TaskPatch},
    translation::{Language, TaskOverlay},
};

/// Bytes of a task's fixed fields on the wire, about.
const FIXED_BYTES: usize = 400;
/// Bytes left free below the largest message: a managed task may still grow
/// when its value is reworded.
const RESERVE: i64 = 4096;

/// What a writer needs to know of a task that it has locked.
pub(super) struct Locked {
    /// The task.
    pub guid: TaskId,
    /// Its row.
    pub row: task::Model,
}

impl Tx {
    /// Locks tasks in the order of their ids and returns those that exist.
    pub async fn lock_tasks(&self, guids: &[TaskId]) -> Result<Vec<Locked>, Fault> {
        let rows = task::Entity::find()
            .filter(task::Column::AccountId.eq(self.account_id()))
            .filter(task::Column::Guid.is_in(guids.iter().map(|guid| guid.0)))
            .order_by_asc(task::Column::Guid)
            .lock_exclusive()
            .all(&self.db)
            .await?;
        let lock = |row: task::Model| Locked {
            guid: TaskId(row.guid),
            row,
        };
        Ok(rows.into_iter().map(lock).collect())
    }

    /// Locks one task.
    pub async fn lock_task(&self, guid: TaskId) -> Result<task::Model, Fault> {
        let locked = self.lock_tasks(&[guid]).await?;
        let found = locked.into_iter().next().map(|locked| locked.row);
        Ok(found.ok_or(Error::TaskNotFound(guid))?)
    }

    /// Notes on a locked task that its list of steps has changed.
    pub async fn touch_task(
        &self,
        guid: TaskId,
        steps: i64,
        renumbered: bool,
    ) -> Result<(), Fault> {
        use task::Column;
        task::Entity::update_many()
            .col_expr(Column::Version, Expr::col(Column::Version).add(1))
            .col_expr(Column::StepCount, Expr::col(Column::StepCount).add(steps))
            .col_expr(
                Column::OrderEpoch,
                Expr::col(Column::OrderEpoch).add(i64::from(renumbered)),
            )
            .col_expr(Column::DirtyRecord, Expr::value(true))
            .col_expr(Column::ModifiedTs, Expr::value(self.now.0))
            .filter(Column::AccountId.eq(self.account_id()))
            .filter(Column::Guid.eq(guid.0))
            .exec(&self.db)
            .await?;
        Ok(())
    }
}

impl Account {
    /// Creates a task.
    pub async fn create_task(
        &self,
        new: NewTask,
        retry: Option<Retry<Task>>,
        mode: Mode,
    ) -> Result<Outcome<Task>> {
        let new = Arc::new(new);
        let retry = Arc::new(retry);
        self.write(mode, move |tx| {
            let (new, retry) = (Arc::clone(&new), Arc::clone(&retry));
            Box::pin(async move { once(tx, retry.as_ref().as_ref(), mode, insert(tx, &new)).await })
        })
        .await
    }

    /// Updates a task. The fields of the update that were not honored come with
    /// it.
    pub async fn update_task(
        &self,
        guid: TaskId,
        expected: Expected,
        patch: TaskPatch,
        mode: Mode,
    ) -> Result<(Task, Vec<&'static str>)> {
        self.write(mode, move |tx| {
            let (expected, patch) = (expected.clone(), patch.clone());
            Box::pin(async move { update(tx, guid, &expected, patch).await })
        })
        .await
    }

    /// Deletes a task, with `force` together with its steps.
    pub async fn delete_task(&self, guid: TaskId, expected: Expected, force: bool) -> Result<()> {
        self.write(Mode::Store, move |tx| {
            let expected = expected.clone();
            Box::pin(async move { delete(tx, guid, &expected, force).await })
        })
        .await
    }
}

async fn insert(tx: &Tx, new: &NewTask) -> Result<Task, Fault> {
    let NewTask {
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
    } = new.clone();
    let task = Task {
        guid: TaskId(Uuid::now_v7()),
        account: tx.account.clone(),
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
        managed: None,
        steps: Vec::new(),
        version: 1,
        dirty: true,
        index: IndexState::default(),
        created: tx.now,
        modified: tx.now,
    };
    let row = write_row(&task, 0, 0);
    check_size(tx, &row)?;
    task::Entity::insert(row.into_active_model())
        .exec_without_returning(&tx.db)
        .await?;
    put_overlays(tx, overlays(tx, None, &task)).await?;
    Ok(task)
}

async fn update(
    tx: &Tx,
    guid: TaskId,
    expected: &Expected,
    patch: TaskPatch,
) -> Result<(Task, Vec<&'static str>), Fault> {
    let found = tx.lock_task(guid).await;
    let locked = match found {
        // What is wrong with the request comes before what it names.
        Err(Fault::Domain(Error::TaskNotFound(_))) if !patch.faults.is_empty() => {
            return Err(Error::Invalid(patch.faults).into());
        }
        found => found?,
    };
    if patch.faults.is_empty() && !expected.matches(&locked.etag()) {
        return Err(Error::EtagMismatch.into());
    }
    let before = tx.read_task(guid).await?;
    let (mut after, ignored) = before.merge(patch)?;
    if after == before {
        return Ok((after, ignored));
    }
    after.version += 1;
    after.dirty = true;
    after.modified = tx.now;
    let row = write_row(&after, locked.step_count, locked.order_epoch);
    check_size(tx, &row)?;
    task::Entity::update_many()
        .set(row.into_active_model().reset_all())
        .filter(task::Column::AccountId.eq(tx.account_id()))
        .filter(task::Column::Guid.eq(guid.0))
        .exec(&tx.db)
        .await?;
    update_translations(tx, &before, &after).await?;
    if after.name != before.name {
        link::sync_titles(tx, &[guid]).await?;
    }
    Ok((after, ignored))
}

async fn delete(tx: &Tx, guid: TaskId, expected: &Expected, force: bool) -> Result<(), Fault> {
    // The tasks that it manages are locked with it, in the order of ids.
    let managed = link::managed_by(tx, guid).await?;
    let named: Vec<TaskId> = managed.iter().copied().chain([guid]).collect();
    let locked = tx.lock_tasks(&named).await?;
    let locked = locked.into_iter().find(|locked| locked.guid == guid);
    let locked = locked.ok_or(Error::TaskNotFound(guid))?.row;
    if link::managed_by(tx, guid).await? != managed {
        return Err(Fault::Lost);
    }
    if !expected.matches(&locked.etag()) {
        return Err(Error::EtagMismatch.into());
    }
    if locked.kind == LINKED {
        return Err(Precondition::TaskManaged { task: guid }.into());
    }
    let by = references_from_elsewhere(tx, guid).await?;
    if !by.is_empty() {
        return Err(Precondition::TaskReferenced { task: guid, by }.into());
    }
    if locked.step_count > 0 {
        if !force {
            return Err(Precondition::TaskHasSteps { task: guid }.into());
        }
        link::unlink(tx, &managed).await?;
        delete_steps(tx, guid).await?;
    }
    task::Entity::delete_by_id((tx.account_id().to_owned(), guid.0))
        .exec(&tx.db)
        .await?;
    Ok(())
}

/// The first subtask steps of other tasks that refer to a task.
async fn references_from_elsewhere(tx: &Tx, guid: TaskId) -> Result<Vec<StepId>, Fault> {
    let steps: Vec<Uuid> = step::Entity::find()
        .select_only()
        .column(step::Column::Guid)
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::SubtaskId.eq(guid.0))
        .filter(step::Column::Task.ne(guid.0))
        .order_by_asc(step::Column::Guid)
        .limit(Precondition::NAMED as u64)
        .into_tuple()
        .all(&tx.db)
        .await?;
    Ok(steps.into_iter().map(StepId).collect())
}

/// Deletes all steps of a locked task; bodies and translations go with them.
async fn delete_steps(tx: &Tx, guid: TaskId) -> Result<(), Fault> {
    let steps = || {
        sea_orm::Condition::all()
            .add(step::Column::AccountId.eq(tx.account_id()))
            .add(step::Column::Task.eq(guid.0))
    };
    step::Entity::find()
        .select_only()
        .column(step::Column::Guid)
        .filter(steps())
        .order_by_asc(step::Column::Guid)
        .lock_exclusive()
        .into_tuple::<Uuid>()
        .all(&tx.db)
        .await?;
    step::Entity::delete_many()
        .filter(steps())
        .exec(&tx.db)
        .await?;
    Ok(())
}

pub(super) fn write_row(task: &Task, step_count: i64, order_epoch: i64) -> task::Model {
    let Task {
        guid,
        account,
        name,
        product,
        dependencies,
        published,
        roles,
        translations,
        managed,
        steps: _,
        version,
        dirty,
        index,
        created,
        modified,
    } = task;
    let dependencies = row::write_dependencies(dependencies.as_ref());
    let overlays: usize = translations
        .iter()
        .map(|(language, row)| {
            language.as_str().len() + row.name.as_ref().map_or(0, |name| name.as_str().len()) + 16
        })
        .sum();
    let size =
        FIXED_BYTES + name.as_str().len() + dependencies.as_ref().map_or(0, String::len) + overlays;
    task::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        name: name.as_str().to_owned(),
        product_id: product.get(),
        kind: if managed.is_some() { LINKED } else { 0 },
        published: published.get(),
        roles: row::write_roles(roles),
        role_bits: row::role_bits(roles),
        dependencies,
        parent_guid: managed.map(|managed| managed.parent.0),
        idx: managed.map_or(0, |managed| managed.idx),
        step_count,
        order_epoch,
        size: byte_count(size),
        version: *version,
        dirty_record: *dirty,
        mvn_indexed: index.indexed,
        mvn_version: index.version,
        mvn_info: index.info.clone(),
        mvn_ts: index.at.map(|at| at.0),
        created_ts: created.0,
        modified_ts: modified.0,
    }
}

/// A number of bytes as it stands in a column.
pub(super) fn byte_count(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Refuses what could never be returned.
pub(super) fn check_size(tx: &Tx, row: &task::Model) -> Result<(), Fault> {
    let limit = tx.max_message_bytes;
    let steps = row.step_count.saturating_mul(STEP_GUID_BYTES);
    let bytes = row.size.saturating_add(steps).saturating_add(RESERVE);
    if bytes > byte_count(limit) {
        return Err(Error::TooLarge { limit }.into());
    }
    Ok(())
}

/// Removes, adds and changes the rows in which two states of a task differ.
async fn update_translations(tx: &Tx, before: &Task, after: &Task) -> Result<(), Fault> {
    use task_translation::{Column, Entity};
    let gone: Vec<&str> = before
        .translations
        .keys()
        .filter(|language| !after.translations.contains_key(language))
        .map(|language| language.as_str())
        .collect();
    if !gone.is_empty() {
        Entity::delete_many()
            .filter(Column::AccountId.eq(tx.account_id()))
            .filter(Column::Task.eq(after.guid.0))
            .filter(Column::Language.is_in(gone))
            .exec(&tx.db)
            .await?;
    }
    put_overlays(tx, overlays(tx, Some(before), after)).await
}

/// Rows of translations to write.
#[derive(Default)]
pub(super) struct Overlays {
    /// Rows whose texts are new: made from the source as it is now.
    texts: Vec<task_translation::ActiveModel>,
    /// Rows of which the lock alone changes.
    locks: Vec<task_translation::ActiveModel>,
}

impl Overlays {
    /// Adds the rows of another task.
    pub fn append(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.locks.extend(other.locks);
    }

    /// A row with new texts.
    pub fn of_texts(row: task_translation::ActiveModel) -> Self {
        Self {
            texts: vec![row],
            locks: Vec::new(),
        }
    }
}

/// The rows in which two states of a task differ.
pub(super) fn overlays(tx: &Tx, before: Option<&Task>, after: &Task) -> Overlays {
    let mut overlays = Overlays::default();
    for (language, row) in &after.translations {
        let known = before.and_then(|task| task.translations.get(language));
        if known == Some(row) {
            continue;
        }
        let written = overlay_row(tx, after.guid, after.name.as_str(), language, row);
        if known.is_some_and(|known| known.name == row.name) {
            overlays.locks.push(written);
        } else {
            overlays.texts.push(written);
        }
    }
    overlays
}

/// The row of a task's texts in one language, made from its name as it is.
pub(super) fn overlay_row(
    tx: &Tx,
    guid: TaskId,
    name: &str,
    language: &Language,
    overlay: &TaskOverlay,
) -> task_translation::ActiveModel {
    task_translation::ActiveModel {
        account_id: Set(tx.account_id().to_owned()),
        task: Set(guid.0),
        language: Set(language.as_str().to_owned()),
        name: Set(overlay.name.as_ref().map(|name| name.as_str().to_owned())),
        locked: Set(overlay.locked),
        made_name: Set(name.to_owned()),
    }
}

/// Adds rows or replaces them.
pub(super) async fn put_overlays(tx: &Tx, overlays: Overlays) -> Result<(), Fault> {
    use task_translation::{Column, Entity};
    let Overlays { texts, locks } = overlays;
    let texts_change = vec![Column::Name, Column::Locked, Column::MadeName];
    for (rows, change) in [(texts, texts_change), (locks, vec![Column::Locked])] {
        let key = OnConflict::columns([Column::AccountId, Column::Task, Column::Language])
            .update_columns(change)
            .to_owned();
        for rows in in_batches(rows) {
            Entity::insert_many(rows)
                .on_conflict(key.clone())
                .exec_without_returning(&tx.db)
                .await?;
        }
    }
    Ok(())
}
