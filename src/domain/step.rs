//! Steps.

use serde_json::{Map, Value};

use super::{
    decide::WriteContext,
    etag::Etag,
    feedback::Feedback,
    ids::{AccountId, ProductId, StepId, TaskId},
    link::linked_tasks,
    revision::Revision,
    text::Title,
};

mod content;
mod looping;
mod merge;
mod subtask;

pub use content::{ContentPatch, StepContent};
pub use looping::Looping;
pub use merge::{
    COST_NOT_ALLOWED, LINKED_OBSERVATIONS_ONLY, MergedStep, StepPatch, linked_import_only,
};
pub use subtask::{ReferencedTask, check_subtask_product};

/// The type of a step, with the numbers of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepType {
    /// Something to try.
    Solution = 1,
    /// Something to look at and answer.
    Observation = 2,
    /// Something to read.
    Information = 3,
    /// Another task, whose guide is followed.
    Subtask = 4,
    /// The end of the guide.
    End = 5,
    /// An identified problem.
    Idp = 6,
}

impl StepType {
    /// All types.
    pub const ALL: [Self; 6] = [
        Self::Solution,
        Self::Observation,
        Self::Information,
        Self::Subtask,
        Self::End,
        Self::Idp,
    ];

    /// The type of a number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The type's number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// Whether steps of this type may have a cost.
    pub fn has_cost(self) -> bool {
        match self {
            Self::Solution | Self::Idp => true,
            Self::Observation | Self::Information | Self::Subtask | Self::End => false,
        }
    }
}

/// The cost of trying a step: 0, or at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost(i32);

impl Cost {
    /// Accepts 0 and numbers from 2.
    pub fn new(cost: i32) -> Option<Self> {
        (cost == 0 || cost >= 2).then_some(Self(cost))
    }

    /// The number.
    pub fn get(self) -> i32 {
        self.0
    }
}

/// The task that a subtask step refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtaskRef {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
}

/// The fields that depend on the type of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Something to try.
    Solution {
        /// The heading.
        title: Title,
        /// The cost of trying it.
        cost: Cost,
        /// A question, if the author has set one.
        feedback: Option<Feedback>,
    },
    /// Something to look at and answer.
    Observation {
        /// The heading.
        title: Title,
        /// The question.
        feedback: Feedback,
    },
    /// Something to read.
    Information {
        /// The heading.
        title: Title,
        /// A question, if the author has set one.
        feedback: Option<Feedback>,
    },
    /// Another task; its name is the heading.
    Subtask {
        /// The task.
        subtask: SubtaskRef,
        /// A question, if the author has set one.
        feedback: Option<Feedback>,
    },
    /// The end of the guide.
    End {
        /// The heading.
        title: Title,
        /// A question, if the author has set one.
        feedback: Option<Feedback>,
    },
    /// An identified problem.
    Idp {
        /// The heading.
        title: Title,
        /// The cost of trying it.
        cost: Cost,
        /// A question, if the author has set one.
        feedback: Option<Feedback>,
    },
}

impl StepKind {
    /// The fields of a type whose steps have a title of their own. `None` for a subtask step,
    /// and for an observation without a question.
    pub fn titled(
        step_type: StepType,
        title: Title,
        cost: Cost,
        feedback: Option<Feedback>,
    ) -> Option<Self> {
        Some(match step_type {
            StepType::Solution => Self::Solution {
                title,
                cost,
                feedback,
            },
            StepType::Observation => Self::Observation {
                title,
                feedback: feedback?,
            },
            StepType::Information => Self::Information { title, feedback },
            StepType::Subtask => return None,
            StepType::End => Self::End { title, feedback },
            StepType::Idp => Self::Idp {
                title,
                cost,
                feedback,
            },
        })
    }

    /// The type.
    pub fn step_type(&self) -> StepType {
        match self {
            Self::Solution { .. } => StepType::Solution,
            Self::Observation { .. } => StepType::Observation,
            Self::Information { .. } => StepType::Information,
            Self::Subtask { .. } => StepType::Subtask,
            Self::End { .. } => StepType::End,
            Self::Idp { .. } => StepType::Idp,
        }
    }

