//! Reads the tasks of a guide level by level.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryResult,
    QuerySelect, QueryTrait, Select,
    sea_query::{Expr, ExprTrait},
};
use uuid::Uuid;

use super::budget::ReadBudget;
use crate::{
    analysis_threads::{analyse_by_weight, check_call},
    call_context::WorkMemory,
    domain::{
        analysis::{MAX_SUBTASK_LEVELS, SourceStep, SourceTask, SourceTasks, TranslationState},
        ids::TaskId,
        size::stored_count,
        translation::{Language, StepTranslations},
    },
    store::{
        account::Scope,
        entity::{step, step_translation, task, task_translation},
        error::StoreError,
        read::MAX_IDS_PER_STATEMENT,
        rows::{read_step, read_step_translation, read_task, read_task_translations},
    },
};

/// A task of a guide without its steps, which are read later.
pub struct TaskHead {
    pub source: SourceTask,
    step_count: usize,
}

/// Reads the tasks of a guide level by level, so that no task is read twice.
pub struct LevelReader<'a, C> {
    scope: Scope<'a, C>,
    budget: ReadBudget,
    /// The tasks of the guide so far.
    pub tasks: SourceTasks,
}

impl<'a, C: ConnectionTrait> LevelReader<'a, C> {
    pub fn new(scope: Scope<'a, C>, max_message_bytes: usize) -> Self {
        Self {
            scope,
            budget: ReadBudget::new(max_message_bytes),
            tasks: SourceTasks::new(),
        }
    }

    /// The tasks, and the memory that is reserved for them.
    pub fn finish(self) -> (SourceTasks, WorkMemory) {
        (self.tasks, self.budget.into_memory())
    }

    /// Adds the tasks of a level and all tasks below. The depth of a level is the minimum number of
    /// subtask steps that lead to it. Tasks that are one level too deep are added without steps, for
    /// their visibility.
    pub async fn read_levels(
        &mut self,
        mut level: BTreeSet<TaskId>,
        first_depth: usize,
    ) -> Result<(), StoreError> {
        for depth in first_depth..=MAX_SUBTASK_LEVELS + 1 {
            level.retain(|task| !self.tasks.contains_key(task));
            if level.is_empty() {
                break;
            }
            check_call()?;
            let heads = self.read_heads(&level).await?;
            level = self.add_level(heads, depth).await?;
        }
        Ok(())
    }

    /// Adds tasks with their steps, unless the steps are too deep or beyond the budget. Returns the
    /// tasks that the steps refer to.
    pub async fn add_level(
        &mut self,
        heads: Vec<TaskHead>,
        depth: usize,
    ) -> Result<BTreeSet<TaskId>, StoreError> {
        let mut readable = Vec::new();
        for head in &heads {
            if depth <= MAX_SUBTASK_LEVELS && self.budget.take_steps(head.step_count) {
                readable.push((head.source.task.guid, head.step_count));
            }
        }
        let mut steps = self.read_steps(&readable).await?;
        let subtasks = steps.values().flatten();
        let subtasks = subtasks.filter_map(|source| source.step.kind.subtask());
        let below = subtasks.map(|subtask| subtask.task).collect();
        self.tasks.extend(heads.into_iter().map(|head| {
            let guid = head.source.task.guid;
            (guid, (head.source, steps.remove(&guid)))
        }));
        Ok(below)
    }

