//! Writing many tasks and steps with few statements.

use std::collections::BTreeMap;

use sea_orm::{
    ActiveValue::Set, ColumnTrait, EntityTrait, IntoActiveModel, Iterable, QueryFilter, QueryOrder,
    QuerySelect, sea_query::OnConflict,
};
use uuid::Uuid;

use super::{
    entity::{step, step_body, step_translation, task},
    fault::Fault,
    step_write,
    task_write::{Order, write_row},
    transaction::Tx,
    tree::Grown,
};
use crate::domain::{
    ids::{StepId, TaskId},
    import::{PlannedStep, PlannedTask},
    order::Place,
    text::Body,
};

/// Rows of one statement. A step's row has 28 values, and SQLite takes 32,766 in
/// one statement.
pub(super) const ROWS: usize = 1_000;

/// Rows to be written, gathered first.
#[derive(Default)]
pub(super) struct Batch {
    tasks: Vec<task::Model>,
    task_overlays: super::task_write::Overlays,
    steps: Vec<step::Model>,
    deleted: Vec<Uuid>,
    bodies: Vec<step_body::ActiveModel>,
    bodiless: Vec<Uuid>,
    overlays: step_write::Overlays,
    dropped: Vec<(Uuid, String)>,
}

impl Tx {
    /// Locks all steps of locked tasks in the order of their ids.
    pub async fn lock_steps(&self, tasks: &[TaskId]) -> Result<(), Fault> {
        for tasks in tasks.chunks(ROWS) {
            step::Entity::find()
                .select_only()
                .column(step::Column::Guid)
                .filter(step::Column::AccountId.eq(self.account_id()))
                .filter(step::Column::Task.is_in(tasks.iter().map(|task| task.0)))
                .order_by_asc(step::Column::Guid)
                .lock_exclusive()
                .into_tuple::<Uuid>()
                .all(&self.db)
                .await?;
        }
        Ok(())
    }
}

