//! Turns [`Changes`] into statements: one guarded script without locks, or batches under
//! locks. What must happen on every write is added here.

use std::collections::BTreeMap;

use sea_orm::{ActiveModelTrait, ActiveValue::NotSet, DbBackend, Value};
use uuid::Uuid;

use super::{
    locks::MAX_IDS_PER_STATEMENT,
    request_outcomes::KeptOutcome,
    rows::{TranslationRows, step_row, step_translation_row, task_row, task_translation_row},
    sql::{GUARD, Script, Upsert, Values, assignments, list},
};
use crate::{
    domain::{
        Error,
        changes::{
            Changes, RoleChange, StepChange, StepDeletion, StepListChange, TaskChange,
            TranslatedStep, TranslatedTask,
        },
        decide::WriteContext,
        ids::{StepId, TaskId},
        order::{GAP, OrderChange, Place},
        revision::Revision,
        size::{RESERVED_BYTES, STEP_ID_BYTES, bytes},
        task::Task,
        translation::Language,
    },
    store::{
        error::StoreError,
        schema::entity::{step_translation, task_translation},
    },
};

/// The changes of one write, and the outcome to store.
pub struct DecidedWrite<'a> {
    /// What changes.
    pub changes: Changes,
    /// The outcome to keep for a retry.
    pub outcome: Option<KeptOutcome>,
    /// Account, time and limits.
    pub context: &'a WriteContext,
}

/// Locks the rows of a SELECT. SQLite has one writer and no such clause, see
/// [`for_backend`].
const FOR_UPDATE: &str = " FOR UPDATE";

/// One statement of a write under locks.
pub struct LockedStatement {
    /// The statement.
    pub sql: String,
    /// Its values, with the account as `$1` unless the rows name it.
    pub values: Values,
    /// What happens when no row is changed.
    pub if_unchanged: IfUnchanged,
}

/// What happens when a statement changes no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnchanged {
    /// The write goes on.
    Accept,
    /// The write fails, as the task would be too large.
    RefuseAsTooLarge,
}

/// The fields that make a new state of a row, as [`Revision::next`] does of one in memory.
///
/// [`Revision::next`]: crate::domain::revision::Revision::next
fn next_revision(table: &str, values: &mut Values, context: &WriteContext) -> String {
    let now = values.bind(context.now.0);
    format!("version = {table}.version + 1, dirty_record = true, modified_ts = {now}")
}

/// Whether an update may change a column of a task.
fn is_updated_task_column(column: &str) -> bool {
    !matches!(column, "account_id" | "guid" | "product_id" | "created_ts")
}

/// Whether an update may change a column of a step. Its body is set apart, as it is only
/// written when it has changed.
fn is_updated_step_column(column: &str) -> bool {
    !matches!(
        column,
        "account_id" | "guid" | "task" | "kind" | "product_id" | "created_ts" | "body"
    )
}

/// Whether an update may change a column of a translation.
fn is_updated_translation_column(column: &str) -> bool {
    !matches!(column, "account_id" | "task" | "step" | "language")
}

const TASK_KEY: [&str; 2] = ["account_id", "guid"];
const STEP_KEY: [&str; 2] = ["account_id", "guid"];
const TASK_TRANSLATION_KEY: [&str; 3] = ["account_id", "task", "language"];
const STEP_TRANSLATION_KEY: [&str; 3] = ["account_id", "step", "language"];

type TaskTranslationRows = TranslationRows<task_translation::ActiveModel>;
type StepTranslationRows = TranslationRows<step_translation::ActiveModel>;

