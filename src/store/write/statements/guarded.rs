//! Writes without locks, each as one guarded script.

use sea_orm::{ActiveModelTrait, ActiveValue::NotSet, DbBackend, EntityName};
use uuid::Uuid;

use super::{
    StepTranslationRows, TaskTranslationRows,
    columns::{STEP_TRANSLATION_KEY, TASK_TRANSLATION_KEY, change_step_list},
    internal, translation_upserts,
};
use crate::{
    domain::{
        changes::{RoleChange, StepChange, StepDeletion, StepListChange},
        decide::WriteContext,
        history::TranslatedFrom,
        order::Place,
        row_version::RowVersion,
        task::Task,
    },
    store::{
        error::StoreError,
        schema::entity::{step, task},
        step_row::step_row,
        write::{
            rows::{TranslationRows, task_row},
            sql::{Effect, Script, Upsert, Values, assignments},
        },
    },
};

/// A script with its guard and without effects.
fn script_of_guard(
    guard: String,
    returning: &'static str,
    guard_row: String,
    values: Values,
) -> Script {
    Script {
        guard,
        returning,
        guard_row,
        effects: Vec::new(),
        values,
    }
}

/// Creates a task.
pub fn create_task(task: &Task, backend: DbBackend) -> Script {
    let mut translations = TaskTranslationRows::default();
    translations.add_task(None, task, &TranslatedFrom::default());
    let mut values = Values::new();
    let guid = values.bind(task.guid.0);
    let guard = Upsert::new(vec![task_row(task)]).insert_as_guard(&mut values);
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {guid}");
    let mut script = script_of_guard(guard, "guid", guard_row, values);
    translations.add_to(&mut script, &TASK_TRANSLATION_KEY, backend);
    script
}

/// Updates a task that is still in the state that it was read in.
pub fn update_task(before: &Task, after: &Task, backend: DbBackend) -> Script {
    let mut translations = TaskTranslationRows::default();
    translations.add_task(Some(before), after, &TranslatedFrom::default());
    let mut values = Values::new();
    let before_row = task::ActiveModel {
        // An index may have cleared it since, which is no new version.
        dirty_record: NotSet,
        ..task_row(before)
    };
    let set = assignments(before_row, task_row(after), &mut values);
    let mut script = update_guarded("tasks", after.guid.0, before.row_version, &set, values);
    translations.add_to(&mut script, &TASK_TRANSLATION_KEY, backend);
    script
}

/// Updates a step that is still in the state that it was read in.
pub fn update_step(change: StepChange, backend: DbBackend) -> Result<Script, StoreError> {
    let StepChange {
        before,
        after,
        place,
    } = change;
    let (Some(before), Some(place)) = (before, place) else {
        return Err(internal("a step update has no stored step"));
    };
    let mut translations = StepTranslationRows::default();
    translations.add_step(Some(&before), &after, &TranslatedFrom::default());
    let guid = after.guid.0;
    let row_version = before.row_version;
    let mut values = Values::new();
    // Renumbering moves a step without a new version. The place is the same in both rows, so
    // the update leaves it as it is.
    let before = step::ActiveModel {
        // An index may have cleared it since, which is no new version.
        dirty_record: NotSet,
        ..step_row(*before, place.clone())?
    };
    let set = assignments(before, step_row(*after, place)?, &mut values);
    let mut script = update_guarded("steps", guid, row_version, &set, values);
    translations.add_to(&mut script, &STEP_TRANSLATION_KEY, backend);
    Ok(script)
}

/// An update of a row that is still in the state that it was read in.
fn update_guarded(
    table: &str,
    guid: Uuid,
    expected: RowVersion,
    set: &str,
    mut values: Values,
) -> Script {
    let guid = values.bind(guid);
    let version = values.bind(expected.version);
    let modified = values.bind(expected.modified.0);
    let guard = format!(
        "UPDATE {table} SET {set} WHERE account_id = $1 AND guid = {guid} \
         AND version = {version} AND modified_ts = {modified}"
    );
    let guard_row = format!("FROM {table} WHERE account_id = $1 AND guid = {guid}");
    script_of_guard(guard, "guid", guard_row, values)
}

