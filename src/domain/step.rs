//! Steps.

use serde_json::{Map, Value};

use super::{
    decide::WriteContext,
    dependency::Group,
    etag::Etag,
    feedback::Feedback,
    ids::{AccountId, ProductId, StepId, TaskId},
    json::{Instruction, Json},
    link::linked_tasks,
    revision::Revision,
    task::{Published, Task},
    text::{Body, Name, Tag, Title},
    translation::StepTranslations,
    violation::{Path, Reason, Violations},
};

mod merge;

pub use merge::{
    COST_NOT_ALLOWED, LINKED_OBSERVATIONS_ONLY, MergedStep, StepPatch, linked_import_only,
};

/// What a step asks. The numbers are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepType {
    /// Something to try.
    Solution = 1,
    /// Something to look at and answer.
    Observation = 2,
    /// Something to read.
    Information = 3,
    /// Another task, followed here.
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

/// What trying a step costs: 0, or 2 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost(i32);

impl Cost {
    /// Accepts 0, and 2 and more.
    pub fn new(cost: i32) -> Option<Self> {
        (cost == 0 || cost >= 2).then_some(Self(cost))
    }

    /// The number.
    pub fn get(self) -> i32 {
        self.0
    }
}

/// The task that a subtask step stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtaskRef {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
}

/// What each type of step needs, and nothing that it must not have.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Something to try.
    Solution {
        /// The heading.
        title: Title,
        /// What trying costs.
        cost: Cost,
        /// A question, kept for its author.
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
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// Another task; its name is the heading.
    Subtask {
        /// The task.
        subtask: SubtaskRef,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// The end of the guide.
    End {
        /// The heading.
        title: Title,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
    /// An identified problem.
    Idp {
        /// The heading.
        title: Title,
        /// What trying costs.
        cost: Cost,
        /// A question, kept for its author.
        feedback: Option<Feedback>,
    },
}

impl StepKind {
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

    /// The step's own heading; none for a subtask.
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

    /// What trying costs; 0 where the type has no cost.
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

    /// The task that a subtask step stands for.
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

/// How a step repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Looping {
    /// The name under which one round sees its element.
    pub alias: Tag,
    /// What is looped over.
    pub array: Option<Json>,
    /// How often, or in which rounds.
    pub iterations: Option<Json>,
}

/// What steps of every type have. The default is a step that says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepContent {
    /// The text.
    pub body: Option<Body>,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// Instructions of the caller's own shape.
    pub instructions: Vec<Instruction>,
    /// How it repeats.
    pub looping: Option<Looping>,
    /// Parts needed.
    pub parts: Vec<Tag>,
    /// Whether it is shown.
    pub published: Published,
    /// Skills needed.
    pub skills: Vec<Tag>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Its texts in other languages.
    pub translations: StepTranslations,
}

/// What a caller says of a new step.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// The task it belongs to, for ever.
    pub task: TaskId,
    /// The product it is about, for ever.
    pub product: ProductId,
    /// What it asks, for ever.
    pub kind: StepKind,
    /// The rest.
    pub content: StepContent,
}

/// A step as stored.
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
    /// What it asks.
    pub kind: StepKind,
    /// The heading as a reader sees it: its own, or the subtask's name.
    pub title: String,
    /// What steps of every type have.
    pub content: StepContent,
    /// The managed task that it wires.
    pub link: Option<TaskId>,
    /// Data of reporting systems.
    pub r_data: Map<String, Value>,
    /// Which state it is in.
    pub revision: Revision,
}

impl Step {
    /// A step that is made now, with its title as a reader sees it.
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

    /// Makes this the next state of a step, unless it says the same; whether it does
    /// not.
    pub fn revise(&mut self, before: &Self, context: &WriteContext) -> bool {
        let changed = self != before;
        if changed {
            self.revision = before.revision.next(context.now);
        }
        changed
    }

    /// The state it is in, as callers see it.
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
    /// Right after the step named.
    AfterPrevstep,
    /// At the end, as the step named is not of the task.
    AppendedPrevstepUnknown,
}

/// The task behind a reference, as the store found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedTask {
    /// The task.
    pub task: TaskId,
    /// Its product.
    pub product: ProductId,
    /// Its name.
    pub name: Name,
}

impl ReferencedTask {
    /// A task as a reference sees it.
    pub fn to(task: &Task) -> Self {
        Self {
            task: task.guid,
            product: task.product,
            name: task.name.clone(),
        }
    }

    /// Notes when a caller's product is not that of the task.
    pub fn check_product(&self, product: ProductId, step: &Path<'_>, violations: &mut Violations) {
        if product != self.product {
            violations.add(
                &step.field("subtask_pid"),
                Reason::FieldInvalid,
                "is not the product of the task that `subtask_id` names",
            );
        }
    }
}
