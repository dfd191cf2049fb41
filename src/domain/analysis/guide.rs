//! The guide as it is analysed: a task with its steps, and the tasks that its subtask steps
//! refer to with theirs, to [`MAX_SUBTASK_LEVELS`] levels.
//!
//! Each task is stored once, however many subtask steps refer to it. A walk over the guide
//! calls [`Guide::subtask_entry`] at each subtask step.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{
    ids::{StepId, TaskId},
    import::Origin,
    step::Step,
    task::Task,
    translation::Language,
};

use super::{
    condition::CompiledGroup,
    variable::{Variable, VariableId},
};

mod build;
mod document;
mod size;

pub use build::{GuideDraft, MAX_VARIABLE_KEYS};
pub use document::of_document;
pub use size::weight_of;

/// Most steps of an analysed guide. Those of a task that several subtask steps refer to
/// count at each of them.
pub const MAX_GUIDE_STEPS: usize = 10_000;
/// Most conditions of an analysed guide, counted like its steps.
pub const MAX_GUIDE_CONDITIONS: usize = 20_000;
/// Most levels of subtasks below the task.
pub const MAX_SUBTASK_LEVELS: usize = 8;

/// A limit that a guide exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideLimit {
    /// [`MAX_GUIDE_STEPS`].
    Steps,
    /// [`MAX_GUIDE_CONDITIONS`].
    Conditions,
    /// [`MAX_VARIABLE_KEYS`].
    Keys,
}

/// Facts about a translation that its texts do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationState {
    /// Whether it has a body, which may not have been read.
    pub has_body: bool,
    /// Whether its title, or a task's name, was made from a source that has changed.
    pub outdated_title: bool,
    /// Whether its other texts were made from a source that has changed.
    pub outdated_rest: bool,
}

/// A task as it was read.
#[derive(Clone, Debug)]
pub struct SourceTask {
    /// The task. Its list of steps may be empty.
    pub task: Task,
    /// The state of its translations.
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it stands in the document; `None` if it is stored.
    pub origin: Option<Origin<TaskId>>,
}

/// A step as it was read, without bodies.
#[derive(Clone, Debug)]
pub struct SourceStep {
    /// The step.
    pub step: Step,
    /// Whether it has a body, which may not have been read.
    pub has_body: bool,
    /// An upper bound of the bytes of its body and those of its translations.
    pub body_bytes: usize,
    /// The state of its translations.
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it stands in the document; `None` if it is stored.
    pub origin: Option<Origin<StepId>>,
}

/// The tasks that were read for a guide, each with its steps in order. The steps are
/// `None` if they are too deep or too many to read.
pub type SourceTasks = BTreeMap<TaskId, (SourceTask, Option<Vec<SourceStep>>)>;

/// A guide.
#[derive(Clone, Debug)]
pub struct Guide {
    /// Its tasks, each once, the root first, then by depth and order of the subtask steps.
    pub tasks: Vec<GuideTask>,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// The first limit that it exceeds. Tasks may then lack their steps, and steps their
    /// tasks.
    pub limit: Option<GuideLimit>,
    /// The index of each task.
    indexes: HashMap<TaskId, usize>,
}

/// A task of a guide.
#[derive(Clone, Debug)]
pub struct GuideTask {
    /// The task as it was read.
    pub source: SourceTask,
    /// The fewest subtask steps that lead to it, 0 for the root. At one more than
    /// [`MAX_SUBTASK_LEVELS`] its steps are no part of the guide.
    pub depth: usize,
    /// Its compiled dependencies.
    pub dependencies: Option<CompiledGroup>,
    /// Its steps in order; `None` if they are too deep or beyond a limit.
    pub steps: Option<Vec<GuideStep>>,
}

/// A step of a guide.
#[derive(Clone, Debug)]
pub struct GuideStep {
    /// The step as it was read.
    pub source: SourceStep,
    /// Its compiled dependencies.
    pub dependencies: Option<CompiledGroup>,
    /// The variables that it sets, if it is an observation: the account-wide one first.
    pub sets: Vec<VariableId>,
    /// The task that it refers to, if it is a subtask step: an index of [`Guide::tasks`].
    /// `None` beyond a limit.
    pub subtask: Option<usize>,
}

/// A step of a guide by its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepPosition {
    /// The index of its task in [`Guide::tasks`].
    pub task: usize,
    /// Its index in [`GuideTask::steps`].
    pub step: usize,
}

/// Whether a walk enters the task that a subtask step refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubtaskEntry {
    /// The step refers to no task, or to one that a limit cut off.
    NoTask,
    /// It enters this task.
    Enter(usize),
    /// It does not enter this task, as it is inside it already.
    Cycle(usize),
    /// It does not enter this task, as it is more than [`MAX_SUBTASK_LEVELS`] levels deep.
    TooDeep(usize),
}

impl Guide {
    /// The task whose guide it is.
    pub fn root(&self) -> Option<&GuideTask> {
        self.tasks.first()
    }

    /// The steps of a task; none if they are no part of the guide.
    pub fn steps(&self, task: usize) -> &[GuideStep] {
        let steps = self.tasks.get(task).and_then(|task| task.steps.as_ref());
        steps.map_or(&[], Vec::as_slice)
    }

    /// A step.
    pub fn step(&self, position: StepPosition) -> Option<&GuideStep> {
        self.steps(position.task).get(position.step)
    }

    /// The id of a task in responses: its own if it is stored, else the one in the document.
    pub fn guid_of(&self, task: TaskId) -> Option<TaskId> {
        let held = self.indexes.get(&task);
        match held.and_then(|index| self.tasks.get(*index)) {
            Some(held) => held.guid(),
            None => Some(task),
        }
    }

    /// Whether a walk enters the task of a subtask step. `entered` are the tasks that the
    /// walk is inside of: the root first, the task of the step last.
    pub fn subtask_entry(&self, step: &GuideStep, entered: &[usize]) -> SubtaskEntry {
        match step.subtask {
            None => SubtaskEntry::NoTask,
            Some(task) if entered.contains(&task) => SubtaskEntry::Cycle(task),
            Some(task) if entered.len() > MAX_SUBTASK_LEVELS => SubtaskEntry::TooDeep(task),
            Some(task) => SubtaskEntry::Enter(task),
        }
    }
}

impl GuideTask {
    /// The task's id in responses; for a task of a document, the id in the document.
    pub fn guid(&self) -> Option<TaskId> {
        match &self.source.origin {
            Some(origin) => origin.guid,
            None => Some(self.source.task.guid),
        }
    }
}

impl GuideStep {
    /// The step's id in responses; for a step of a document, the id in the document.
    pub fn guid(&self) -> Option<StepId> {
        match &self.source.origin {
            Some(origin) => origin.guid,
            None => Some(self.source.step.guid),
        }
    }

    /// The keys of its answers, in order.
    pub fn answer_keys(&self) -> impl ExactSizeIterator<Item = &str> {
        let feedback = self.source.step.kind.feedback();
        let values = feedback.map_or(&[][..], |feedback| &feedback.values);
        values.iter().map(|value| value.key.as_str())
    }
}
