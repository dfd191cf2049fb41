//! Reads a guide: a task or document with its steps and those of its subtasks, without
//! bodies, as one state of the database.

mod budget;

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use self::budget::ReadBudget;
use super::{
    outside::{AccountNames, GuideExtent, OutsideUses, find_outside_uses, retain_used_outside},
    tasks,
};
use crate::{
    domain::{
        Error,
        analysis::{
            Guide, GuideDraft, KnownVariables, MAX_GUIDE_STEPS, MAX_SUBTASK_LEVELS, SourceStep,
            SourceTask, SourceTasks, of_document,
        },
        ids::TaskId,
        import::{AbsentSteps, Document, ImportContext, plan},
        size::stored_count,
        step::ReferencedTask,
        validation::OutsideReaders,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns::{self, json_functions},
        placeholders,
        row_reader::RowReader,
        statement,
        step_row::{StepColumns, read_step},
        values::Values,
    },
};

/// Most tasks below the root that are read, each counted once at every depth that it is
/// on. A guide with more of them exceeds the limit of steps.
const MAX_TASKS_BELOW: usize = 2 * MAX_GUIDE_STEPS;

/// What a guide is read from.
#[derive(Debug)]
pub enum GuideSource {
    /// A stored task.
    Stored(TaskId),
    /// A document that is not stored.
    Document(Box<Document>),
}

/// A task of a guide without its steps, which are read later.
struct TaskHeadRow {
    source: SourceTask,
    /// The fewest subtask steps that lead to it.
    depth: usize,
    /// The number of its steps.
    steps: usize,
}

/// SQL for these columns of given tasks and of those that subtask steps lead to. SQLite reads
/// the tables of a CROSS JOIN from left to right. Without it and COALESCE it would read all
/// subtask steps of the account for each task.
pub(super) fn tasks_below_sql(columns: &str, given: usize) -> String {
    let given = placeholders(2, given);
    format!(
        "WITH RECURSIVE below AS ( \
           SELECT guid, 1 AS level FROM tasks WHERE account_id = $1 AND guid IN ({given}) \
           UNION \
           SELECT s.subtask_id, b.level + 1 FROM below b CROSS JOIN steps s \
           WHERE s.account_id = $1 AND s.task = b.guid \
             AND COALESCE(s.subtask_id, NULL) IS NOT NULL \
             AND b.level <= {MAX_SUBTASK_LEVELS} \
         ) \
         SELECT {columns} FROM ( \
           SELECT guid, MIN(level) AS level FROM ( \
             SELECT guid, level FROM below LIMIT {MAX_TASKS_BELOW} \
           ) found GROUP BY guid \
         ) f CROSS JOIN tasks t WHERE t.account_id = $1 AND t.guid = f.guid \
         ORDER BY f.level, t.guid"
    )
}

impl Account {
    /// Reads a guide in at most five statements.
    pub(super) async fn read_guide(
        &self,
        db: &impl ConnectionTrait,
        source: &GuideSource,
        known: &KnownVariables,
    ) -> Result<Guide, StoreError> {
        let draft = self.read_draft(db, source, known).await?;
        let names = AccountNames {
            read: names_read(&draft),
            set: BTreeSet::new(),
        };
        let inside = extent(&draft, BTreeSet::new());
        let outside = find_outside_uses(&names, db, &self.id, &inside).await?;
        Ok(draft.finish(outside.setters))
    }

    /// Reads a guide, and the conditions elsewhere that read its variables, in at most six
    /// statements. The stored tasks that it `replaced` do not count as elsewhere.
    pub(super) async fn read_guide_and_readers(
        &self,
        db: &impl ConnectionTrait,
        source: &GuideSource,
        replaced: BTreeSet<TaskId>,
        known: &KnownVariables,
    ) -> Result<(Guide, BTreeMap<String, OutsideReaders>), StoreError> {
        let draft = self.read_draft(db, source, known).await?;
        let set = draft.account_variables();
        let set = set.filter(|variable| variable.task.is_none() && !variable.setters.is_empty());
        let mut names = AccountNames {
            read: names_read(&draft),
            set: set.map(|variable| variable.name.as_str()).collect(),
        };
        let inside = extent(&draft, replaced);
        retain_used_outside(&mut names, db, &self.id, &inside).await?;
        let OutsideUses { setters, readers } =
            find_outside_uses(&names, db, &self.id, &inside).await?;
        Ok((draft.finish(setters), readers))
    }

    async fn read_draft(
        &self,
        db: &impl ConnectionTrait,
        source: &GuideSource,
        known: &KnownVariables,
    ) -> Result<GuideDraft, StoreError> {
        let (root, tasks) = match source {
            GuideSource::Stored(root) => (*root, self.read_stored_guide(db, *root).await?),
            GuideSource::Document(document) => self.read_document_guide(db, document).await?,
        };
        let draft = GuideDraft::new(root, tasks, known);
        draft.ok_or_else(|| Error::task_not_found(root, "guid").into())
    }

