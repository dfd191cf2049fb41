//! Reads a guide: a task or document with its steps and those of its subtasks, without
//! bodies, as one state of the database.

mod budget;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sea_orm::{ConnectionTrait, DbBackend, QueryResult};
use uuid::Uuid;

pub(super) use self::budget::MEMORY_PER_BYTE;
use self::budget::ReadBudget;
use super::{
    off_runtime::{analyse_by_weight, check_call},
    outside::{AccountNames, GuideExtent, OutsideUses, find_outside_uses, retain_used_outside},
    tasks,
};
use crate::{
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{
            Guide, GuideDraft, KnownVariables, MAX_SUBTASK_LEVELS, SourceStep, SourceTask,
            SourceTasks, StopSignal, of_document, weight_of,
        },
        ids::{AccountId, TaskId},
        import::{Document, ImportContext, plan},
        size::stored_count,
        step::ReferencedTask,
        validation::OutsideReaders,
    },
    store::{
        Account, backend,
        error::StoreError,
        json_columns::{self, json_functions},
        row_reader::RowReader,
        step_row::{StepColumns, read_step},
        values::{MAX_IDS_PER_STATEMENT, Values},
    },
};

/// What a guide is read from.
#[derive(Debug)]
pub enum GuideSource {
    /// A stored task.
    Stored(TaskId),
    /// A document that is not stored.
    Document(Box<Document>),
}

/// A guide that was read, before the effort of its analysis.
pub(super) struct ReadGuide {
    draft: GuideDraft,
    outside: OutsideUses,
    /// What it takes, until it is dropped.
    memory: WorkMemory,
}

impl ReadGuide {
    /// How much work its analysis is.
    pub fn weight(&self) -> usize {
        self.draft.weight() + self.outside.weight()
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.draft.steps().count()
    }

    /// The guide, the conditions elsewhere that read its variables, and the memory that both
    /// take; `None` if nobody waits for it any more.
    pub fn finish(
        self,
        stop: StopSignal<'_>,
    ) -> Option<(Guide, BTreeMap<String, OutsideReaders>, WorkMemory)> {
        let OutsideUses { setters, readers } = self.outside;
        Some((self.draft.finish(setters, stop)?, readers, self.memory))
    }
}

/// A task of a guide without its steps, which are read later.
struct TaskHeadRow {
    source: SourceTask,
    /// The fewest subtask steps that lead to it.
    depth: usize,
    /// The number of its steps.
    steps: usize,
}

impl Account {
    /// Reads a guide in two statements for each level of subtasks, and in at least two for what
    /// sets its variables elsewhere. Where rows are large, two more read their sizes, and the rows again.
    ///
    /// With `replaced`, it also reads the conditions elsewhere that read the guide's variables. One more
    /// statement finds which names are used there. The stored tasks that it replaced do not count as
    /// elsewhere.
    pub(super) async fn read_guide(
        &self,
        db: &impl ConnectionTrait,
        source: &Arc<GuideSource>,
        replaced: Option<BTreeSet<TaskId>>,
        known: &KnownVariables,
    ) -> Result<ReadGuide, StoreError> {
        let (draft, mut memory) = self.read_draft(db, source, known).await?;
        let mut names = AccountNames {
            read: names_read(&draft),
            set: BTreeSet::new(),
        };
        let finds_readers = replaced.is_some();
        let inside = extent(&draft, replaced.unwrap_or_default());
        if finds_readers {
            let set = draft.account_variables();
            let set =
                set.filter(|variable| variable.task.is_none() && !variable.setters.is_empty());
            names.set = set.map(|variable| variable.name.as_str()).collect();
            retain_used_outside(&mut names, db, &self.id, &inside).await?;
        }
        let outside = find_outside_uses(&names, db, &self.id, &inside, &mut memory).await?;
        Ok(ReadGuide {
            draft,
            outside,
            memory,
        })
    }