/// Creates a step, with the UPDATE of its task as the guard.
pub fn create_step(
    order: StepListChange,
    change: StepChange,
    context: &WriteContext,
    backend: DbBackend,
) -> Result<Script, StoreError> {
    let StepChange { after, place, .. } = change;
    let mut translations = StepTranslationRows::default();
    translations.add_step(None, &after, &TranslatedFrom::default());
    let mut values = Values::new();
    let (guard, task) = change_step_list(order, &mut values, context);
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {task}");
    let mut script = script_of_guard(guard, "last_position", guard_row, values);
    let effect = match place {
        Some(place) => {
            let row = Upsert::new(vec![step_row(*after, place)?]);
            row.insert_if_guarded(&mut script.values, backend)
        }
        // An appended step takes the `last_position` that the guard returns.
        None => {
            let replaced = Place {
                position: 0,
                fraction: Vec::new(),
            };
            let row = Upsert::new(vec![step_row(*after, replaced)?]);
            let (column, expression) = ("position", "last_position");
            Some(row.insert_of_guard_row(&mut script.values, column, expression))
        }
    };
    script.effects.extend(effect);
    translations.add_to(&mut script, &STEP_TRANSLATION_KEY, backend);
    Ok(script)
}

/// Deletes a step that is still in the state that it was read in, and that the external index does
/// not hold: else it is deleted under locks, and the deletion noted. Like every write, it locks the
/// task before the step.
pub fn delete_step(
    order: StepListChange,
    deletion: &StepDeletion,
    context: &WriteContext,
) -> Script {
    let mut values = Values::new();
    let (guard, task) = change_step_list(order, &mut values, context);
    let step = format!(
        "account_id = $1 AND guid = {} AND version = {} AND modified_ts = {} AND NOT indexed",
        values.bind(deletion.step.0),
        values.bind(deletion.row_version.version),
        values.bind(deletion.row_version.modified.0),
    );
    let guard = format!("{guard} AND EXISTS (SELECT 1 FROM steps WHERE {step})");
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {task}");
    Script {
        // The step may change while the guard waits for the task.
        effects: vec![Effect::delete(format!("DELETE FROM steps WHERE {step}")).must_change()],
        ..script_of_guard(guard, "guid", guard_row, values)
    }
}

/// Creates or deletes a role.
pub fn change_role(change: RoleChange) -> Script {
    let mut values = Values::new();
    match change {
        // `last_role_id` only grows, so no id is used twice.
        RoleChange::Create(name) => {
            let guard = "INSERT INTO accounts (account_id, last_role_id) VALUES ($1, 1) \
                 ON CONFLICT (account_id) DO UPDATE SET last_role_id = accounts.last_role_id + 1";
            let name = values.bind(name.into_string());
            let guard_row = "FROM accounts WHERE account_id = $1";
            let effect = Effect::insert_of_row(format!(
                "INSERT INTO roles (account_id, id, name) SELECT $1, last_role_id, {name} FROM "
            ));
            Script {
                effects: vec![effect],
                ..script_of_guard(
                    guard.to_owned(),
                    "last_role_id",
                    guard_row.to_owned(),
                    values,
                )
            }
        }
        RoleChange::Delete(id) => {
            let id = values.bind(id.0);
            let role = format!("FROM roles WHERE account_id = $1 AND id = {id}");
            script_of_guard(format!("DELETE {role}"), "id", role, values)
        }
    }
}

impl<M: ActiveModelTrait> TranslationRows<M> {
    /// Puts and drops the rows when the guard of a script has changed a row.
    fn add_to(self, script: &mut Script, key: &[&str; 3], backend: DbBackend) {
        let table = M::Entity::default().table_name();
        let Self {
            texts,
            locks,
            dropped,
        } = self;
        let [_, resource, _] = key;
        for (guid, language) in dropped {
            let guid = script.values.bind(guid);
            let language = script.values.bind(language.as_str());
            script.effects.push(Effect::delete(format!(
                "DELETE FROM {table} WHERE account_id = $1 AND {resource} = {guid} \
                 AND language = {language}"
            )));
        }
        for rows in translation_upserts(texts, locks, key) {
            let effect = rows.insert_if_guarded(&mut script.values, backend);
            script.effects.extend(effect);
        }
    }
}
