//! Steps.

use serde_json::{Map, Value};
use strum_macros::FromRepr;
use uuid::Uuid;

use super::{
    decide::WriteContext,
    error::{Error, Missing},
    etag::Etag,
    external_id::ExternalId,
    feedback::{Feedback, LinkChanges},
    history::DeletedBy,
    ids::{AccountId, ProductId, StepId, TaskId},
    row_version::RowVersion,
    task::Task,
    text::Name,
    violation::{Path, Reason, Violations},
};

mod content;

pub use content::{Looping, StepContent};

/// The type of a step, with the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i32)]
pub enum StepType {
    Solution = 1,
    Observation = 2,
    Information = 3,
    Subtask = 4,
    End = 5,
    Idp = 6,
}

impl StepType {
    pub fn number(self) -> i32 {
        self as i32
    }

    pub fn has_cost(self) -> bool {
        match self {
            Self::Solution | Self::Idp => true,
            Self::Observation | Self::Information | Self::Subtask | Self::End => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost(i32);

impl Cost {
    pub fn new(cost: i32) -> Option<Self> {
        (cost == 0 || cost >= 2).then_some(Self(cost))
    }

    pub fn get(self) -> i32 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtaskRef {
    pub task: TaskId,
    pub product: ProductId,
}

impl SubtaskRef {
    /// A placeholder for a task that is not found yet. [`Step::refer_to`] replaces it.
    pub const UNRESOLVED: Self = Self {
        task: TaskId(Uuid::nil()),
        product: ProductId::FIRST,
    };
}

/// A task that a subtask step refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedTask {
    pub task: TaskId,
    pub product: ProductId,
    pub name: Name,
    pub external_id: Option<ExternalId>,
}

impl ReferencedTask {
    pub fn to(task: &Task) -> Self {
        Self {
            task: task.guid,
            product: task.product,
            name: task.name.clone(),
            external_id: task.content.external_id.clone(),
        }
    }
}

/// The task of a subtask step, named in a request by its id, its external id, or both.
#[derive(Clone, Debug, Default)]
pub struct SentSubtask {
    pub guid: Option<TaskId>,
    /// If both ids are sent, this one selects the task, and `guid` must be the id of that task.
    pub external_id: Option<ExternalId>,
    /// The product of the task.
    pub product: Option<ProductId>,
}

impl SentSubtask {
    /// The reference before the task is found, with placeholders for what was not sent.
    pub fn unresolved(&self) -> SubtaskRef {
        let SubtaskRef { task, product } = SubtaskRef::UNRESOLVED;
        SubtaskRef {
            task: self.guid.unwrap_or(task),
            product: self.product.unwrap_or(product),
        }
    }

    pub fn names_task(&self) -> bool {
        self.guid.is_some() || self.external_id.is_some()
    }

    /// Whether it names the task with these ids.
    pub fn means(&self, task: TaskId, external_id: Option<&ExternalId>) -> bool {
        match &self.external_id {
            Some(id) => external_id == Some(id),
            None => self.guid == Some(task),
        }
    }

    /// The error if the account does not have the task.
    pub fn not_found(&self, step: &Path<'_>) -> Error {
        match &self.external_id {
            Some(id) => {
                let field = step.field("subtask_external_id").to_string();
                Error::not_found(Missing::TaskWithExternalId(id.clone()), field)
            }
            None => {
                let field = step.field("subtask_id").to_string();
                Error::task_not_found(self.unresolved().task, field)
            }
        }
    }

    /// Adds a violation if the id or the product that was sent is not that of the task.
    pub fn check(&self, target: &ReferencedTask, step: &Path<'_>, violations: &mut Violations) {
        let (field, description) = if self.guid.is_some_and(|guid| guid != target.task) {
            let description = "is not the external id of the task that `subtask_id` names";
            ("subtask_external_id", description)
        } else if self.product.is_some_and(|it| it != target.product) {
            let description = "is not the product of the task to which the step refers";
            ("subtask_pid", description)
        } else {
            return;
        };
        violations.add(&step.field(field), Reason::FieldInvalid, description);
    }
}

/// The fields that depend on the type of a step.
///
/// *Invariant:* only types that [have a cost](StepType::has_cost) have a cost other than 0, an
/// observation has a question, and only a subtask step refers to a task.
#[derive(Clone, Debug, PartialEq)]
pub struct StepKind {
    step_type: StepType,
    cost: Cost,
    feedback: Option<Feedback>,
    subtask: Option<SubtaskRef>,
}

impl StepKind {
    /// `None` if the type cannot have these fields.
    pub fn new(
        step_type: StepType,
        cost: Cost,
        feedback: Option<Feedback>,
        subtask: Option<SubtaskRef>,
    ) -> Option<Self> {
        let is_valid = (cost == Cost::default() || step_type.has_cost())
            && (feedback.is_some() || step_type != StepType::Observation)
            && subtask.is_some() == (step_type == StepType::Subtask);
        is_valid.then_some(Self {
            step_type,
            cost,
            feedback,
            subtask,
        })
    }

    /// A subtask step without a question.
    pub fn for_subtask(subtask: SubtaskRef) -> Self {
        Self {
            step_type: StepType::Subtask,
            cost: Cost::default(),
            feedback: None,
            subtask: Some(subtask),
        }
    }

    pub fn step_type(&self) -> StepType {
        self.step_type
    }

    /// The cost of trying it; 0 for types without a cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    pub fn feedback(&self) -> Option<&Feedback> {
        self.feedback.as_ref()
    }

    pub fn into_feedback(self) -> Option<Feedback> {
        self.feedback
    }

    /// Sets or clears the question. That of an observation is not cleared.
    pub fn set_feedback(&mut self, feedback: Option<Feedback>) {
        if feedback.is_some() || self.step_type != StepType::Observation {
            self.feedback = feedback;
        }
    }

    /// The question of an observation. Only these set variables and manage tasks.
    pub fn observation_feedback(&self) -> Option<&Feedback> {
        let feedback = self.feedback.as_ref();
        feedback.filter(|_| self.step_type == StepType::Observation)
    }

    /// The question of an observation, whose links may be set.
    pub fn observation_feedback_mut(&mut self) -> Option<&mut Feedback> {
        let feedback = self.feedback.as_mut();
        feedback.filter(|_| self.step_type == StepType::Observation)
    }

    pub fn subtask(&self) -> Option<SubtaskRef> {
        self.subtask
    }
}

#[derive(Clone, Debug)]
pub struct NewStep {
    /// The task that it belongs to. It never changes.
    pub task: TaskId,
    /// The product that it is about. It never changes.
    pub product: ProductId,
    /// The heading; empty for a subtask step, which has the name of its task.
    pub title: String,
    /// The fields of its type, which never changes.
    pub kind: StepKind,
    pub content: StepContent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub guid: StepId,
    pub account: AccountId,
    pub task: TaskId,
    pub product: ProductId,
    pub kind: StepKind,
    /// The heading: its own, or the name of the task that a subtask step refers to.
    pub title: String,
    /// The external id of the task that a subtask step refers to. Like the title, it follows the task.
    pub subtask_external_id: Option<ExternalId>,
    pub content: StepContent,
    /// The managed task whose wiring step it is.
    pub link: Option<TaskId>,
    pub r_data: Map<String, Value>,
    pub row_version: RowVersion,
}

impl Step {
    /// Creates a step. A subtask step still needs [`Self::refer_to`].
    pub fn create(new: NewStep, context: &WriteContext) -> Self {
        Self {
            guid: StepId((context.new_id)()),
            account: context.account.clone(),
            task: new.task,
            product: new.product,
            kind: new.kind,
            title: new.title,
            subtask_external_id: None,
            content: new.content,
            link: None,
            r_data: Map::new(),
            row_version: RowVersion::first(context.now),
        }
    }

    /// The step with the fields of an update or an import, and how its links change. `edits_question`
    /// is whether these may set or clear the question. A subtask step keeps its title.
    pub fn edited(&self, new: NewStep, edits_question: bool) -> (Self, LinkChanges) {
        let mut step = Self {
            guid: self.guid,
            account: self.account.clone(),
            task: self.task,
            product: self.product,
            kind: new.kind,
            title: new.title,
            subtask_external_id: self.subtask_external_id.clone(),
            content: new.content,
            link: self.link,
            r_data: self.r_data.clone(),
            row_version: self.row_version,
        };
        if step.kind.subtask().is_some() {
            step.title.clone_from(&self.title);
        }
        if !edits_question {
            // Its links are not in the update.
            step.kind.set_feedback(self.kind.feedback().cloned());
            return (step, LinkChanges::default());
        }
        let before = self.kind.observation_feedback();
        let links = match before.zip(step.kind.observation_feedback_mut()) {
            Some((before, after)) => after.take_links(before),
            None => LinkChanges::default(),
        };
        (step, links)
    }

    /// Sets what a subtask step has of its task.
    pub fn refer_to(&mut self, target: ReferencedTask) {
        if let Some(subtask) = &mut self.kind.subtask {
            subtask.task = target.task;
            subtask.product = target.product;
            self.title = target.name.into_string();
            self.subtask_external_id = target.external_id;
        }
    }

    /// The task that a stored subtask step refers to. The step has all that is needed of it.
    pub fn referenced_task(&self) -> Option<ReferencedTask> {
        let SubtaskRef { task, product } = self.kind.subtask()?;
        Some(ReferencedTask {
            task,
            product,
            name: Name::parse(self.title.clone()).ok()?,
            external_id: self.subtask_external_id.clone(),
        })
    }

    /// Whether updates may change the task that it refers to. A wiring step always refers to its managed
    /// task.
    pub fn honors_subtask(&self) -> bool {
        self.kind.subtask().is_some() && self.link.is_none()
    }

    /// The step as it comes back after its deletion, with a version that it never had. The tasks that it
    /// managed were unlinked.
    pub fn restored(mut self, context: &WriteContext) -> Self {
        if let Some(question) = self.kind.observation_feedback_mut() {
            question.linked = false;
            question
                .values
                .iter_mut()
                .for_each(|value| value.link = None);
        }
        self.row_version = RowVersion::after_deletion(self.row_version.created, context);
        self
    }

    /// Sets the next version if the step differs from `before`. Returns whether it does.
    pub fn revise(&mut self, before: &Self, context: &WriteContext) -> bool {
        let changed = self != before;
        if changed {
            self.row_version = before.row_version.next(context);
        }
        changed
    }

    pub fn etag(&self) -> Etag {
        Etag::for_row_version(self.guid.0, &self.row_version)
    }

    pub fn managed_tasks(&self) -> Vec<TaskId> {
        let feedback = self.kind.feedback().into_iter();
        feedback.flat_map(Feedback::linked_tasks).collect()
    }
}

/// Where a new step is in the order, with the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Appended = 1,
    AfterPrevstep = 2,
    /// At the end, because the requested step is not in the task.
    AppendedPrevstepUnknown = 3,
    First = 4,
}

/// A deleted step that can be restored.
#[derive(Clone, Debug)]
pub struct DeletedStep {
    pub step: Step,
    pub deleted: DeletedBy,
    /// The step before it; none if it was the first.
    pub previous: Option<StepId>,
}