    async fn read_draft(
        &self,
        db: &impl ConnectionTrait,
        source: &Arc<GuideSource>,
        known: &KnownVariables,
    ) -> Result<(GuideDraft, WorkMemory), StoreError> {
        let mut budget = ReadBudget::new(self.max_message_bytes());
        let (root, tasks) = match source.as_ref() {
            GuideSource::Stored(root) => {
                (*root, self.read_stored_guide(db, *root, &mut budget).await?)
            }
            GuideSource::Document(document) => {
                let source = Arc::clone(source);
                self.read_document_guide(db, source, document, &mut budget)
                    .await?
            }
        };
        let known = known.clone();
        let weight = weight_of(&tasks);
        let draft = analyse_by_weight(weight, move |_| Some(GuideDraft::new(root, tasks, &known)));
        let draft = draft
            .await?
            .ok_or_else(|| Error::task_not_found(root, "guid"))?;
        Ok((draft, budget.into_memory()))
    }

    async fn read_stored_guide(
        &self,
        db: &impl ConnectionTrait,
        root: TaskId,
        budget: &mut ReadBudget,
    ) -> Result<SourceTasks, StoreError> {
        let roots = BTreeSet::from([root]);
        let heads = self.task_heads(db, &roots, 0, budget).await?;
        if heads.is_empty() {
            return Err(Error::task_not_found(root, "guid").into());
        }
        let mut tasks = self.with_steps(db, heads, budget).await?;
        let steps = tasks.values().flat_map(|(_, steps)| steps.iter().flatten());
        let below = subtasks_of(steps);
        self.read_below(db, below, &mut tasks, budget).await?;
        Ok(tasks)
    }

    /// Adds the tasks that subtask steps of the guide refer to, and those below them, level by
    /// level, so that no task is read twice. Tasks one level too deep are read, too, for their
    /// visibility.
    async fn read_below(
        &self,
        db: &impl ConnectionTrait,
        mut below: BTreeSet<TaskId>,
        tasks: &mut SourceTasks,
        budget: &mut ReadBudget,
    ) -> Result<(), StoreError> {
        for depth in 1..=MAX_SUBTASK_LEVELS + 1 {
            below.retain(|task| !tasks.contains_key(task));
            if below.is_empty() {
                break;
            }
            check_call()?;
            let heads = self.task_heads(db, &below, depth, budget).await?;
            let read = self.with_steps(db, heads, budget).await?;
            let steps = read.values().flat_map(|(_, steps)| steps.iter().flatten());
            below = subtasks_of(steps);
            tasks.extend(read);
        }
        Ok(())
    }

    /// Plans the import of a document, and reads the stored tasks that it refers to. An
    /// invalid document fails as its import would.
    async fn read_document_guide(
        &self,
        db: &impl ConnectionTrait,
        source: Arc<GuideSource>,
        document: &Document,
        budget: &mut ReadBudget,
    ) -> Result<(TaskId, SourceTasks), StoreError> {
        let subtasks = document.subtasks();
        let heads = self.task_heads(db, &subtasks, 1, budget).await?;
        let referenced = heads.iter().map(|head| {
            let task = &head.source.task;
            (task.guid, ReferencedTask::to(task))
        });
        let referenced: BTreeMap<TaskId, ReferencedTask> = referenced.collect();
        let write = self.write_context();
        let planned = analyse_by_weight(document.step_count(), move |_| {
            Some(match source.as_ref() {
                GuideSource::Stored(_) => {
                    Err(Error::Internal("a guide without a document".to_owned()))
                }
                GuideSource::Document(document) => {
                    let context = ImportContext::of_new_guide(&write, &referenced);
                    plan(document, context).map(of_document)
                }
            })
        });
        let (root, mut tasks) = planned.await??;
        let read = self.with_steps(db, heads, budget).await?;
        let steps = read.values().flat_map(|(_, steps)| steps.iter().flatten());
        let below = subtasks_of(steps);
        tasks.extend(read);
        self.read_below(db, below, &mut tasks, budget).await?;
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

    /// Reads the tasks that exist, which have this depth, in the order of their ids.
    async fn task_heads(
        &self,
        db: &impl ConnectionTrait,
        tasks: &BTreeSet<TaskId>,
        depth: usize,
        budget: &mut ReadBudget,
    ) -> Result<Vec<TaskHeadRow>, StoreError> {
        let tasks: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        let mut heads = Vec::with_capacity(tasks.len());
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let max_bytes = budget.reserve_unknown(tasks.len())?;
            let mut rows = self.head_rows(db, tasks, depth, max_bytes).await?;
            if rows.len() < tasks.len() {
                let bytes = self.bytes_of(db, "tasks", "guid", tasks).await?;
                if bytes > max_bytes {
                    budget.reserve(bytes)?;
                    rows = self.head_rows(db, tasks, depth, bytes).await?;
                }
            }
            for row in rows {
                heads.push(self.read_head(&row, budget)?);
            }
            budget.release_unused();
        }
        Ok(heads)
    }