    /// The heading; `None` for a subtask step.
    pub fn title(&self) -> Option<&Title> {
        match self {
            Self::Solution { title, .. }
            | Self::Observation { title, .. }
            | Self::Information { title, .. }
            | Self::End { title, .. }
            | Self::Idp { title, .. } => Some(title),
            Self::Subtask { .. } => None,
        }
    }

    /// The cost of trying it; 0 for types without a cost.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Solution { cost, .. } | Self::Idp { cost, .. } => *cost,
            Self::Observation { .. }
            | Self::Information { .. }
            | Self::Subtask { .. }
            | Self::End { .. } => Cost::default(),
        }
    }

    /// The question.
    pub fn feedback(&self) -> Option<&Feedback> {
        match self {
            Self::Observation { feedback, .. } => Some(feedback),
            Self::Solution { feedback, .. }
            | Self::Information { feedback, .. }
            | Self::Subtask { feedback, .. }
            | Self::End { feedback, .. }
            | Self::Idp { feedback, .. } => feedback.as_ref(),
        }
    }

    /// The question of an observation. Only these set variables.
    pub fn observation_feedback(&self) -> Option<&Feedback> {
        match self {
            Self::Observation { feedback, .. } => Some(feedback),
            Self::Solution { .. }
            | Self::Information { .. }
            | Self::Subtask { .. }
            | Self::End { .. }
            | Self::Idp { .. } => None,
        }
    }

    /// The task that a subtask step refers to.
    pub fn subtask(&self) -> Option<SubtaskRef> {
        match self {
            Self::Subtask { subtask, .. } => Some(*subtask),
            Self::Solution { .. }
            | Self::Observation { .. }
            | Self::Information { .. }
            | Self::End { .. }
            | Self::Idp { .. } => None,
        }
    }
}

/// A step to create.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// The task that it belongs to. It never changes.
    pub task: TaskId,
    /// The product that it is about. It never changes.
    pub product: ProductId,
    /// The fields of its type, which never changes.
    pub kind: StepKind,
    /// The other fields.
    pub content: StepContent,
}

/// A stored step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its id.
    pub guid: StepId,
    /// Its owner.
    pub account: AccountId,
    /// The task it belongs to.
    pub task: TaskId,
    /// The product it is about.
    pub product: ProductId,
    /// The fields of its type.
    pub kind: StepKind,
    /// The heading: its own, or the name of the task that a subtask step refers to.
    pub title: String,
    /// The other fields.
    pub content: StepContent,
    /// The managed task whose wiring step it is.
    pub link: Option<TaskId>,
    /// Data of reporting systems.
    pub r_data: Map<String, Value>,
    /// Its revision.
    pub revision: Revision,
}

impl Step {
    /// Creates a step with the title that readers see.
    pub fn create(new: NewStep, title: String, context: &WriteContext) -> Self {
        let NewStep {
            task,
            product,
            kind,
            content,
        } = new;
        Self {
            guid: StepId((context.new_id)()),
            account: context.account.clone(),
            task,
            product,
            kind,
            title,
            content,
            link: None,
            r_data: Map::new(),
            revision: Revision::first(context.now),
        }
    }

    /// Sets the next revision if the step differs from `before`. Returns whether it does.
    pub fn revise(&mut self, before: &Self, context: &WriteContext) -> bool {
        let changed = self != before;
        if changed {
            self.revision = before.revision.next(context.now);
        }
        changed
    }

    /// The etag of its revision.
    pub fn etag(&self) -> Etag {
        Etag::of(self.guid.0, &self.revision)
    }

    /// The tasks that its question manages.
    pub fn managed_tasks(&self) -> Vec<TaskId> {
        let feedback = self.kind.feedback().into_iter();
        feedback.flat_map(linked_tasks).collect()
    }
}

/// Where a new step was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the end.
    Appended,
    /// Right after the requested step.
    AfterPrevstep,
    /// At the end, as the requested step is not in the task.
    AppendedPrevstepUnknown,
}
