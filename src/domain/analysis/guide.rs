//! The guide as it is analyzed: a task with its steps, and the tasks that its subtask steps refer
//! to with their steps, down to [`MAX_SUBTASK_LEVELS`] levels.
//!
//! Each task is stored once, however many subtask steps refer to it. [`Guide::route`] has its steps
//! once per path that leads to them.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Index,
};

use crate::domain::{
    ids::{StepId, TaskId},
    import::Origin,
    step::{Step, StepType},
    task::{Published, Task},
    translation::{Language, StepTranslation, TaskTranslation},
};

use super::{
    condition::{CompiledCondition, Dependencies},
    variable::{Variable, VariableId},
};

mod build;
mod document;
mod route;

pub use build::{GuideDraft, guide_weight};
pub use document::{plan_tasks, refer_to_documents};
pub use route::{GuideStop, SubtaskEntry};

/// The maximum number of steps of an analyzed guide. If several subtask steps refer to a task, its
/// steps count for each of them.
pub const MAX_GUIDE_STEPS: usize = 10_000;
/// The maximum number of levels of subtasks below the root.
pub const MAX_SUBTASK_LEVELS: usize = 8;

/// A limit of the analysis: what it counts, and the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuideLimit(pub &'static str, pub usize);

impl GuideLimit {
    const STEPS: Self = Self("steps", MAX_GUIDE_STEPS);
    /// If several subtask steps refer to a task, its conditions and steps count for each of them.
    const CONDITIONS: Self = Self("conditions", 20_000);
    /// The keys of all variables. The keys of an observation count once for each variable that it
    /// sets.
    const KEYS: Self = Self("keys", 1_000_000);
}

#[derive(Clone, Copy, Debug, Default)]
struct GuideSize {
    steps: usize,
    conditions: usize,
}

impl GuideSize {
    /// The size with more steps and conditions. Fails if it exceeds a limit.
    fn plus(self, steps: usize, conditions: usize) -> Result<Self, GuideLimit> {
        let size = Self {
            steps: self.steps + steps,
            conditions: self.conditions + conditions,
        };
        match size {
            _ if size.steps > GuideLimit::STEPS.1 => Err(GuideLimit::STEPS),
            _ if size.conditions > GuideLimit::CONDITIONS.1 => Err(GuideLimit::CONDITIONS),
            _ => Ok(size),
        }
    }
}

/// Whether unpublished tasks and steps are treated like published ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpublished {
    pub included: bool,
}

impl Unpublished {
    /// Whether a task or step with this `published` value can be visible.
    pub fn shows(self, published: Published) -> bool {
        self.included || published == Published::default()
    }

    pub fn shows_step(self, step: &GuideStep) -> bool {
        self.shows(step.step.content.published)
    }
}

/// The state of a translation that its texts do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationState {
    /// Whether it has a body, which may not have been read.
    pub has_body: bool,
    /// Whether its title, or a task's name, was made from a source that has changed.
    pub outdated_title: bool,
    /// Whether its other texts were made from a source that has changed.
    pub outdated_rest: bool,
}

/// The tasks that were read for a guide.
pub type SourceTasks = BTreeMap<TaskId, GuideTask>;

#[derive(Clone, Debug, Default)]
pub struct Guide {
    /// Its tasks, each once, the root first, then by depth and order of the subtask steps.
    pub tasks: Vec<GuideTask>,
    pub variables: Vec<Variable>,
    /// The first limit that it exceeds. Tasks may then lack their steps, and steps their
    /// tasks.
    pub limit: Option<GuideLimit>,
    /// Its steps in the order of a walk, including unpublished ones; empty if the guide exceeds a
    /// limit.
    pub route: Vec<GuideStop>,
    indexes: HashMap<TaskId, usize>,
    ids: VariableIds,
}

/// The variables of each name: the account-wide variable, and the variables of tasks.
type VariableIds = HashMap<String, BTreeMap<Option<usize>, VariableId>>;

/// A task of a guide. Until the guide is built, it has no conditions.
#[derive(Clone, Debug)]
pub struct GuideTask {
    /// Its list of steps may be empty.
    pub task: Task,
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it is in the document; `None` if it is stored.
    pub origin: Option<Origin<TaskId>>,
    /// Its steps in order; `None` if they are too deep, or beyond a limit.
    pub steps: Option<Vec<GuideStep>>,
    /// The minimum number of subtask steps that lead to it; 0 for the root. Below
    /// [`MAX_SUBTASK_LEVELS`], its steps are not part of the guide.
    pub depth: usize,
    pub conditions: Vec<CompiledCondition>,
}

/// A step of a guide. Until the guide is built, it has no conditions, variables and subtask.
#[derive(Clone, Debug)]
pub struct GuideStep {
    /// The bodies, external id, creation time and dirty flag of a stored step are not read.
    pub step: Step,
    /// Whether it has a body, which may not have been read.
    pub has_body: bool,
    /// An upper bound of the bytes of its body and the bodies of its translations.
    pub body_bytes: usize,
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it is in the document; `None` if it is stored.
    pub origin: Option<Origin<StepId>>,
    pub conditions: Vec<CompiledCondition>,
    /// The variables that it sets, if it is an observation: the account-wide one first.
    pub sets: Vec<VariableId>,
    /// The task that it refers to, if it is a subtask step: an index of [`Guide::tasks`].
    /// `None` beyond a limit.
    pub subtask: Option<usize>,
}

