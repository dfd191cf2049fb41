//! Writes under locks, as statements of one transaction.

use std::collections::BTreeMap;

use sea_orm::{ActiveModelTrait, ActiveValue::NotSet, DbBackend, EntityName, Statement, Value};
use uuid::Uuid;

use super::{
    StepTranslationRows, TaskTranslationRows,
    columns::{
        STEP_KEY, TASK_KEY, change_step_list, is_updated_step_column,
        is_updated_step_or_body_column, is_updated_task_column, next_row_version,
    },
    feed::Deleted,
    internal, translation_upserts,
};
use crate::{
    domain::{
        changes::{StepChange, StepListChange, TaskChange, TranslatedStep, TranslatedTask},
        decide::WriteContext,
        history::TranslatedFrom,
        ids::{AccountId, StepId, TaskId},
        order::Place,
        translation::Language,
    },
    store::{
        WritePath,
        error::StoreError,
        schema::entity::step,
        step_row::{step_row, step_row_without_body},
        write::{
            request_outcomes::delete_expired,
            rows::{TranslationRows, task_row},
            sql::{
                GivenRows, MAX_IDS_PER_STATEMENT, Placeholder, RowChange, Upsert, Values,
                assignments, list,
            },
        },
    },
};

/// Statements of one transaction, in their order.
pub struct Batch {
    backend: DbBackend,
    /// Whether [`Self::attach`] may attach rows to another statement. Notes of deletions always are
    /// attached.
    may_attach_rows: bool,
    statements: Vec<LockedStatement>,
    /// The last of them that puts or deletes rows.
    last_with_rows: Option<usize>,
}

impl Batch {
    /// No statements.
    pub fn new(backend: DbBackend, path: WritePath) -> Self {
        Self {
            backend,
            may_attach_rows: path != WritePath::LockedOnly,
            statements: Vec::new(),
            last_with_rows: None,
        }
    }

    /// The statements.
    pub fn into_statements(self) -> Vec<LockedStatement> {
        self.statements
    }

    pub fn push(&mut self, sql: String, values: Values) {
        self.statements.push(LockedStatement::new(sql, values));
    }