    /// The rows of tasks in the order of their ids, as many as have `max_bytes` together.
    async fn head_rows(
        &self,
        db: &impl ConnectionTrait,
        tasks: &[Uuid],
        depth: usize,
        max_bytes: usize,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let columns = head_columns(backend(db), depth);
        let mut values = Values::new();
        let tasks = values.bind_all(tasks.iter().copied());
        let max_bytes = values.bind(stored_count(max_bytes));
        let sql = format!(
            "SELECT t.size, {columns} FROM ( \
               SELECT guid, SUM(size) OVER (ORDER BY guid) AS bytes FROM tasks \
               WHERE account_id = $1 AND guid IN ({tasks}) \
             ) f CROSS JOIN tasks t \
             WHERE t.account_id = $1 AND t.guid = f.guid AND f.bytes <= {max_bytes} ORDER BY t.guid"
        );
        let statement = values.statement(sql, backend(db), &self.id);
        Ok(db.query_all_raw(statement).await?)
    }

    /// The bytes of the rows that have one of these ids in a column.
    async fn bytes_of(
        &self,
        db: &impl ConnectionTrait,
        table: &str,
        column: &str,
        ids: &[Uuid],
    ) -> Result<usize, StoreError> {
        let mut values = Values::new();
        let ids = values.bind_all(ids.iter().copied());
        let sql = format!(
            "SELECT CAST(SUM(size) AS bigint) FROM {table} \
             WHERE account_id = $1 AND {column} IN ({ids})"
        );
        let statement = values.statement(sql, backend(db), &self.id);
        let row = db.query_one_raw(statement).await?;
        let bytes: Option<i64> = row.map_or(Ok(None), |row| RowReader::new(&row).take())?;
        Ok(usize::try_from(bytes.unwrap_or_default()).unwrap_or(usize::MAX))
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
        let with_steps: Vec<&&TaskHeadRow> = tasks.iter().filter(|head| head.steps > 0).collect();
        for heads in with_steps.chunks(MAX_IDS_PER_STATEMENT) {
            check_call()?;
            let count = heads.iter().map(|head| head.steps).sum();
            let tasks: Vec<Uuid> = heads.iter().map(|head| head.source.task.guid.0).collect();
            for step in self.steps_of_tasks(db, &tasks, count, budget).await? {
                steps.entry(step.step.task).or_default().push(step);
            }
        }
        Ok(steps)
    }