    async fn read_stored_guide(
        &self,
        db: &impl ConnectionTrait,
        root: TaskId,
    ) -> Result<SourceTasks, StoreError> {
        let head = self.task_head(db, root).await?;
        let head = head.ok_or_else(|| Error::task_not_found(root, "guid"))?;
        let mut budget = ReadBudget::new(self.max_message_bytes());
        let mut tasks = self.with_steps(db, vec![head], &mut budget).await?;
        let steps = tasks.values().flat_map(|(_, steps)| steps.iter().flatten());
        let heads = self.tasks_below(db, &subtasks(steps)).await?;
        let below = heads
            .into_iter()
            .filter(|head| head.source.task.guid != root);
        let below = self.with_steps(db, below.collect(), &mut budget).await?;
        tasks.extend(below);
        Ok(tasks)
    }

    /// Plans the import of a document, and reads the stored tasks that it refers to. An
    /// invalid document fails as its import would.
    async fn read_document_guide(
        &self,
        db: &impl ConnectionTrait,
        document: &Document,
    ) -> Result<(TaskId, SourceTasks), StoreError> {
        let heads = self.tasks_below(db, &document.subtasks()).await?;
        let referenced = heads.iter().map(|head| {
            let task = &head.source.task;
            (task.guid, ReferencedTask::to(task))
        });
        let context = ImportContext {
            write: &self.write_context(),
            existing: None,
            referenced: &referenced.collect(),
            absent: AbsentSteps::Refuse,
        };
        let (root, mut tasks) = of_document(plan(document, context)?);
        let steps = tasks.values().flat_map(|(_, steps)| steps.iter().flatten());
        let has_stored_subtasks = subtasks(steps)
            .into_iter()
            .any(|task| !tasks.contains_key(&task));
        if has_stored_subtasks {
            let mut budget = ReadBudget::new(self.max_message_bytes());
            tasks.extend(self.with_steps(db, heads, &mut budget).await?);
        }
        Ok((root, tasks))
    }

    /// Reads the steps of the tasks, except those that are too deep or beyond the budget.
    async fn with_steps(
        &self,
        db: &impl ConnectionTrait,
        heads: Vec<TaskHeadRow>,
        budget: &mut ReadBudget,
    ) -> Result<SourceTasks, StoreError> {
        let mut read = Vec::new();
        for head in &heads {
            if head.depth <= MAX_SUBTASK_LEVELS && budget.take_steps(head.steps) {
                read.push(head);
            }
        }
        let mut steps = self.steps_of(db, &read, budget).await?;
        let tasks = heads.into_iter().map(|head| {
            let guid = head.source.task.guid;
            (guid, (head.source, steps.remove(&guid)))
        });
        Ok(tasks.collect())
    }

    async fn task_head(
        &self,
        db: &impl ConnectionTrait,
        guid: TaskId,
    ) -> Result<Option<TaskHeadRow>, StoreError> {
        let columns = head_columns(backend(db), "0");
        let sql = format!("SELECT {columns} FROM tasks t WHERE t.account_id = $1 AND t.guid = $2");
        let statement = statement(backend(db), &self.id, sql, [Value::from(guid.0)]);
        let row = db.query_one_raw(statement).await?;
        row.map(|row| self.read_head(&row)).transpose()
    }