impl Batch {
    /// Adds what differs of a task and its steps.
    pub fn task(&mut self, tx: &Tx, planned: &PlannedTask, grown: &Grown) -> Result<(), Fault> {
        let PlannedTask {
            before,
            after,
            steps,
            deleted,
        } = planned;
        let known = grown.numberings.get(&after.guid).copied();
        let known = known.unwrap_or_default();
        let kept = match before {
            Some(_) => fit(steps, &grown.places),
            None => None,
        };
        let renumbered = before.is_some() && kept.is_none();
        if before.as_ref() != Some(after) {
            let steps = i64::try_from(after.steps.len()).unwrap_or(i64::MAX);
            let order = Order {
                step_count: steps,
                // Steps that are not planned stay where they are.
                last_position: last_position(kept.as_deref(), planned.steps.len())
                    .max(known.last_position),
                epoch: known.epoch + i64::from(renumbered),
            };
            let row = write_row(after, order);
            super::task_write::check_size(tx, &row)?;
            self.tasks.push(row);
            let overlays = super::task_write::overlays(tx, before.as_ref(), after);
            self.task_overlays.append(overlays);
        }
        self.deleted.extend(deleted.iter().map(|step| step.0));
        for (index, step) in steps.iter().enumerate() {
            let place = kept.as_ref().and_then(|places| places.get(index)).cloned();
            let moved = place.is_none();
            let place = place.unwrap_or_else(|| Place::nth(index));
            self.step(tx, step, place, moved)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        tx: &Tx,
        planned: &PlannedStep,
        place: Place,
        moved: bool,
    ) -> Result<(), Fault> {
        let PlannedStep { before, after } = planned;
        let changed = before.as_ref() != Some(after);
        if changed || moved {
            self.steps.push(step_write::write_row(tx, after, place)?);
        }
        if !changed {
            return Ok(());
        }
        let known = before.as_ref().map(|before| &before.content);
        let body = known.and_then(|known| known.body.as_ref());
        match &after.content.body {
            new if new.as_ref() == body => {}
            Some(body) => self.bodies.push(body_row(tx, after.guid, body)),
            None => self.bodiless.push(after.guid.0),
        }
        let rows = known.map(|known| &known.translations);
        let overlays = step_write::overlays(tx, before.as_ref(), after);
        self.overlays.append(overlays);
        let gone = rows
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter(|language| !after.content.translations.contains_key(language))
            .map(|language| (after.guid.0, language.as_str().to_owned()));
        self.dropped.extend(gone);
        Ok(())
    }

    /// Writes everything.
    pub async fn write(self, tx: &Tx) -> Result<(), Fault> {
        let Self {
            tasks,
            task_overlays,
            steps,
            deleted,
            bodies,
            bodiless,
            overlays,
            dropped,
        } = self;
        put_tasks(tx, tasks).await?;
        super::task_write::put_overlays(tx, task_overlays).await?;
        delete_steps(tx, deleted).await?;
        put_steps(tx, steps).await?;
        put_bodies(tx, bodies).await?;
        delete_bodies(tx, bodiless).await?;
        delete_overlays(tx, dropped).await?;
        step_write::put_overlays(tx, overlays).await
    }
}

/// Places for steps in a new order that leave every existing step where it is;
/// `None` when the existing ones change their order or there is no room.
fn fit(steps: &[PlannedStep], known: &BTreeMap<StepId, Place>) -> Option<Vec<Place>> {
    let at = |step: &PlannedStep| {
        let before = step.before.as_ref()?;
        known.get(&before.guid)
    };
    let standing: Vec<&Place> = steps.iter().filter_map(at).collect();
    if !standing.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut ahead = standing.into_iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(steps.len());
    for step in steps {
        let place = match (at(step), places.last(), ahead.peek()) {
            (Some(place), _, _) => {
                ahead.next();
                place.clone()
            }
            (None, Some(low), Some(high)) => Place::between(low, high)?,
            (None, last, None) => Place::after(last)?,
            // Nothing is ever placed before a first step that stands.
            (None, None, Some(_)) => return None,
        };
        places.push(place);
    }
    Some(places)
}

/// The number of the last of so many steps, where they stand or in a numbering of
/// their own.
fn last_position(places: Option<&[Place]>, steps: usize) -> i64 {
    let last = match (places, steps.checked_sub(1)) {
        (Some(places), _) => places.last().cloned(),
        (None, last) => last.map(Place::nth),
    };
    last.map_or(0, |place| place.position)
}

fn body_row(tx: &Tx, step: StepId, body: &Body) -> step_body::ActiveModel {
    step_body::ActiveModel {
        account_id: Set(tx.account_id().to_owned()),
        step: Set(step.0),
        body: Set(body.as_str().to_owned()),
    }
}

async fn put_tasks(tx: &Tx, rows: Vec<task::Model>) -> Result<(), Fault> {
    use task::{ActiveModel, Column, Entity};
    let key = OnConflict::columns([Column::AccountId, Column::Guid])
        .update_columns(Column::iter().filter(|column| {
            !matches!(column, Column::AccountId | Column::Guid | Column::CreatedTs)
        }))
        .to_owned();
    for rows in in_batches(rows) {
        let rows: Vec<ActiveModel> = rows.map(IntoActiveModel::into_active_model).collect();
        Entity::insert_many(rows)
            .on_conflict(key.clone())
            .exec_without_returning(&tx.db)
            .await?;
    }
    Ok(())
}

async fn put_steps(tx: &Tx, rows: Vec<step::Model>) -> Result<(), Fault> {
    use step::{ActiveModel, Column, Entity};
    let key = OnConflict::columns([Column::AccountId, Column::Guid])
        .update_columns(Column::iter().filter(|column| {
            !matches!(
                column,
                Column::AccountId | Column::Guid | Column::Task | Column::CreatedTs
            )
        }))
        .to_owned();
    for rows in in_batches(rows) {
        let rows: Vec<ActiveModel> = rows.map(IntoActiveModel::into_active_model).collect();
        Entity::insert_many(rows)
            .on_conflict(key.clone())
            .exec_without_returning(&tx.db)
            .await?;
    }
    Ok(())
}

async fn put_bodies(tx: &Tx, rows: Vec<step_body::ActiveModel>) -> Result<(), Fault> {
    use step_body::{Column, Entity};
    let key = OnConflict::columns([Column::AccountId, Column::Step])
        .update_column(Column::Body)
        .to_owned();
    for rows in in_batches(rows) {
        Entity::insert_many(rows)
            .on_conflict(key.clone())
            .exec_without_returning(&tx.db)
            .await?;
    }
    Ok(())
}

async fn delete_steps(tx: &Tx, steps: Vec<Uuid>) -> Result<(), Fault> {
    for steps in in_batches(steps) {
        step::Entity::delete_many()
            .filter(step::Column::AccountId.eq(tx.account_id()))
            .filter(step::Column::Guid.is_in(steps))
            .exec(&tx.db)
            .await?;
    }
    Ok(())
}

async fn delete_bodies(tx: &Tx, steps: Vec<Uuid>) -> Result<(), Fault> {
    for steps in in_batches(steps) {
        step_body::Entity::delete_many()
            .filter(step_body::Column::AccountId.eq(tx.account_id()))
            .filter(step_body::Column::Step.is_in(steps))
            .exec(&tx.db)
            .await?;
    }
    Ok(())
}

/// Deletes rows language by language: a thousand conditions, one for each row,
/// are an expression that is nested too deep.
async fn delete_overlays(tx: &Tx, rows: Vec<(Uuid, String)>) -> Result<(), Fault> {
    use step_translation::{Column, Entity};
    let mut steps: BTreeMap<String, Vec<Uuid>> = BTreeMap::new();
    for (step, language) in rows {
        steps.entry(language).or_default().push(step);
    }
    for (language, steps) in steps {
        for steps in in_batches(steps) {
            Entity::delete_many()
                .filter(Column::AccountId.eq(tx.account_id()))
                .filter(Column::Language.eq(&language))
                .filter(Column::Step.is_in(steps))
                .exec(&tx.db)
                .await?;
        }
    }
    Ok(())
}

/// Rows in batches of at most [`ROWS`].
pub(super) fn in_batches<T>(rows: Vec<T>) -> impl Iterator<Item = std::vec::IntoIter<T>> {
    let mut rows = rows.into_iter();
    std::iter::from_fn(move || {
        let batch: Vec<T> = rows.by_ref().take(ROWS).collect();
        (!batch.is_empty()).then(|| batch.into_iter())
    })
}
