//! Reads a guide: a task or document with its steps and the steps of its subtasks, without bodies,
//! as one state of the database.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sea_orm::{
    ColumnTrait, ConnectionTrait, PartialModelTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::{
    LARGE_BYTES, group_by_id,
    outside_uses::{OutsideUses, find_outside_uses},
    read_by_ids,
    step_row::StepRow,
    steps::{self, Bodies, steps_by_subtask},
    tasks::{self, TaskSize, find_tasks_named, task_sizes},
};
use crate::{
    analysis_threads::analyze_by_weight,
    call_context::{Permit, memory_limit, take_memory},
    domain::{
        Error, SizedResource,
        analysis::{
            Criterion, Guide, GuideDraft, GuideStep, GuideTask, KnownVariables, MAX_GUIDE_STEPS,
            MAX_SUBTASK_LEVELS, Outside, SourceTasks, StopSignal, TranslationState, guide_weight,
            plan_tasks, refer_to_documents,
        },
        ids::{AccountId, TaskId},
        import::{Absent, Document, ImportContext, plan},
        step::ReferencedTask,
        translation::Language,
    },
    store::{
        Account,
        account::Scope,
        entity::{step, task},
        error::StoreError,
        rows::{LockedTaskRow, StepRows, TaskRows, read_step, read_task},
    },
};

/// Bytes of memory per byte of a guide during the analysis: as a row, as a step, and as a compiled
/// condition.
pub const MEMORY_PER_BYTE: usize = 4;
/// Bytes of memory that a task or step takes in addition to its texts.
const MEMORY_PER_ROW: usize = 1_600;

/// The maximum number of tasks and steps of a guide that are read without reading their sizes
/// first, and the maximum bytes of each.
const MAX_SMALL_ROWS: usize = 256;
const MAX_SMALL_ROW_BYTES: i64 = LARGE_BYTES / MAX_SMALL_ROWS as i64;

/// What a guide is read from.
#[derive(Debug)]
pub enum GuideSource {
    Stored(TaskId),
    /// A document that is not stored.
    Document(Arc<Document>),
}

/// A guide that was read and is not analyzed yet.
pub(super) struct ReadGuide {
    draft: GuideDraft,
    outside: OutsideUses,
    /// The cost of its analysis.
    pub weight: usize,
    /// Reserves the guide's memory until it is dropped.
    memory: Permit,
}

impl ReadGuide {
    pub fn step_count(&self) -> usize {
        self.draft.steps().count()
    }

    /// The guide, the conditions elsewhere that read its variables, and the memory of both; `None` if
    /// the call is over.
    pub fn finish(
        self,
        stop: StopSignal<'_>,
    ) -> Option<(Guide, BTreeMap<String, Outside<Criterion>>, Permit)> {
        let OutsideUses { setters, readers } = self.outside;
        Some((self.draft.finish(setters, stop)?, readers, self.memory))
    }
}

impl Account {
    /// Reads a guide, and what sets its variables elsewhere, in the snapshot of `scope`.
    ///
    /// With `replaced`, it also reads the conditions elsewhere that read the guide's variables. The
    /// stored tasks that the guide replaces do not count as elsewhere.
    pub(super) async fn read_guide(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        source: &GuideSource,
        replaced: Option<&BTreeSet<TaskId>>,
        known: &KnownVariables,
    ) -> Result<ReadGuide, StoreError> {
        let (root, planned, stored) = match source {
            GuideSource::Stored(root) => {
                let found = FoundTasks::find(scope, BTreeSet::from([root.0]), 0).await?;
                (*root, SourceTasks::new(), found)
            }
            GuideSource::Document(document) => {
                let ids = document.subtasks();
                let mut subtasks = ids.guids;
                let named = ids.external_ids.iter().collect();
                subtasks.extend(find_tasks_named(scope, &named).await?);
                let (root, planned) = self.plan_document(scope, document, &subtasks).await?;
                let subtasks = subtasks.iter().map(|task| task.0).collect();
                let found = FoundTasks::find(scope, subtasks, 1).await?;
                (root, planned, found)
            }
        };
        let memory = stored.reserve_memory(self.max_message_bytes())?;
        let mut tasks = stored.read(scope).await?;
        tasks.extend(planned);
        refer_to_documents(&mut tasks, |id| replaced.is_some_and(|it| it.contains(id)));
        let known = known.clone();
        let weight = guide_weight(&tasks);
        // The memory counts until the work ends, even if the call is canceled.
        let work = move |_: StopSignal<'_>| Some((GuideDraft::new(root, tasks, &known), memory));
        let (draft, mut memory) = analyze_by_weight(weight, work).await?;
        let draft = draft.ok_or_else(|| Error::task_not_found(root, "guid"))?;
        let outside = find_outside_uses(scope, &draft, replaced, &mut memory).await?;
        Ok(ReadGuide {
            weight: weight + outside.weight(),
            draft,
            outside,
            memory,
        })
    }