    /// Reads the given tasks, which have depth 1, and those that subtask steps lead to, in
    /// the order of depths. Tasks one level too deep are read, too, for their visibility.
    async fn tasks_below(
        &self,
        db: &impl ConnectionTrait,
        tasks: &BTreeSet<TaskId>,
    ) -> Result<Vec<TaskHeadRow>, StoreError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = tasks_below_sql(&head_columns(backend(db), "f.level"), tasks.len());
        let values = tasks.iter().map(|task| Value::from(task.0));
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        rows.iter().map(|row| self.read_head(row)).collect()
    }

    /// Reads the steps of tasks in their order. Fails if they have more bytes, without bodies,
    /// than the budget.
    async fn steps_of(
        &self,
        db: &impl ConnectionTrait,
        tasks: &[&TaskHeadRow],
        budget: &mut ReadBudget,
    ) -> Result<BTreeMap<TaskId, Vec<SourceStep>>, StoreError> {
        let lists = tasks
            .iter()
            .map(|head| (head.source.task.guid, Vec::with_capacity(head.steps)));
        let mut steps: BTreeMap<TaskId, Vec<SourceStep>> = lists.collect();
        let count = tasks.iter().map(|head| head.steps).sum();
        if count == 0 {
            return Ok(steps);
        }
        let columns = step_columns(backend(db));
        let mut values = Values::new();
        let with_steps = tasks.iter().filter(|head| head.steps > 0);
        let task_ids = values.bind_all(with_steps.map(|head| head.source.task.guid.0));
        let max_bytes_per_step = values.bind(stored_count(budget.bytes() / count));
        let max_bytes = values.bind(stored_count(budget.bytes()));
        // If no step exceeds an equal share of the budget, all fit. Otherwise the sum decides;
        // if it is too large, the steps above the share are left out.
        let sql = format!(
            "SELECT s.size, {columns} FROM steps s \
             WHERE s.account_id = $1 AND s.task IN ({task_ids}) \
               AND (s.size <= {max_bytes_per_step} OR {max_bytes} >= ( \
                 SELECT CAST(SUM(a.size) AS bigint) FROM steps a \
                 WHERE a.account_id = $1 AND a.task IN ({task_ids}))) \
             ORDER BY s.task, s.position, s.fraction"
        );
        let statement = values.statement(sql, backend(db), &self.id);
        let rows = db.query_all_raw(statement).await?;
        if rows.len() < count {
            // Steps were left out.
            return Err(budget.exceeded().into());
        }
        for row in rows {
            let mut row = RowReader::new(&row);
            budget.take_bytes(row.take()?)?;
            let has_body = row.take()?;
            let body_bytes: i64 = row.take()?;
            let overlays = json_columns::read_overlay_states(row.take()?)?;
            let (step, _) = read_step(&mut row, &self.id)?;
            steps.entry(step.task).or_default().push(SourceStep {
                step,
                has_body,
                body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
                overlays,
                origin: None,
            });
        }
        Ok(steps)
    }

    fn read_head(&self, row: &QueryResult) -> Result<TaskHeadRow, StoreError> {
        let mut row = RowReader::new(row);
        let depth: i32 = row.take()?;
        let steps: i64 = row.take()?;
        let overlays = json_columns::read_overlay_states(row.take()?)?;
        let task = tasks::read_task(&mut row, &self.id)?;
        Ok(TaskHeadRow {
            source: SourceTask {
                task,
                overlays,
                origin: None,
            },
            depth: usize::try_from(depth).unwrap_or_default(),
            steps: usize::try_from(steps).unwrap_or(usize::MAX),
        })
    }
}

/// The account-wide names that conditions of a guide read.
fn names_read(draft: &GuideDraft) -> BTreeSet<&str> {
    let read = draft
        .account_variables()
        .filter(|variable| variable.is_read);
    read.map(|variable| variable.name.as_str()).collect()
}

/// The tasks and steps of a guide, and the stored tasks that it replaces.
fn extent(draft: &GuideDraft, replaced: BTreeSet<TaskId>) -> GuideExtent {
    let tasks = draft.tasks().map(|task| task.task.guid.0);
    let steps = draft.steps().map(|step| step.step.guid.0);
    GuideExtent {
        ids: tasks.chain(steps).collect(),
        replaced,
    }
}

/// The tasks that steps refer to.
fn subtasks<'a>(steps: impl Iterator<Item = &'a SourceStep>) -> BTreeSet<TaskId> {
    let subtasks = steps.filter_map(|source| source.step.kind.subtask());
    subtasks.map(|subtask| subtask.task).collect()
}

/// The columns of a task `t` for [`Account::read_head`].
fn head_columns(backend: DbBackend, level: &str) -> String {
    let (array, aggregate, cast) = json_functions(backend);
    let columns = tasks::columns_without_steps(backend);
    format!(
        "CAST({level} AS integer) AS level, t.step_count, \
         CASE WHEN t.language_count > 0 THEN \
           (SELECT {aggregate}({array}(l.language, false, l.made_name <> t.name, false)){cast} \
            FROM task_translations l \
            WHERE l.account_id = $1 AND l.task = t.guid) END AS overlays, \
         {columns}"
    )
}

/// The columns of a step `s` for [`Account::steps_of`].
fn step_columns(backend: DbBackend) -> String {
    let (array, aggregate, cast) = json_functions(backend);
    let without_bodies = StepColumns {
        bodies: false,
        ..StepColumns::ALL
    };
    let columns = without_bodies.columns(backend);
    format!(
        "(s.body IS NOT NULL) AS has_body, s.body_size, \
         CASE WHEN s.language_count > 0 THEN \
           (SELECT {aggregate}({array}(l.language, l.body IS NOT NULL, l.made_title <> s.title, \
                                  l.made_rest <> s.rest_digest)){cast} \
            FROM step_translations l \
            WHERE l.account_id = $1 AND l.step = s.guid) END AS overlays, \
         {columns}"
    )
}