    /// Reads the `count` steps of tasks in their order.
    async fn steps_of_tasks(
        &self,
        db: &impl ConnectionTrait,
        tasks: &[Uuid],
        count: usize,
        budget: &mut ReadBudget,
    ) -> Result<Vec<SourceStep>, StoreError> {
        let mut max_bytes = budget.reserve_unknown(count)?;
        let mut rows = self.step_rows(db, tasks, count, max_bytes).await?;
        if rows.len() < count {
            max_bytes = self.bytes_of(db, "steps", "task", tasks).await?;
            budget.reserve(max_bytes)?;
            rows = self.step_rows(db, tasks, count, max_bytes).await?;
        }
        let account = self.id.clone();
        let read = move |stop: StopSignal<'_>| {
            // A row is freed once it is read.
            let rows = rows.into_iter();
            let read = rows.map(|row| match stop.is_given() {
                true => None,
                false => Some(read_step_row(&row, &account)),
            });
            read.collect::<Option<Result<Vec<(SourceStep, usize)>, StoreError>>>()
        };
        let read = analyse_by_weight(count, read).await??;
        for (_, bytes) in &read {
            budget.take_row(*bytes)?;
        }
        budget.release_unused();
        Ok(read.into_iter().map(|(step, _)| step).collect())
    }

    /// The rows of the `count` steps of tasks in their order, all if they have at most
    /// `max_bytes` together. Otherwise those above `max_bytes / count` are left out.
    async fn step_rows(
        &self,
        db: &impl ConnectionTrait,
        tasks: &[Uuid],
        count: usize,
        max_bytes: usize,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let columns = step_columns(backend(db));
        let mut values = Values::new();
        let task_ids = values.bind_all(tasks.iter().copied());
        let max_bytes_per_step = values.bind(stored_count(max_bytes / count.max(1)));
        let max_bytes = values.bind(stored_count(max_bytes));
        let sql = format!(
            "SELECT s.size, {columns} FROM steps s \
             WHERE s.account_id = $1 AND s.task IN ({task_ids}) \
               AND (s.size <= {max_bytes_per_step} OR {max_bytes} >= ( \
                 SELECT CAST(SUM(a.size) AS bigint) FROM steps a \
                 WHERE a.account_id = $1 AND a.task IN ({task_ids}))) \
             ORDER BY s.task, s.position, s.fraction"
        );
        let statement = values.statement(sql, backend(db), &self.id);
        Ok(db.query_all_raw(statement).await?)
    }

    fn read_head(
        &self,
        row: &QueryResult,
        budget: &mut ReadBudget,
    ) -> Result<TaskHeadRow, StoreError> {
        let mut row = RowReader::new(row);
        let bytes: i64 = row.take()?;
        budget.take_row(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let depth: i32 = row.take()?;
        let steps: i64 = row.take()?;
        let translations = json_columns::read_translation_states(row.take()?)?;
        let task = tasks::read_task(&mut row, &self.id)?;
        Ok(TaskHeadRow {
            source: SourceTask {
                task,
                translations,
                origin: None,
            },
            depth: usize::try_from(depth).unwrap_or_default(),
            steps: usize::try_from(steps).unwrap_or(usize::MAX),
        })
    }
}

fn read_step_row(
    row: &QueryResult,
    account: &AccountId,
) -> Result<(SourceStep, usize), StoreError> {
    let mut row = RowReader::new(row);
    let bytes: i64 = row.take()?;
    let has_body = row.take()?;
    let body_bytes: i64 = row.take()?;
    let translations = json_columns::read_translation_states(row.take()?)?;
    let (step, _) = read_step(&mut row, account)?;
    let step = SourceStep {
        step,
        has_body,
        body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
        translations,
        origin: None,
    };
    Ok((step, usize::try_from(bytes).unwrap_or(usize::MAX)))
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
fn subtasks_of<'a>(steps: impl Iterator<Item = &'a SourceStep>) -> BTreeSet<TaskId> {
    let subtasks = steps.filter_map(|source| source.step.kind.subtask());
    subtasks.map(|subtask| subtask.task).collect()
}

/// The columns of a task `t` for [`Account::read_head`].
fn head_columns(backend: DbBackend, level: usize) -> String {
    let (array, aggregate, cast) = json_functions(backend);
    let columns = tasks::columns_without_steps(backend);
    format!(
        "CAST({level} AS integer) AS level, t.step_count, \
         CASE WHEN t.language_count > 0 THEN \
           (SELECT {aggregate}({array}(l.language, false, l.translated_from_name <> t.name, false)){cast} \
            FROM task_translations l \
            WHERE l.account_id = $1 AND l.task = t.guid) END AS translations, \
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
           (SELECT {aggregate}({array}(l.language, l.body IS NOT NULL, l.translated_from_title <> s.title, \
                                  l.translated_from_rest <> s.rest_digest)){cast} \
            FROM step_translations l \
            WHERE l.account_id = $1 AND l.step = s.guid) END AS translations, \
         {columns}"
    )
}