    /// Plans the import of a document that refers to stored tasks. An invalid document fails as its
    /// import would.
    async fn plan_document(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        document: &Arc<Document>,
        subtasks: &BTreeSet<TaskId>,
    ) -> Result<(TaskId, SourceTasks), StoreError> {
        let tasks = LockedTaskRow::select_cols(scope.find::<task::Entity>().select_only());
        let ids = subtasks.iter().map(|task| task.0);
        let rows = read_by_ids(scope, tasks, task::Column::Guid, ids).await?;
        let referenced = rows.into_iter().map(|row: LockedTaskRow| {
            let task = row.read()?;
            Ok((task.guid, task.referenced()))
        });
        let referenced: BTreeMap<TaskId, ReferencedTask> =
            referenced.collect::<Result<_, StoreError>>()?;
        let write = self.write_context();
        let document = Arc::clone(document);
        let planned = analyze_by_weight(document.all_steps().count(), move |_| {
            let context = ImportContext::for_new_guide(&write, &referenced);
            Some(plan(&document, Absent::DEFAULT, context).map(plan_tasks))
        });
        Ok(planned.await??)
    }
}

/// The steps in order, with a mark instead of each body.
fn steps_without_bodies(scope: Scope<'_, impl ConnectionTrait>) -> Select<step::Entity> {
    let steps = scope.find::<step::Entity>();
    let steps = steps.order_by_asc(step::Column::Position);
    StepRow::select(steps, Bodies::Mark)
}

/// The stored tasks of a guide before they are read.
#[derive(Default)]
struct FoundTasks {
    ids: BTreeSet<Uuid>,
    /// The tasks whose steps are read: those that are not too deep, and within [`MAX_GUIDE_STEPS`].
    with_steps: BTreeSet<Uuid>,
    step_count: usize,
    /// The bytes of the tasks and of the steps that are read, without bodies.
    bytes: usize,
    /// Tasks and steps that are read already because they are few and small, as in most guides.
    small_tasks: Vec<task::Model>,
    small_steps: Vec<StepRow>,
    /// The tasks of these steps.
    with_small_steps: BTreeSet<Uuid>,
}

impl FoundTasks {
    /// Finds tasks and all tasks below, level by level. The depth of a level is the minimum number of
    /// subtask steps that lead to it. Tasks that are one level too deep are read without steps, for
    /// their visibility.
    async fn find(
        scope: Scope<'_, impl ConnectionTrait>,
        mut level: BTreeSet<Uuid>,
        first_depth: usize,
    ) -> Result<Self, StoreError> {
        let mut found = Self::default();
        for depth in first_depth..=MAX_SUBTASK_LEVELS + 1 {
            let mut tasks = found.find_tasks(scope, level).await?;
            tasks.sort_unstable_by_key(|task| task.guid);
            let (mut with_steps, steps_above) = (Vec::new(), found.step_count);
            for task in tasks {
                found.ids.insert(task.guid);
                found.add_bytes(task.size);
                let step_count = usize::try_from(task.step_count).unwrap_or(usize::MAX);
                let step_count = found.step_count.saturating_add(step_count);
                if depth <= MAX_SUBTASK_LEVELS && step_count <= MAX_GUIDE_STEPS {
                    found.step_count = step_count;
                    with_steps.push(task.guid);
                }
            }
            let count = found.step_count - steps_above;
            level = BTreeSet::new();
            for (subtask, bytes) in found.find_steps(scope, with_steps, count).await? {
                found.add_bytes(bytes);
                level.extend(subtask.filter(|task| !found.ids.contains(task)));
            }
        }
        Ok(found)
    }

    /// The sizes of tasks. Small tasks are read.
    async fn find_tasks(
        &mut self,
        scope: Scope<'_, impl ConnectionTrait>,
        ids: BTreeSet<Uuid>,
    ) -> Result<Vec<TaskSize>, StoreError> {
        if self.has_room_for(ids.len()) {
            let small = task::Column::Size.lte(MAX_SMALL_ROW_BYTES);
            let tasks = scope.find::<task::Entity>().filter(small);
            let id = task::Column::Guid;
            let tasks: Vec<task::Model> = read_by_ids(scope, tasks, id, ids.clone()).await?;
            if tasks.len() == ids.len() {
                let sizes = tasks.iter().map(TaskSize::from).collect();
                self.small_tasks.extend(tasks);
                return Ok(sizes);
            }
        }
        task_sizes(scope, task::Column::Guid, ids).await
    }

