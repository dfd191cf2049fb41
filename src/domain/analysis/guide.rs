//! The guide as it is analysed: a task with its steps, and the tasks that its subtask steps
//! refer to with theirs, to [`MAX_SUBTASK_LEVELS`] levels.
//!
//! Each task is stored once, however many subtask steps refer to it. A walk over the guide
//! calls [`Guide::subtask_entry`] at each subtask step.

use std::collections::{BTreeMap, HashMap};

use crate::domain::{
    ids::{StepId, TaskId},
    import::Origin,
    step::{Step, StepType},
    task::Task,
    translation::Language,
};

use super::{
    condition::CompiledGroup,
    variable::{Variable, VariableId},
};

mod build;
mod document;
mod route;
mod size;

pub use build::{GuideDraft, MAX_VARIABLE_KEYS};
pub use document::of_document;
pub use route::{GuideStop, SubtaskEntry};
pub use size::{MAX_GUIDE_CONDITIONS, MAX_GUIDE_STEPS, weight_of};

/// Most levels of subtasks below the task.
pub const MAX_SUBTASK_LEVELS: usize = 8;

/// A limit that a guide exceeds: [`MAX_GUIDE_STEPS`], [`MAX_GUIDE_CONDITIONS`] or
/// [`MAX_VARIABLE_KEYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideLimit {
    Steps,
    Conditions,
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

/// A task as it was read. Its list of steps may be empty.
#[derive(Clone, Debug)]
pub struct SourceTask {
    pub task: Task,
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it stands in the document; `None` if it is stored.
    pub origin: Option<Origin<TaskId>>,
}

/// A step as it was read, without bodies.
#[derive(Clone, Debug)]
pub struct SourceStep {
    pub step: Step,
    /// Whether it has a body, which may not have been read.
    pub has_body: bool,
    /// An upper bound of the bytes of its body and those of its translations.
    pub body_bytes: usize,
    pub translations: BTreeMap<Language, TranslationState>,
    /// Where it stands in the document; `None` if it is stored.
    pub origin: Option<Origin<StepId>>,
}

/// The tasks that were read for a guide, each with its steps in order. The steps are
/// `None` if they are too deep or too many to read.
pub type SourceTasks = BTreeMap<TaskId, (SourceTask, Option<Vec<SourceStep>>)>;

#[derive(Clone, Debug)]
pub struct Guide {
    /// Its tasks, each once, the root first, then by depth and order of the subtask steps.
    pub tasks: Vec<GuideTask>,
    pub variables: Vec<Variable>,
    /// The first limit that it exceeds. Tasks may then lack their steps, and steps their
    /// tasks.
    pub limit: Option<GuideLimit>,
    /// Its steps in the order of a walk, unpublished ones included; empty if it exceeds a limit.
    pub route: Vec<GuideStop>,
    indexes: HashMap<TaskId, usize>,
}

#[derive(Clone, Debug)]
pub struct GuideTask {
    pub source: SourceTask,
    /// The fewest subtask steps that lead to it, 0 for the root. At one more than
    /// [`MAX_SUBTASK_LEVELS`] its steps are no part of the guide.
    pub depth: usize,
    pub dependencies: Option<CompiledGroup>,
    /// Its steps in order; `None` if they are too deep or beyond a limit.
    pub steps: Option<Vec<GuideStep>>,
}

#[derive(Clone, Debug)]
pub struct GuideStep {
    pub source: SourceStep,
    pub dependencies: Option<CompiledGroup>,
    /// The variables that it sets, if it is an observation: the account-wide one first.
    pub sets: Vec<VariableId>,
    /// The task that it refers to, if it is a subtask step: an index of [`Guide::tasks`].
    /// `None` beyond a limit.
    pub subtask: Option<usize>,
}

/// A step of a guide: the indexes of its task in [`Guide::tasks`], and of itself in
/// [`GuideTask::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepPosition {
    pub task: usize,
    pub step: usize,
}

impl Guide {
    pub fn root(&self) -> Option<&GuideTask> {
        self.tasks.first()
    }

    /// The steps of a task; none if they are no part of the guide.
    pub fn steps(&self, task: usize) -> &[GuideStep] {
        let steps = self.tasks.get(task).and_then(|task| task.steps.as_ref());
        steps.map_or(&[], Vec::as_slice)
    }

    pub fn step(&self, position: StepPosition) -> Option<&GuideStep> {
        self.steps(position.task).get(position.step)
    }

    /// The task of a subtask step.
    pub fn subtask(&self, step: &GuideStep) -> Option<&GuideTask> {
        self.tasks.get(step.subtask?)
    }

    /// The dependencies of all tasks and steps.
    pub fn groups(&self) -> impl Iterator<Item = &CompiledGroup> {
        self.tasks.iter().flat_map(|task| {
            let steps = task.steps.iter().flatten();
            let of_steps = steps.filter_map(|step| step.dependencies.as_ref());
            of_steps.chain(&task.dependencies)
        })
    }

    /// The id of a task in responses: its own if it is stored, else the one in the document.
    pub fn guid_of(&self, task: TaskId) -> Option<TaskId> {
        let held = self.indexes.get(&task);
        match held.and_then(|index| self.tasks.get(*index)) {
            Some(held) => held.guid(),
            None => Some(task),
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

    pub fn step_type(&self) -> StepType {
        self.source.step.kind.step_type()
    }

    /// The keys of its answers, in order.
    pub fn answer_keys(&self) -> impl ExactSizeIterator<Item = &str> {
        let feedback = self.source.step.kind.feedback();
        let values = feedback.map_or(&[][..], |feedback| &feedback.values);
        values.iter().map(|value| value.key.as_str())
    }
}