    /// Adds a statement for so many of the ids at a time. `sql` gets its values, and the
    /// placeholders of these ids.
    pub fn push_by_ids(
        &mut self,
        ids: impl IntoIterator<Item = Uuid>,
        mut sql: impl FnMut(&mut Values, &str) -> String,
    ) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let ids = values.bind_all(ids.iter().copied());
            let sql = sql(&mut values, &ids);
            self.push(sql, values);
        }
    }

    /// Puts rows.
    pub fn upsert(&mut self, rows: Upsert) {
        for (sql, values) in rows.statements(self.backend) {
            self.last_with_rows = Some(self.statements.len());
            self.push(sql, values);
        }
    }

    /// Puts or deletes further rows. The first batch is attached to the last statement that puts or
    /// deletes rows, and so takes no round trip of its own. On Citus nothing is attached, as that
    /// would go through the coordinator.
    pub fn attach(&mut self, change: RowChange, account: &AccountId) {
        let mut batches = change.batches().into_iter().peekable();
        let last = self.last_with_rows.filter(|_| self.may_attach_rows);
        if let Some(last) = last.and_then(|index| self.statements.get_mut(index))
            && let Some(batch) = batches.next_if(|batch| last.values.have_room(batch.value_count()))
        {
            let statement = batch.statement(account, &mut last.values, self.backend);
            last.attached.push(statement);
        }
        for batch in batches {
            let mut values = Values::in_order();
            let sql = batch.statement(account, &mut values, self.backend);
            self.push(sql, values);
        }
    }

    /// Puts created and updated tasks, and returns the deleted ones.
    pub fn put_tasks(
        &mut self,
        tasks: Vec<TaskChange>,
        translations: &mut TaskTranslationRows,
        translated_from: &TranslatedFrom,
    ) -> Vec<(TaskId, Vec<StepId>)> {
        let mut rows = Vec::new();
        let mut deleted = Vec::new();
        for change in tasks {
            let (before, after) = match change {
                TaskChange::Create(after) => (None, after),
                TaskChange::Update { before, after } => (Some(before), after),
                TaskChange::Delete { task, steps } => {
                    deleted.push((task, steps));
                    continue;
                }
            };
            translations.add_task(before.as_deref(), &after, translated_from);
            rows.push(task_row(&after));
        }
        self.upsert(Upsert::new(rows).or_update(&TASK_KEY, is_updated_task_column));
        deleted
    }

    /// Puts created and updated steps. A body is written only when it has changed. Rows that are
    /// all new are inserted without ON CONFLICT, with which PostgreSQL searches the key of each
    /// row once more and logs its insertion twice.
    pub fn put_steps(
        &mut self,
        mut steps: Vec<StepChange>,
        translations: &mut StepTranslationRows,
        translated_from: &TranslatedFrom,
    ) -> Result<(), StoreError> {
        if let [
            StepChange {
                before: Some(_), ..
            },
        ] = steps.as_slice()
            && let Some(change) = steps.pop()
        {
            return self.update_step(change, translations, translated_from);
        }
        let with_capacity = Upsert::with_capacity::<step::ActiveModel>;
        let (mut rows, mut rows_with_body) = (with_capacity(0), with_capacity(steps.len()));
        let mut all_new = true;
        for change in steps {
            let StepChange {
                before,
                after,
                place,
            } = change;
            let place = place.ok_or_else(|| internal("a written step has no place"))?;
            translations.add_step(before.as_deref(), &after, translated_from);
            let same_body = before
                .as_ref()
                .is_some_and(|before| before.content.body == after.content.body);
            if same_body {
                rows.push(step_row_without_body(*after, place)?);
            } else {
                all_new &= before.is_none();
                rows_with_body.push(step_row(*after, place)?);
            }
        }
        if !all_new {
            rows_with_body = rows_with_body.or_update(&STEP_KEY, is_updated_step_or_body_column);
        }
        self.upsert(rows.or_update(&STEP_KEY, is_updated_step_column));
        self.upsert(rows_with_body);
        Ok(())
    }

    /// Updates one step.
    fn update_step(
        &mut self,
        change: StepChange,
        translations: &mut StepTranslationRows,
        translated_from: &TranslatedFrom,
    ) -> Result<(), StoreError> {
        let StepChange {
            before,
            after,
            place,
        } = change;
        let (Some(before), Some(place)) = (before, place) else {
            return Err(internal("an updated step has no stored step or place"));
        };
        translations.add_step(Some(&before), &after, translated_from);
        let mut values = Values::new();
        let guid = values.bind(after.guid.0);
        let before = step::ActiveModel {
            // An index may have cleared it since.
            dirty_record: NotSet,
            // It may have been elsewhere.
            position: NotSet,
            fraction: NotSet,
            ..step_row(*before, place.clone())?
        };
        let set = assignments(before, step_row(*after, place)?, &mut values);
        let sql = format!("UPDATE steps SET {set} WHERE account_id = $1 AND guid = {guid}");
        self.last_with_rows = Some(self.statements.len());
        self.push(sql, values);
        Ok(())
    }

    /// Puts and drops translations.
    pub fn put_translations<M: ActiveModelTrait>(
        &mut self,
        key: &[&str; 3],
        rows: TranslationRows<M>,
    ) {
        let table = M::Entity::default().table_name();
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
            self.push_by_ids(resources, |values, resources| {
                let language = values.bind(language.as_str());
                format!(
                    "DELETE FROM {table} WHERE account_id = $1 AND language = {language} \
                     AND {resource} IN ({resources})"
                )
            });
        }
        for rows in translation_upserts(texts, locks, key) {
            self.upsert(rows);
        }
    }

    /// Changes the step list of a task.
    pub fn change_step_list(&mut self, order: StepListChange, context: &WriteContext) {
        let mut values = Values::new();
        let (sql, _) = change_step_list(order, &mut values, context);
        self.statements.push(LockedStatement {
            if_unchanged: IfUnchanged::RefuseAsTooLarge,
            ..LockedStatement::new(sql, values)
        });
    }

    /// Deletes tasks with their steps.
    pub fn delete_tasks(&mut self, tasks: Vec<(TaskId, Vec<StepId>)>, context: &WriteContext) {
        for (task, steps) in tasks {
            if !steps.is_empty() {
                self.delete_noted(Deleted::STEPS_OF_TASK, [task.0], context);
            }
            self.delete_noted(Deleted::TASKS, [task.0], context);
        }
    }

    /// Deletes rows by an id, after noting those that the index holds. Its acknowledgements lock the
    /// task, too, so that none comes in between.
    pub fn delete_noted(
        &mut self,
        deleted: Deleted,
        ids: impl IntoIterator<Item = Uuid>,
        context: &WriteContext,
    ) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        for ids in ids.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let (note, delete) = deleted.statements(ids, &mut values, context);
            // The note is made first: SQLite runs statements in their order, and Citus begins with
            // those that are attached. On PostgreSQL both see the rows as they were before.
            let (sql, attached) = match self.backend {
                DbBackend::Sqlite => (note, delete),
                _ => (delete, note),
            };
            self.last_with_rows = Some(self.statements.len());
            self.statements.push(LockedStatement {
                attached: vec![attached],
                ..LockedStatement::new(sql, values)
            });
        }
    }

    /// Deletes rows by an id.
    pub fn delete(&mut self, table: &str, column: &str, ids: impl IntoIterator<Item = Uuid>) {
        let before = self.statements.len();
        self.push_by_ids(ids, |_, ids| {
            format!("DELETE FROM {table} WHERE account_id = $1 AND {column} IN ({ids})")
        });
        if self.statements.len() > before {
            self.last_with_rows = Some(self.statements.len() - 1);
        }
    }

    /// Deletes outcomes that are no longer kept for a retry.
    pub fn delete_expired_outcomes(&mut self, context: &WriteContext) {
        let mut values = Values::new();
        let delete = delete_expired(&mut values, context);
        self.push(delete, values);
    }

    /// Moves stored steps. It is an upsert, which finds each by its key: an UPDATE with a join may
    /// compare all pairs of rows, depending on PostgreSQL's statistics.
    pub fn move_steps(&mut self, moved: Vec<(StepId, Place)>) {
        for moved in moved.chunks(MAX_IDS_PER_STATEMENT) {
            let mut values = Values::new();
            let mut given = GivenRows::new(self.backend);
            let places = moved.iter().map(|(_, place)| place);
            let guid = given.add(moved.iter().map(|(step, _)| step.0.into()).collect());
            let position = given.add(places.clone().map(|place| place.position.into()).collect());
            let fraction = given.add(places.map(|place| place.fraction.clone().into()).collect());
            let given = given.table(&mut values);
            // Every step exists, so that no row is inserted. A missing one would fail: the step's
            // id stands for its task, and no task has this id.
            let sql = format!(
                "INSERT INTO steps (account_id, guid, task, position, fraction, kind, \
                 product_id, title, cost, published, is_link, size, body_size, rest_digest, \
                 language_count, version, dirty_record, created_ts, modified_ts) \
                 SELECT $1, {guid}, {guid}, {position}, {fraction}, 0, 0, '', 0, 0, false, 0, 0, '', \
                 0, 0, false, 0, 0 FROM {given} WHERE true ON CONFLICT (account_id, guid) \
                 DO UPDATE SET position = excluded.position, fraction = excluded.fraction"
            );
            self.push(sql, values);
        }
    }

    /// Clears the external ids of steps that get others, or none, by a later statement.
    pub fn clear_external_ids(&mut self, steps: &[StepId]) {
        self.push_by_ids(steps.iter().map(|step| step.0), |_, ids| {
            format!("UPDATE steps SET external_id = NULL WHERE account_id = $1 AND guid IN ({ids})")
        });
    }

    /// Makes wiring steps, which are locked, ordinary subtask steps.
    pub fn unlink_steps(&mut self, steps: &[StepId], context: &WriteContext) {
        self.push_by_ids(steps.iter().map(|step| step.0), |values, ids| {
            let row_version = next_row_version("steps", values, context);
            format!(
                "UPDATE steps SET {row_version}, is_link = false \
                 WHERE account_id = $1 AND guid IN ({ids})"
            )
        });
    }

    /// Adds the sizes of automatic translations to their tasks and steps, which get a new
    /// version.
    pub fn add_translation_sizes(
        &mut self,
        tasks: &[TranslatedTask],
        steps: &[TranslatedStep],
        context: &WriteContext,
    ) {
        let rows = tasks.iter().map(|translated| {
            let TranslatedTask {
                task,
                growth,
                added_languages,
                name: _,
                by_language: _,
                version: _,
            } = translated;
            vec![task.0.into(), (*growth).into(), (*added_languages).into()]
        });
        let columns = ["size", "language_count"];
        self.add_to_each("tasks", &columns, rows, context);
        let rows = steps.iter().map(|translated| {
            let TranslatedStep {
                step,
                task: _,
                growth,
                added_languages,
                title: _,
                content_digest: _,
                by_language: _,
                version: _,
            } = translated;
            let (listed, bodies) = (growth.listed, growth.bodies);
            let (step, languages) = (step.0.into(), (*added_languages).into());
            vec![step, listed.into(), bodies.into(), languages]
        });
        let columns = ["size", "body_size", "language_count"];
        self.add_to_each("steps", &columns, rows, context);
    }

    /// Adds numbers to columns of rows, which get a new version. Each of `rows` has an id
    /// and a number for each column. Ids are listed twice, so that PostgreSQL uses the
    /// primary key even without statistics.
    fn add_to_each(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: impl Iterator<Item = Vec<Value>>,
        context: &WriteContext,
    ) {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return;
        }
        let mut values = Values::new();
        let row_version = next_row_version(table, &mut values, context);
        let mut ids = Vec::new();
        let given = list(rows.map(|row| {
            let row: Vec<Placeholder> = row.into_iter().map(|value| values.bind(value)).collect();
            ids.extend(row.first().copied());
            format!("({})", list(row.into_iter()))
        }));
        let sums = columns
            .iter()
            .map(|column| format!("{column} = {table}.{column} + given.{column}"));
        let sql = format!(
            "WITH given (guid, {}) AS (VALUES {given}) UPDATE {table} SET {row_version}, {} \
             FROM given WHERE {table}.account_id = $1 AND {table}.guid IN ({}) \
             AND {table}.guid = given.guid",
            columns.join(", "),
            list(sums),
            list(ids.into_iter())
        );
        self.push(sql, values);
    }

    /// Gives subtask steps, which are locked, the names of the tasks that they refer to.
    pub fn update_subtask_titles(&mut self, tasks: &[TaskId], context: &WriteContext) {
        self.push_by_ids(tasks.iter().map(|task| task.0), |values, ids| {
            let row_version = next_row_version("steps", values, context);
            format!(
                "UPDATE steps SET {row_version}, title = tasks.name, \
                 size = steps.size + octet_length(tasks.name) - octet_length(steps.title) \
                 FROM tasks WHERE steps.account_id = $1 AND steps.subtask_id IN ({ids}) \
                 AND tasks.account_id = $1 AND tasks.guid = steps.subtask_id \
                 AND steps.title <> tasks.name"
            )
        });
    }
}