impl From<Task> for GuideTask {
    fn from(task: Task) -> Self {
        Self {
            task,
            translations: BTreeMap::new(),
            origin: None,
            steps: None,
            depth: 0,
            conditions: Vec::new(),
        }
    }
}

impl From<Step> for GuideStep {
    fn from(step: Step) -> Self {
        Self {
            step,
            has_body: false,
            body_bytes: 0,
            translations: BTreeMap::new(),
            origin: None,
            conditions: Vec::new(),
            sets: Vec::new(),
            subtask: None,
        }
    }
}

/// A step of a guide: the indexes of its task in [`Guide::tasks`], and of itself in
/// [`GuideTask::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepPosition {
    pub task: usize,
    pub step: usize,
}

impl Index<StepPosition> for Guide {
    type Output = GuideStep;

    #[expect(clippy::indexing_slicing, reason = "positions are those of the guide")]
    fn index(&self, StepPosition { task, step }: StepPosition) -> &GuideStep {
        &self.steps(task)[step]
    }
}

impl Index<VariableId> for Guide {
    type Output = Variable;

    #[expect(clippy::indexing_slicing, reason = "ids are those of the guide")]
    fn index(&self, VariableId(index): VariableId) -> &Variable {
        &self.variables[index]
    }
}

impl Guide {
    #[expect(clippy::indexing_slicing, reason = "indexes are those of the guide")]
    pub fn task(&self, index: usize) -> &GuideTask {
        &self.tasks[index]
    }

    #[expect(clippy::indexing_slicing, reason = "indexes are those of the route")]
    pub fn stop(&self, index: usize) -> &GuideStop {
        &self.route[index]
    }

    pub fn root(&self) -> &GuideTask {
        self.task(0)
    }

    /// The steps of a task; empty if they are not part of the guide.
    pub fn steps(&self, task: usize) -> &[GuideStep] {
        self.task(task).steps.as_deref().unwrap_or_default()
    }

    pub fn subtask(&self, step: &GuideStep) -> Option<&GuideTask> {
        Some(self.task(step.subtask?))
    }

    /// The account-wide variable of a name, and the variables of tasks.
    pub fn variables_named(&self, name: &str) -> impl Iterator<Item = VariableId> + Clone {
        let ids = self.ids.get(name).into_iter().flatten();
        ids.map(|(_, id)| *id)
    }

    pub fn conditions(&self) -> impl Iterator<Item = &CompiledCondition> {
        self.tasks.iter().flat_map(|task| {
            let steps = task.steps.iter().flatten();
            let step_conditions = steps.flat_map(|step| &step.conditions);
            step_conditions.chain(&task.conditions)
        })
    }

    /// The id of a task in responses: its own if it is stored, otherwise the id in the document.
    pub fn task_guid(&self, task: TaskId) -> Option<TaskId> {
        let index = self.indexes.get(&task);
        index.map_or(Some(task), |index| self.task(*index).guid())
    }
}

impl GuideTask {
    pub fn dependencies(&self) -> Option<Dependencies<'_>> {
        Some(Dependencies {
            group: self.task.content.dependencies.as_ref()?,
            conditions: &self.conditions,
        })
    }

    pub fn translation(&self, language: &Language) -> Option<(&TaskTranslation, TranslationState)> {
        let translation = self.task.content.translations.get(language)?;
        let state = self.translations.get(language);
        Some((translation, state.copied().unwrap_or_default()))
    }

    /// The task's id in responses; for a task of a document, the id in the document.
    pub fn guid(&self) -> Option<TaskId> {
        let origin = self.origin.as_ref();
        origin.map_or(Some(self.task.guid), |origin| origin.guid)
    }
}

impl GuideStep {
    pub fn dependencies(&self) -> Option<Dependencies<'_>> {
        Some(Dependencies {
            group: self.step.content.dependencies.as_ref()?,
            conditions: &self.conditions,
        })
    }

    pub fn translation(&self, language: &Language) -> Option<(&StepTranslation, TranslationState)> {
        let translation = self.step.content.translations.get(language)?;
        let state = self.translations.get(language);
        Some((translation, state.copied().unwrap_or_default()))
    }

    /// The step's id in responses; for a step of a document, the id in the document.
    pub fn guid(&self) -> Option<StepId> {
        let origin = self.origin.as_ref();
        origin.map_or(Some(self.step.guid), |origin| origin.guid)
    }

    pub fn step_type(&self) -> StepType {
        self.step.kind.step_type()
    }

    pub fn answer_keys(&self) -> impl ExactSizeIterator<Item = &str> {
        let feedback = self.step.kind.feedback();
        let values = feedback.map_or(&[][..], |feedback| &feedback.values);
        values.iter().map(|value| value.key.as_str())
    }
}