    /// The subtasks and bytes of the steps of tasks; `count` is the number of these steps. Small
    /// steps are read.
    async fn find_steps(
        &mut self,
        scope: Scope<'_, impl ConnectionTrait>,
        tasks: Vec<Uuid>,
        count: usize,
    ) -> Result<Vec<(Option<Uuid>, i64)>, StoreError> {
        self.with_steps.extend(&tasks);
        if self.has_room_for(count) {
            let small = step::Column::Size.lte(MAX_SMALL_ROW_BYTES);
            let steps = steps_without_bodies(scope).filter(small);
            let task = step::Column::Task;
            let steps: Vec<StepRow> =
                read_by_ids(scope, steps, task, tasks.iter().copied()).await?;
            if steps.len() == count {
                let found = steps.iter().map(|StepRow(it)| (it.subtask_id, it.size));
                let found = found.collect();
                self.small_steps.extend(steps);
                self.with_small_steps.extend(tasks);
                return Ok(found);
            }
        }
        let steps = steps_by_subtask(scope, &tasks, Bodies::Mark).await?;
        Ok(steps
            .into_iter()
            .map(|it| (it.subtask_id, it.bytes))
            .collect())
    }

    fn has_room_for(&self, rows: usize) -> bool {
        self.small_tasks.len() + self.small_steps.len() + rows <= MAX_SMALL_ROWS
    }

    fn add_bytes(&mut self, bytes: i64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Reserves the memory for the tasks and steps. Fails if they have more bytes than a message may
    /// have or than would ever fit into memory, or with [`Error::Overloaded`] if there is no memory now.
    fn reserve_memory(&self, max_message_bytes: usize) -> Result<Permit, Error> {
        // The last part is for the fixed size of rows, and for the analysis.
        let limit = max_message_bytes.min(memory_limit() / (MEMORY_PER_BYTE + 1));
        if self.bytes > limit {
            let resource = SizedResource::AnalyzedGuide;
            return Err(Error::TooLarge { resource, limit });
        }
        let row_bytes = (self.ids.len() + self.step_count) * MEMORY_PER_ROW;
        take_memory(self.bytes * MEMORY_PER_BYTE + row_bytes)
    }

    async fn read(
        mut self,
        scope: Scope<'_, impl ConnectionTrait>,
    ) -> Result<SourceTasks, StoreError> {
        for task in &self.small_tasks {
            self.ids.remove(&task.guid);
        }
        let tasks = tasks::find_rows(scope, &Vec::from_iter(self.ids), self.small_tasks).await?;
        let mut steps = self.small_steps;
        let unread = self.with_steps.difference(&self.with_small_steps);
        let rows = steps_without_bodies(scope);
        steps.extend(read_by_ids(scope, rows, step::Column::Task, unread.copied()).await?);
        let steps = steps.into_iter().map(|StepRow(row)| row).collect();
        let steps = steps::with_translations(scope, steps, Bodies::Mark).await?;
        let mut steps = group_by_id(steps, |(step, _)| step.task);
        let tasks = tasks.into_iter().map(|rows| {
            let guid = rows.0.guid;
            let steps = self.with_steps.contains(&guid).then(|| {
                let steps = steps.remove(&guid).unwrap_or_default();
                let steps = steps.into_iter();
                steps.map(|rows| guide_step(scope.account, rows)).collect()
            });
            Ok((
                TaskId(guid),
                guide_task(scope.account, rows, steps.transpose()?)?,
            ))
        });
        tasks.collect()
    }
}

fn guide_task(
    account: &AccountId,
    (row, translations): TaskRows,
    steps: Option<Vec<GuideStep>>,
) -> Result<GuideTask, StoreError> {
    let states = translations.iter().map(|translation| {
        let state = TranslationState {
            has_body: false,
            outdated_title: translation.translated_from_name != row.name,
            outdated_rest: false,
        };
        (Language::stored(translation.language.clone()), state)
    });
    Ok(GuideTask {
        translations: states.collect(),
        steps,
        ..read_task(account, (row, translations), Vec::new())?.into()
    })
}

fn guide_step(
    account: &AccountId,
    (mut row, mut translations): StepRows,
) -> Result<GuideStep, StoreError> {
    let states = translations.iter_mut().map(|translation| {
        let state = TranslationState {
            has_body: translation.body.take().is_some(),
            outdated_title: translation.translated_from_title != row.title,
            outdated_rest: translation.translated_from_rest != row.rest_digest,
        };
        (Language::stored(translation.language.clone()), state)
    });
    Ok(GuideStep {
        translations: states.collect(),
        has_body: row.body.take().is_some(),
        body_bytes: usize::try_from(row.body_size).unwrap_or(usize::MAX),
        ..read_step(account, (row, translations))?.0.into()
    })
}