    /// Reads the tasks that exist, in the order of their ids.
    pub async fn read_heads(
        &mut self,
        tasks: &BTreeSet<TaskId>,
    ) -> Result<Vec<TaskHead>, StoreError> {
        let tasks: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        let mut heads = Vec::with_capacity(tasks.len());
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            let found = self
                .scope
                .find::<task::Entity>()
                .filter(task::Column::Guid.is_in(tasks.iter().copied()));
            let read = self.read_rows(found, task::Column::Size, tasks.len());
            let mut rows: Vec<task::Model> = decode(read.await?).await?;
            rows.sort_unstable_by_key(|row| row.guid);
            let mut translations = self.task_translations(&rows).await?;
            for row in rows {
                self.budget.take_row(row.size)?;
                let translations = translations.remove(&row.guid).unwrap_or_default();
                heads.push(read_head(row, translations)?);
            }
            self.budget.release_unused();
        }
        Ok(heads)
    }

    /// Reads the steps of tasks, each with the number of its steps, in their order.
    async fn read_steps(
        &mut self,
        tasks: &[(TaskId, usize)],
    ) -> Result<BTreeMap<TaskId, Vec<SourceStep>>, StoreError> {
        let lists = tasks.iter();
        let lists = lists.map(|(task, count)| (*task, Vec::with_capacity(*count)));
        let mut steps: BTreeMap<TaskId, Vec<SourceStep>> = lists.collect();
        let mut tasks = tasks.to_vec();
        tasks.retain(|(_, count)| *count > 0);
        for tasks in tasks.chunks(MAX_IDS_PER_STATEMENT) {
            check_call()?;
            let count = tasks.iter().map(|(_, count)| count).sum();
            let found = self
                .scope
                .find::<step::Entity>()
                .select_except([step::Column::Body])
                .expr_as(step::Column::Body.is_not_null(), "has_body")
                .filter(step::Column::Task.is_in(tasks.iter().map(|(task, _)| task.0)));
            let read = self.read_rows(found, step::Column::Size, count);
            let mut rows: Vec<StepRow> = decode(read.await?).await?;
            rows.sort_unstable_by_key(|row| row.step.position);
            let mut translations = self.step_translations(&rows).await?;
            for row in rows {
                self.budget.take_row(row.step.size)?;
                let task = TaskId(row.step.task);
                let translations = translations.remove(&row.step.guid).unwrap_or_default();
                let list = steps.entry(task).or_default();
                list.push(read_source_step(row, translations)?);
            }
            self.budget.release_unused();
        }
        Ok(steps)
    }

    /// Reads at most `count` rows. If they do not fit into the memory that is reserved for rows of
    /// unknown size, it reads the small ones, then the sizes of all, then the others.
    async fn read_rows<E: EntityTrait>(
        &mut self,
        rows: Select<E>,
        size: E::Column,
        count: usize,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let db = self.scope.db;
        let max_bytes = self.budget.reserve_unknown(count)?;
        let small_bytes = stored_count(max_bytes / count.max(1));
        let total = rows.clone().select_only().expr(size.sum()).into_query();
        let all_fit = Expr::from(total).lte(stored_count(max_bytes));
        let first = rows.clone().filter(size.lte(small_bytes).or(all_fit));
        let mut read = db.query_all(first.as_query()).await?;
        if read.len() < count {
            let sizes = rows.clone().select_only().column(size).into_tuple();
            let sizes: Vec<i64> = sizes.all(db).await?;
            let bytes = usize::try_from(sizes.iter().sum::<i64>()).unwrap_or(usize::MAX);
            // Otherwise rows are missing, as they do not exist.
            if bytes > max_bytes {
                self.budget.reserve(bytes)?;
                let others = rows.filter(size.gt(small_bytes));
                read.extend(db.query_all(others.as_query()).await?);
            }
        }
        Ok(read)
    }

    /// The translations of at most [`MAX_IDS_PER_STATEMENT`] tasks, by task.
    async fn task_translations(
        &self,
        rows: &[task::Model],
    ) -> Result<HashMap<Uuid, Vec<task_translation::Model>>, StoreError> {
        let translated = rows.iter().filter(|row| row.language_count > 0);
        let translated: Vec<Uuid> = translated.map(|row| row.guid).collect();
        let mut by_task: HashMap<Uuid, Vec<task_translation::Model>> = HashMap::new();
        if translated.is_empty() {
            return Ok(by_task);
        }
        let found = self
            .scope
            .find::<task_translation::Entity>()
            .filter(task_translation::Column::Task.is_in(translated));
        for row in found.all(self.scope.db).await? {
            by_task.entry(row.task).or_default().push(row);
        }
        Ok(by_task)
    }

    /// The translations of steps without bodies, by step.
    async fn step_translations(
        &self,
        rows: &[StepRow],
    ) -> Result<HashMap<Uuid, Vec<StepTranslationRow>>, StoreError> {
        use step_translation::Column;
        let translated = rows.iter().filter(|row| row.step.language_count > 0);
        let translated: Vec<Uuid> = translated.map(|row| row.step.guid).collect();
        let mut by_step: HashMap<Uuid, Vec<StepTranslationRow>> = HashMap::new();
        for steps in translated.chunks(MAX_IDS_PER_STATEMENT) {
            check_call()?;
            let found = self
                .scope
                .find::<step_translation::Entity>()
                .select_except([Column::Body])
                .expr_as(Column::Body.is_not_null(), "has_body")
                .filter(Column::Step.is_in(steps.iter().copied()));
            let rows = self.scope.db.query_all(found.as_query()).await?;
            for row in decode::<StepTranslationRow>(rows).await? {
                by_step.entry(row.translation.step).or_default().push(row);
            }
        }
        Ok(by_step)
    }
}