impl DecidedWrite<'_> {
    /// The write as one guarded script; `None` when it reaches beyond one task, or one
    /// step and its task, so that it needs locks.
    pub fn script(self) -> Result<Option<Script>, StoreError> {
        let Self {
            changes,
            outcome,
            context,
        } = self;
        let Changes {
            tasks,
            orders,
            steps,
            deleted_steps,
            moved,
            renamed,
            translated_tasks,
            translated_steps,
            role,
        } = changes;
        let needs_locks = !moved.is_empty()
            || !renamed.is_empty()
            || !translated_tasks.is_empty()
            || !translated_steps.is_empty();
        let (Some(task), Some(order), Some(step), Some(deletion)) = (
            at_most_one(tasks),
            at_most_one(orders),
            at_most_one(steps),
            at_most_one(deleted_steps),
        ) else {
            return Ok(None);
        };
        let script = match (task, order, step, deletion, role) {
            _ if needs_locks => return Ok(None),
            (Some(TaskChange::Create(task)), None, None, None, None) => create_task(&task),
            (Some(TaskChange::Update { before, after }), None, None, None, None) => {
                update_task(&before, &after)
            }
            (None, Some(order), Some(change), None, None)
                if change.before.is_none() && change.after.kind.subtask().is_none() =>
            {
                create_step(order, change, context)?
            }
            (None, None, Some(change), None, None) if keeps_subtask(&change) => {
                update_step(change)?
            }
            (None, Some(order), None, Some(deletion), None) => {
                delete_step(order, &deletion, context)
            }
            (None, None, None, None, Some(role)) => change_role(role),
            _ => return Ok(None),
        };
        Ok(Some(match outcome {
            Some(outcome) => outcome.keep_with(script, context),
            None => script,
        }))
    }

    /// The write as statements of one transaction that holds all locks.
    pub fn under_locks(self) -> Result<Vec<LockedStatement>, StoreError> {
        let Self {
            changes,
            outcome,
            context,
        } = self;
        let Changes {
            tasks,
            orders,
            steps,
            deleted_steps,
            moved,
            renamed,
            translated_tasks,
            translated_steps,
            // A role is always written by a script, see `run_locked`.
            role: _,
        } = changes;
        let mut batch = Batch::default();
        let mut task_translations = TaskTranslationRows::default();
        let mut step_translations = StepTranslationRows::default();
        let mut rows = Vec::new();
        let mut deleted = Vec::new();
        for change in tasks {
            let (before, after) = match change {
                TaskChange::Create(after) => (None, after),
                TaskChange::Update { before, after } => (Some(before), after),
                TaskChange::Delete { task, has_steps } => {
                    deleted.push((task, has_steps));
                    continue;
                }
            };
            task_translations.add_task(before.as_deref(), &after);
            rows.push(task_row(&after));
        }
        batch.upsert(Upsert::new(rows).or_update(&TASK_KEY, is_updated_task_column));
        batch.delete(
            "steps",
            "guid",
            deleted_steps.into_iter().map(|deleted| deleted.step.0),
        );
        let (mut rows, mut rows_with_body) = (Vec::new(), Vec::new());
        for change in steps {
            let StepChange {
                before,
                after,
                place,
            } = change;
            let place = place.ok_or_else(|| internal("a written step has no place"))?;
            step_translations.add_step(before.as_deref(), &after);
            let same_body = before.is_some_and(|before| before.content.body == after.content.body);
            let mut row = step_row(*after, place)?;
            if same_body {
                row.body = NotSet;
                rows.push(row);
            } else {
                rows_with_body.push(row);
            }
        }
        batch.upsert(Upsert::new(rows).or_update(&STEP_KEY, is_updated_step_column));
        batch.upsert(
            Upsert::new(rows_with_body).or_update(&STEP_KEY, is_updated_step_or_body_column),
        );
        batch.move_steps(moved);
        for translated in &translated_tasks {
            let TranslatedTask {
                task, name, rows, ..
            } = translated;
            let name = name.as_str();
            task_translations
                .texts
                .extend(rows.iter().map(|(language, overlay)| {
                    task_translation_row(&context.account, *task, name, language, overlay)
                }));
        }
        for translated in &translated_steps {
            let TranslatedStep {
                step,
                title,
                content_digest,
                rows,
                ..
            } = translated;
            let source = (title.as_str(), *content_digest);
            step_translations
                .texts
                .extend(rows.iter().map(|(language, overlay)| {
                    step_translation_row(&context.account, *step, source, language, overlay)
                }));
        }
        batch.translations(
            "task_translations",
            &TASK_TRANSLATION_KEY,
            task_translations,
        );
        batch.translations(
            "step_translations",
            &STEP_TRANSLATION_KEY,
            step_translations,
        );
        batch.add_translation_sizes_to_tasks(&translated_tasks, context);
        batch.add_translation_sizes_to_steps(&translated_steps, context);
        for order in orders {
            let mut values = Values::new();
            let (sql, _) = change_order(order, &mut values, context);
            batch.push(sql, values, IfUnchanged::RefuseAsTooLarge);
        }
        for (task, has_steps) in deleted {
            if has_steps {
                batch.delete("steps", "task", [task.0]);
            }
            batch.delete("tasks", "guid", [task.0]);
        }
        batch.update_subtask_titles(&renamed, context);
        if let Some(outcome) = outcome {
            outcome.keep(&mut batch, context);
        }
        Ok(batch.statements)
    }
}