/// One statement of a write under locks.
pub struct LockedStatement {
    /// The statement.
    pub sql: String,
    /// Statements that are sent with it and take no round trip of their own. It must not
    /// depend on them, nor they on each other.
    pub attached: Vec<String>,
    /// The values of the statement and those attached to it. `$1` is the account, except in an upsert,
    /// whose rows contain it.
    pub values: Values,
    /// What happens when no row is changed.
    pub if_unchanged: IfUnchanged,
}

impl LockedStatement {
    /// A statement that may change no row, with nothing attached.
    fn new(sql: String, values: Values) -> Self {
        Self {
            sql,
            attached: Vec::new(),
            values,
            if_unchanged: IfUnchanged::Accept,
        }
    }

    /// The statement as a database takes it.
    pub fn statement(self, backend: DbBackend, account: &AccountId) -> Statement {
        let Self {
            sql,
            attached,
            values,
            if_unchanged: _,
        } = self;
        let sql = match backend {
            _ if attached.is_empty() => sql,
            DbBackend::Sqlite => format!("{sql}; {}", attached.join("; ")),
            // Foreign keys are checked after all of them.
            _ => {
                let attached = attached.into_iter().enumerate();
                let attached =
                    attached.map(|(index, statement)| format!("attached{index} AS ({statement})"));
                format!("WITH {} {sql}", list(attached))
            }
        };
        values.statement(sql, backend, account)
    }
}

/// What happens when a statement changes no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnchanged {
    /// The write goes on.
    Accept,
    /// The write fails, as the task would be too large.
    RefuseAsTooLarge,
}