/// A step without its body.
#[derive(FromQueryResult)]
struct StepRow {
    #[sea_orm(nested)]
    step: step::Model,
    has_body: bool,
}

/// A step's translation without its body.
#[derive(FromQueryResult)]
struct StepTranslationRow {
    #[sea_orm(nested)]
    translation: step_translation::Model,
    has_body: bool,
}

/// Decodes rows, on another thread if there are many.
async fn decode<R: FromQueryResult + Send + 'static>(
    rows: Vec<QueryResult>,
) -> Result<Vec<R>, StoreError> {
    let decoded = analyse_by_weight(rows.len(), move |stop| {
        // A row is freed once it is decoded.
        let decode = |row: QueryResult| R::from_query_result(&row, "");
        rows.into_iter()
            .map(|row| (!stop.is_given()).then(|| decode(row)))
            .collect::<Option<Result<Vec<R>, DbErr>>>()
    });
    Ok(decoded.await??)
}

fn read_head(
    row: task::Model,
    translations: Vec<task_translation::Model>,
) -> Result<TaskHead, StoreError> {
    let states = translations.iter().map(|translation| {
        let state = TranslationState {
            has_body: false,
            outdated_title: translation.translated_from_name != row.name,
            outdated_rest: false,
        };
        (Language::stored(translation.language.clone()), state)
    });
    let states = states.collect();
    let step_count = usize::try_from(row.step_count).unwrap_or(usize::MAX);
    let task = read_task(row, read_task_translations(translations)?, Vec::new())?;
    Ok(TaskHead {
        source: SourceTask {
            task,
            translations: states,
            origin: None,
        },
        step_count,
    })
}

fn read_source_step(
    row: StepRow,
    translations: Vec<StepTranslationRow>,
) -> Result<SourceStep, StoreError> {
    let StepRow { step, has_body } = row;
    let mut texts = StepTranslations::new();
    let mut states = BTreeMap::new();
    for StepTranslationRow {
        translation,
        has_body,
    } in translations
    {
        let state = TranslationState {
            has_body,
            outdated_title: translation.translated_from_title != step.title,
            outdated_rest: translation.translated_from_rest != step.rest_digest,
        };
        let (language, translation) = read_step_translation(translation)?;
        states.insert(language.clone(), state);
        texts.insert(language, translation);
    }
    let body_bytes = usize::try_from(step.body_size).unwrap_or(usize::MAX);
    let (step, _) = read_step(step, texts)?;
    Ok(SourceStep {
        step,
        has_body,
        body_bytes,
        translations: states,
        origin: None,
    })
}