fn internal(what: &str) -> StoreError {
    Error::Internal(what.to_owned()).into()
}

/// The one element, or none; `None` when there are more.
#[allow(clippy::option_option)]
fn at_most_one<T>(list: Vec<T>) -> Option<Option<T>> {
    let mut items = list.into_iter();
    let first = items.next();
    items.next().is_none().then_some(first)
}

fn keeps_subtask(change: &StepChange) -> bool {
    let StepChange { before, after, .. } = change;
    let before = before.as_ref();
    before.is_some_and(|before| before.kind.subtask() == after.kind.subtask())
}

/// A script without effects.
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
        verified: false,
        values,
    }
}

fn create_task(task: &Task) -> Script {
    let mut translations = TaskTranslationRows::default();
    translations.add_task(None, task);
    let mut values = Values::new();
    let guid = values.bind(task.guid.0);
    let guard = Upsert::new(vec![task_row(task)]).insert_as_guard(&mut values);
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {guid}");
    let mut script = script_of_guard(guard, "guid", guard_row, values);
    translations.add_to(&mut script, "task_translations", &TASK_TRANSLATION_KEY);
    script
}

fn update_task(before: &Task, after: &Task) -> Script {
    let mut translations = TaskTranslationRows::default();
    translations.add_task(Some(before), after);
    let mut values = Values::new();
    let set = assignments(task_row(after), &mut values, is_updated_task_column);
    update_guarded(
        "tasks",
        after.guid.0,
        before.revision,
        &set,
        values,
        |script| {
            translations.add_to(script, "task_translations", &TASK_TRANSLATION_KEY);
        },
    )
}

fn update_step(change: StepChange) -> Result<Script, StoreError> {
    let StepChange {
        before,
        after,
        place,
    } = change;
    let (Some(before), Some(place)) = (before, place) else {
        return Err(internal("a step update has no stored step"));
    };
    let mut translations = StepTranslationRows::default();
    translations.add_step(Some(&before), &after);
    let same_body = before.content.body == after.content.body;
    let guid = after.guid.0;
    let mut row = step_row(*after, place)?;
    if same_body {
        row.body = NotSet;
    }
    let mut values = Values::new();
    // Renumbering moves a step without a new version, so an update leaves its place.
    let changes = |column: &str| {
        is_updated_step_or_body_column(column) && !matches!(column, "position" | "fraction")
    };
    let set = assignments(row, &mut values, changes);
    Ok(update_guarded(
        "steps",
        guid,
        before.revision,
        &set,
        values,
        |script| {
            translations.add_to(script, "step_translations", &STEP_TRANSLATION_KEY);
        },
    ))
}

/// An update of a row that is still in the state that it was read in.
fn update_guarded(
    table: &str,
    guid: Uuid,
    expected: Revision,
    set: &str,
    mut values: Values,
    add_effects: impl FnOnce(&mut Script),
) -> Script {
    let guid = values.bind(guid);
    let version = values.bind(expected.version);
    let modified = values.bind(expected.modified.0);
    let guard = format!(
        "UPDATE {table} SET {set} WHERE account_id = $1 AND guid = {guid} \
         AND version = {version} AND modified_ts = {modified}"
    );
    let guard_row = format!("FROM {table} WHERE account_id = $1 AND guid = {guid}");
    let mut script = script_of_guard(guard, "guid", guard_row, values);
    add_effects(&mut script);
    script
}

