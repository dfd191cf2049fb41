//! Turns [`Changes`] into statements: one guarded script without locks, or batches under
//! locks. What must happen on every write is added in [`DecidedWrite::rows_of_every_write`].

mod batch;
mod columns;
mod feed;
mod guarded;
mod history;

use sea_orm::{ActiveModelTrait, DbBackend};
use uuid::Uuid;

use super::{
    external_ids,
    name_uses::name_use_changes,
    request_outcomes::{KeptOutcome, delete_expired},
    rows::TranslationRows,
    sql::{Effect, RowChange, Script, Upsert},
};
use crate::{
    domain::{
        Error,
        changes::{Changes, StepChange, TaskChange},
        decide::WriteContext,
    },
    store::{
        WritePath,
        error::StoreError,
        schema::entity::{step_translation, task_translation},
    },
};

use batch::Batch;
use columns::{STEP_TRANSLATION_KEY, TASK_TRANSLATION_KEY, is_updated_translation_column};

pub use batch::{IfUnchanged, LockedStatement};
use feed::Deleted;
pub use feed::{FeedNumbers, FeedRows};

type TaskTranslationRows = TranslationRows<task_translation::ActiveModel>;
type StepTranslationRows = TranslationRows<step_translation::ActiveModel>;

/// The changes of one write, and the outcome to store.
pub struct DecidedWrite<'a> {
    /// What changes.
    pub changes: Changes,
    /// The outcome to keep for a retry.
    pub outcome: Option<KeptOutcome>,
    /// The entries in the change feed.
    pub feed: Option<FeedRows>,
    /// Tasks and steps that came back after their deletion.
    pub came_back: Vec<Uuid>,
    /// Account, time and limits.
    pub context: &'a WriteContext,
    /// The database that takes the statements.
    pub backend: DbBackend,
    /// Which ways its writes take.
    pub path: WritePath,
}