fn create_step(
    order: StepListChange,
    change: StepChange,
    context: &WriteContext,
) -> Result<Script, StoreError> {
    let StepChange { after, place, .. } = change;
    let mut translations = StepTranslationRows::default();
    translations.add_step(None, &after);
    let mut values = Values::new();
    let (guard, task) = change_order(order, &mut values, context);
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {task}");
    let mut script = script_of_guard(guard, "last_position", guard_row, values);
    // An appended step takes the `last_position` that the guard returns.
    let counted: &[(&str, &str)] = match place {
        Some(_) => &[],
        None => &[("position", "last_position")],
    };
    let place = place.unwrap_or(Place {
        position: 0,
        fraction: Vec::new(),
    });
    let row = Upsert::new(vec![step_row(*after, place)?]);
    script.effects = row.insert_if_guarded(&mut script.values, counted);
    translations.add_to(&mut script, "step_translations", &STEP_TRANSLATION_KEY);
    Ok(script)
}

/// Deletes a step that is still in the state that it was read in. The task is locked
/// before the step, as always.
fn delete_step(order: StepListChange, deletion: &StepDeletion, context: &WriteContext) -> Script {
    let mut values = Values::new();
    let (guard, task) = change_order(order, &mut values, context);
    let step = format!(
        "account_id = $1 AND guid = {} AND version = {} AND modified_ts = {}",
        values.bind(deletion.step.0),
        values.bind(deletion.revision.version),
        values.bind(deletion.revision.modified.0),
    );
    let guard = format!("{guard} AND EXISTS (SELECT 1 FROM steps WHERE {step})");
    let guard_row = format!("FROM tasks WHERE account_id = $1 AND guid = {task}");
    Script {
        effects: vec![format!(
            "DELETE FROM steps WHERE {step} AND EXISTS (SELECT 1 FROM {GUARD})"
        )],
        // The step may change while the guard waits for the task.
        verified: true,
        ..script_of_guard(guard, "guid", guard_row, values)
    }
}

fn change_role(change: RoleChange) -> Script {
    let mut values = Values::new();
    match change {
        // `last_role_id` only grows, so no id is used twice.
        RoleChange::Create(name) => {
            let guard = "INSERT INTO accounts (account_id, last_role_id) VALUES ($1, 1) \
                 ON CONFLICT (account_id) DO UPDATE SET last_role_id = accounts.last_role_id + 1";
            let name = values.bind(name.into_string());
            let guard_row = "FROM accounts WHERE account_id = $1";
            let effect = format!(
                "INSERT INTO roles (account_id, id, name) \
                 SELECT $1, last_role_id, {name} FROM {GUARD}"
            );
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

/// The UPDATE of a task whose list of steps changes, and the placeholder of its id. It
/// matches no row if the task would be too large.
fn change_order(
    order: StepListChange,
    values: &mut Values,
    context: &WriteContext,
) -> (String, String) {
    let StepListChange {
        task,
        change,
        task_version,
    } = order;
    let revision = next_revision("tasks", values, context);
    let (added, counted): (i64, String) = match change {
        OrderChange::Append => (1, format!(", last_position = last_position + {GAP}")),
        OrderChange::Insert { position } => {
            let at = values.bind(position);
            let counted = format!(
                ", last_position = CASE WHEN last_position < {at} THEN {at} ELSE last_position END"
            );
            (1, counted)
        }
        OrderChange::Renumber { last_position } => {
            let last = values.bind(last_position);
            (
                1,
                format!(", last_position = {last}, order_epoch = order_epoch + 1"),
            )
        }
        OrderChange::Remove => (-1, String::new()),
    };
    let added_steps = values.bind(added);
    let task = values.bind(task.0);
    let mut sql = format!(
        "UPDATE tasks SET {revision}, step_count = step_count + {added_steps}{counted} \
         WHERE account_id = $1 AND guid = {task}"
    );
    if added > 0 {
        let limit = values.bind(bytes(context.max_message_bytes));
        sql.push_str(&format!(
            " AND size + (step_count + {added_steps}) * {STEP_ID_BYTES} + {RESERVED_BYTES} <= {limit} \
             AND last_position <= {}",
            i64::MAX - GAP,
        ));
    }
    if let Some(version) = task_version {
        sql.push_str(&format!(" AND version = {}", values.bind(version)));
    }
    (sql, task)
}

fn is_updated_step_or_body_column(column: &str) -> bool {
    column == "body" || is_updated_step_column(column)
}

impl<M: ActiveModelTrait> TranslationRows<M> {
    /// Puts and drops the rows when the guard of a script has changed a row.
    fn add_to(self, script: &mut Script, table: &str, key: &[&str; 3]) {
        let Self {
            texts,
            locks,
            dropped,
        } = self;
        let [_, resource, _] = key;
        for (guid, language) in dropped {
            let guid = script.values.bind(guid);
            let language = script.values.bind(language.as_str());
            script.effects.push(format!(
                "DELETE FROM {table} WHERE account_id = $1 AND {resource} = {guid} \
                 AND language = {language} AND EXISTS (SELECT 1 FROM {GUARD})"
            ));
        }
        for rows in put_translations(texts, locks, key) {
            script
                .effects
                .extend(rows.insert_if_guarded(&mut script.values, &[]));
        }
    }
}

fn put_translations<M: ActiveModelTrait>(
    texts: Vec<M>,
    locks: Vec<M>,
    key: &[&str],
) -> [Upsert; 2] {
    [
        Upsert::new(texts).or_update(key, is_updated_translation_column),
        Upsert::new(locks).or_update(key, |column| column == "locked"),
    ]
}

/// Statements of one transaction, in their order.
#[derive(Default)]
pub struct Batch {
    statements: Vec<LockedStatement>,
}

impl Batch {
    /// Adds a statement.
    pub fn push(&mut self, sql: String, values: Values, if_unchanged: IfUnchanged) {
        self.statements.push(LockedStatement {
            sql,
            values,
            if_unchanged,
        });
    }

    /// Puts rows.
    pub fn upsert(&mut self, rows: Upsert) {
        for (sql, values) in rows.statements() {
            self.push(sql, values, IfUnchanged::Accept);
        }
    }

    fn translations<M: ActiveModelTrait>(
        &mut self,
        table: &str,
        key: &[&str; 3],
        rows: TranslationRows<M>,
    ) {
        let TranslationRows {
            texts,
            locks,
            dropped,
        } = rows;
        let [_, resource, _] = key;
        // By language: an OR for each row would exceed SQLite's depth of expressions.
        let mut by_language: BTreeMap<Language, Vec<Uuid>> = BTreeMap::new();
        for (guid, language) in dropped {
            by_language.entry(language).or_default().push(guid);
        }
        for (language, resources) in by_language {
            for resources in resources.chunks(MAX_IDS_PER_STATEMENT) {
                let mut values = Values::new();
                let language = values.bind(language.as_str());
                let resources = values.bind_all(resources.iter().copied());
                let sql = format!(
                    "DELETE FROM {table} WHERE account_id = $1 AND language = {language} \
                     AND {resource} IN ({resources})"
                );
                self.push(sql, values, IfUnchanged::Accept);
            }
        }
        for rows in put_translations(texts, locks, key) {
            self.upsert(rows);
        }
    }

    /// Deletes rows by an id.
    fn delete(&mut self, table: &str, column: &str, ids: impl IntoIterator<Item = Uuid>) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let ids = values.bind_all(ids.iter().copied());
            let sql = format!("DELETE FROM {table} WHERE account_id = $1 AND {column} IN ({ids})");
            self.push(sql, values, IfUnchanged::Accept);
        }
    }

    /// Moves steps. Ids are listed twice, so that PostgreSQL uses the primary key even
    /// without statistics.
    fn move_steps(&mut self, moved: Vec<(StepId, Place)>) {
        let mut moved = moved.into_iter().peekable();
        while moved.peek().is_some() {
            let mut values = Values::new();
            let rows = moved
                .by_ref()
                .take(MAX_IDS_PER_STATEMENT)
                .map(|(step, place)| {
                    let Place { position, fraction } = place;
                    vec![step.0.into(), position.into(), fraction.into()]
                });
            let (ids, rows) = keyed_rows(rows, &mut values);
            let sql = format!(
                "WITH moved (guid, position, fraction) AS (VALUES {rows}) \
                 UPDATE steps SET position = moved.position, fraction = moved.fraction \
                 FROM moved WHERE steps.account_id = $1 AND steps.guid IN ({ids}) \
                 AND steps.guid = moved.guid"
            );
            self.push(sql, values, IfUnchanged::Accept);
        }
    }

    fn add_translation_sizes_to_tasks(
        &mut self,
        translated: &[TranslatedTask],
        context: &WriteContext,
    ) {
        if translated.is_empty() {
            return;
        }
        let mut values = Values::new();
        let revision = next_revision("tasks", &mut values, context);
        let rows = translated.iter().map(|task| {
            vec![
                task.task.0.into(),
                task.growth.into(),
                task.added_languages.into(),
            ]
        });
        let (ids, rows) = keyed_rows(rows, &mut values);
        let sql = format!(
            "WITH grown (guid, size, languages) AS (VALUES {rows}) \
             UPDATE tasks SET {revision}, size = tasks.size + grown.size, \
             language_count = tasks.language_count + grown.languages \
             FROM grown WHERE tasks.account_id = $1 AND tasks.guid IN ({ids}) \
             AND tasks.guid = grown.guid"
        );
        self.push(sql, values, IfUnchanged::Accept);
    }

    fn add_translation_sizes_to_steps(
        &mut self,
        translated: &[TranslatedStep],
        context: &WriteContext,
    ) {
        if translated.is_empty() {
            return;
        }
        let mut values = Values::new();
        let revision = next_revision("steps", &mut values, context);
        let rows = translated.iter().map(|step| {
            vec![
                step.step.0.into(),
                step.growth.listed.into(),
                step.growth.bodies.into(),
                step.added_languages.into(),
            ]
        });
        let (ids, rows) = keyed_rows(rows, &mut values);
        let sql = format!(
            "WITH grown (guid, size, bodies, languages) AS (VALUES {rows}) \
             UPDATE steps SET {revision}, size = steps.size + grown.size, \
             body_size = steps.body_size + grown.bodies, \
             language_count = steps.language_count + grown.languages \
             FROM grown WHERE steps.account_id = $1 AND steps.guid IN ({ids}) \
             AND steps.guid = grown.guid"
        );
        self.push(sql, values, IfUnchanged::Accept);
    }

    /// Gives subtask steps the names of the tasks that they refer to. They are locked in
    /// the order of their ids first.
    fn update_subtask_titles(&mut self, tasks: &[TaskId], context: &WriteContext) {
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let ids = || tasks.iter().map(|task| task.0);
            let mut values = Values::new();
            let sql = format!(
                "SELECT guid FROM steps WHERE account_id = $1 AND subtask_id IN ({}) \
                 ORDER BY guid{FOR_UPDATE}",
                values.bind_all(ids()),
            );
            self.push(sql, values, IfUnchanged::Accept);
            let mut values = Values::new();
            let revision = next_revision("steps", &mut values, context);
            let ids = values.bind_all(ids());
            let sql = format!(
                "UPDATE steps SET {revision}, title = tasks.name, \
                 size = steps.size + octet_length(tasks.name) - octet_length(steps.title) \
                 FROM tasks WHERE steps.account_id = $1 AND steps.subtask_id IN ({ids}) \
                 AND tasks.account_id = $1 AND tasks.guid = steps.subtask_id \
                 AND steps.title <> tasks.name"
            );
            self.push(sql, values, IfUnchanged::Accept);
        }
    }
}

/// Rows whose first value is an id, as `(…), (…)`, and those ids.
fn keyed_rows(rows: impl Iterator<Item = Vec<Value>>, values: &mut Values) -> (String, String) {
    let mut ids = Vec::new();
    let rows = list(rows.map(|row| {
        let row: Vec<String> = row.into_iter().map(|value| values.bind(value)).collect();
        ids.extend(row.first().cloned());
        format!("({})", row.join(", "))
    }));
    (ids.join(", "), rows)
}

/// Removes FOR UPDATE for SQLite, which has no row locks.
pub fn for_backend(sql: String, backend: DbBackend) -> String {
    match (backend, sql.strip_suffix(FOR_UPDATE)) {
        (DbBackend::Sqlite, Some(sql)) => sql.to_owned(),
        _ => sql,
    }
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