impl DecidedWrite<'_> {
    /// Rows that belong to every write, with or without locks: [`Changes`] name every task and
    /// step.
    fn rows_of_every_write(&self) -> Vec<RowChange> {
        let Self {
            changes,
            outcome,
            feed,
            came_back: _,
            context,
            backend: _,
            path: _,
        } = self;
        let outcome = outcome.iter();
        let outcome = outcome.map(|kept| RowChange::Upsert(kept.row(context)));
        let feed = feed.iter().map(|feed| feed.known(context));
        outcome
            .chain(feed)
            .chain(name_use_changes(changes, &context.account))
            .collect()
    }

    /// The write as one guarded script. `None` if it needs locks, as it changes more than
    /// one task, or one step and its task.
    pub fn script(self) -> Result<Option<Script>, StoreError> {
        let rows_of_every_write = self.rows_of_every_write();
        let Self {
            changes,
            outcome,
            // Its known rows are among those of every write, and there are no others here.
            feed: _,
            came_back: _,
            context,
            backend,
            path: _,
        } = self;
        let Changes {
            tasks,
            step_lists,
            steps,
            deleted_steps,
            moved,
            unlinked,
            renamed,
            retitled,
            translated_tasks,
            translated_steps,
            translated_from,
            role,
            acknowledged,
            history,
            undeleted,
            claimed_ids,
            // They were checked, see `Tx::check_depths`.
            depth_limits: _,
        } = changes;
        let needs_locks = !moved.is_empty()
            || !unlinked.is_empty()
            || !renamed.is_empty()
            || !retitled.is_empty()
            || !translated_tasks.is_empty()
            || !translated_steps.is_empty()
            || !translated_from.is_empty()
            || !acknowledged.is_empty()
            || history.is_some()
            || !undeleted.is_empty();
        let (Some(task), Some(order), Some(step), Some(deletion)) = (
            at_most_one(tasks),
            at_most_one(step_lists),
            at_most_one(steps),
            at_most_one(deleted_steps),
        ) else {
            return Ok(None);
        };
        let mut script = match (task, order, step, deletion, role) {
            _ if needs_locks => return Ok(None),
            (Some(TaskChange::Create(task)), None, None, None, None) => {
                guarded::create_task(&task, backend)
            }
            (Some(TaskChange::Update { before, after }), None, None, None, None) => {
                guarded::update_task(&before, &after, backend)
            }
            (None, Some(order), Some(change), None, None)
                if change.before.is_none() && change.after.kind.subtask().is_none() =>
            {
                guarded::create_step(order, change, context, backend)?
            }
            (None, None, Some(change), None, None) if keeps_subtask(&change) => {
                guarded::update_step(change, backend)?
            }
            (None, Some(order), None, Some(deletion), None) => {
                guarded::delete_step(order, &deletion, context)
            }
            (None, None, None, None, Some(role)) => guarded::change_role(role),
            _ => return Ok(None),
        };
        external_ids::add_check(&mut script, &claimed_ids);
        for rows in rows_of_every_write {
            let effect = rows.if_guarded(&mut script.values, backend);
            script.effects.extend(effect);
        }
        if let Some(outcome) = outcome {
            outcome.add_retry_check(&mut script);
            let delete = delete_expired(&mut script.values, context);
            script
                .effects
                .push(Effect::delete(delete).may_change_none());
        }
        Ok(Some(script))
    }

    /// The write as statements of one transaction that holds all locks.
    pub fn under_locks(self) -> Result<Vec<LockedStatement>, StoreError> {
        let rows_of_every_write = self.rows_of_every_write();
        let Self {
            changes,
            outcome,
            feed,
            came_back,
            context,
            backend,
            path,
        } = self;
        let Changes {
            tasks,
            step_lists,
            steps,
            deleted_steps,
            moved,
            unlinked,
            renamed,
            retitled,
            translated_tasks,
            translated_steps,
            translated_from,
            acknowledged,
            history,
            undeleted,
            // They were checked, see `Tx::check_claimed_ids`.
            claimed_ids: _,
            // A role is always written by a script, see `PendingWrite::run_locked`.
            role: _,
            depth_limits: _,
        } = changes;
        let mut batch = Batch::new(backend, path);
        if outcome.is_some() {
            batch.delete_expired_outcomes(context);
        }
        let mut task_translations = TaskTranslationRows::default();
        let mut step_translations = StepTranslationRows::default();
        let deleted_tasks = batch.put_tasks(tasks, &mut task_translations, &translated_from);
        let deleted_steps = deleted_steps.into_iter().map(|deleted| deleted.step.0);
        batch.delete_noted(Deleted::STEPS, deleted_steps, context);
        batch.clear_external_ids(&external_ids::reassigned(&steps));
        batch.put_steps(steps, &mut step_translations, &translated_from)?;
        batch.move_steps(moved);
        batch.unlink_steps(&unlinked, context);
        task_translations.add_translated_tasks(&translated_tasks, context);
        step_translations.add_translated_steps(&translated_steps, context);
        batch.put_translations(&TASK_TRANSLATION_KEY, task_translations);
        batch.put_translations(&STEP_TRANSLATION_KEY, step_translations);
        batch.add_translation_sizes(&translated_tasks, &translated_steps, context);
        for order in step_lists {
            batch.change_step_list(order, context);
        }
        batch.delete_tasks(deleted_tasks, context);
        if !retitled.is_empty() {
            batch.update_subtask_titles(&renamed, context);
        }
        for rows in rows_of_every_write {
            batch.attach(rows, &context.account);
        }
        if let Some(feed) = feed {
            batch.add_followers(&feed, context);
        }
        batch.forget_index_deletions(&came_back);
        batch.acknowledge(acknowledged, context);
        batch.undelete_histories(&undeleted);
        if let Some(history) = history {
            batch.edit_history(history, &context.account)?;
        }
        Ok(batch.into_statements())
    }
}

fn internal(what: &str) -> StoreError {
    Error::Internal(what.to_owned()).into()
}

/// The only element, or `Some(None)` for an empty list; `None` for a longer list.
#[allow(clippy::option_option)]
fn at_most_one<T>(list: Vec<T>) -> Option<Option<T>> {
    let mut items = list.into_iter();
    let first = items.next();
    items.next().is_none().then_some(first)
}

/// Whether an update leaves what the step refers to as a subtask step.
fn keeps_subtask(change: &StepChange) -> bool {
    let StepChange { before, after, .. } = change;
    let before = before.as_ref();
    before.is_some_and(|before| before.kind.subtask() == after.kind.subtask())
}

/// The upserts of translations: those with new texts, and those with changed locks only.
fn translation_upserts<M: ActiveModelTrait>(
    texts: Vec<M>,
    locks: Vec<M>,
    key: &[&str],
) -> [Upsert; 2] {
    [
        Upsert::new(texts).or_update(key, is_updated_translation_column),
        Upsert::new(locks).or_update(key, |column| column == "locked"),
    ]
}
