//! A decoded document.
//!
//! Only the planner knows which tasks and steps exist. Each is decoded to one patch, of which the
//! planner makes a new one or an update.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::domain::{
    external_id::ExternalId,
    ids::{ProductId, StepId, TaskId},
    step::{NewStep, Step, StepPatch, StepType, SubtaskRef},
    task::{NewTask, Task, TaskPatch},
    violation::{Path, Reason, Violations},
};

/// What an import does with existing steps that the document leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentSteps {
    /// Fails if there are any.
    Refuse,
    /// Moves them after the listed steps, in their former order.
    Keep,
    /// Deletes them.
    Delete,
}

/// What an import does with fields of stored tasks and steps that the document leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentFields {
    /// Keeps them.
    Keep,
    /// Sets their defaults, so that the guide is exactly the document.
    Reset,
}

/// What an import does with subtask steps that refer to tasks which the account does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingSubtasks {
    /// Fails, as the document may refer to no such task.
    NotFound,
    /// Fails, as the tasks of a revision are gone.
    Refuse,
    /// Leaves the steps out.
    Skip,
}

/// The task that an import is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportTarget {
    /// A new task.
    New,
    /// The task with this id.
    Id(TaskId),
    /// The task with this external id, or a new one if there is none.
    ExternalId(ExternalId),
}

/// The path in a request of a task or step that an import writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DocumentPath {
    /// The document has it here: `document.task` or `document.steps[3]`.
    Listed(String),
    /// The import adds it for the value at this path: the wiring step, or the task if the value
    /// has no document.
    OfValue(String),
    /// The document does not have it.
    #[default]
    Unlisted,
}

impl DocumentPath {
    /// The path; empty if there is none.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Listed(path) | Self::OfValue(path) => path,
            Self::Unlisted => "",
        }
    }
}

/// A task with its steps.
#[derive(Clone, Debug)]
pub struct Document {
    /// The path in the request, such as
    /// `document.steps[3].feedback_config[0].values[1].task_json`. If the value has no
    /// document, the path of the value.
    pub path: String,
    /// The task.
    pub task: DocumentTask,
    /// Its steps in order.
    pub steps: Vec<DocumentStep>,
}

/// The task of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentTask {
    /// Its path in the request.
    pub path: DocumentPath,
    /// Its id in the document.
    pub guid: Option<TaskId>,
    /// The product, if one was sent; `Some(None)` if it is invalid.
    pub product: Option<Option<ProductId>>,
    /// The name, if one was sent: a managed task ignores it.
    pub name: Option<String>,
    /// Its fields.
    pub patch: TaskPatch,
    /// The task as a restore makes it; then the patch is empty.
    pub kept: Option<Box<Task>>,
}

/// A step of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentStep {
    /// The path in the request.
    pub path: String,
    /// Its id in the document.
    pub guid: Option<StepId>,
    /// The external id by which the stored step is found; `None` if it is found by its id, or is
    /// new.
    pub matched_id: Option<ExternalId>,
    /// The document's id of the task that it belongs to.
    pub task: Option<TaskId>,
    /// The document's id of the task whose wiring step it is.
    pub link: Option<TaskId>,
    /// The title, if one was sent and the step may be a subtask step. A subtask step takes
    /// the name of its task instead, and another title is listed as ignored.
    pub title: Option<String>,
    /// Its fields.
    pub patch: Box<StepPatch>,
    /// One element for each value of its question; empty if no question was sent.
    pub values: Vec<DocumentValue>,
    /// The step as a restore makes it; then the patch is empty.
    pub kept: Option<Box<Step>>,
}

/// The managed task of a value.
#[derive(Clone, Debug, Default)]
pub struct DocumentValue {
    /// The ids that the document has for the task: the value's `link`, and the id in the nested
    /// document.
    pub ids: Vec<TaskId>,
    /// The task with its steps, if the document has them. Most values have none.
    pub document: Option<Box<Document>>,
}

impl Document {
    /// The document and all nested ones, the outermost first.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut index = 0;
        while let Some(document) = all.get(index).copied() {
            let values = document.steps.iter().flat_map(|step| &step.values);
            all.extend(values.filter_map(|value| value.document.as_deref()));
            index += 1;
        }
        all
    }

    /// Its steps, including the steps of nested documents.
    pub fn all_steps(&self) -> impl Iterator<Item = &DocumentStep> {
        self.all().into_iter().flat_map(|document| &document.steps)
    }

    /// How many steps it has, including the steps of nested documents.
    pub fn step_count(&self) -> usize {
        self.all().iter().map(|document| document.steps.len()).sum()
    }

    /// The ids that its tasks have, those of managed tasks included.
    pub fn task_ids(&self) -> BTreeSet<TaskId> {
        let tasks = self.all().into_iter().map(|document| &document.task);
        tasks.filter_map(|task| task.guid).collect()
    }

    /// The document's ids of all tasks that subtask steps refer to.
    pub fn subtasks(&self) -> BTreeSet<TaskId> {
        let steps = self.all_steps();
        steps.filter_map(|step| step.patch.new_subtask()).collect()
    }

    /// The references of the subtask steps that are created, by the document's ids of their tasks.
    pub fn new_subtasks(&self) -> BTreeMap<TaskId, SubtaskRef> {
        let steps = self.all_steps().map(|step| &step.patch);
        let steps = steps.filter(|step| step.step_type.valid() == Some(&StepType::Subtask));
        let subtasks = steps.filter_map(|step| {
            let (task, product) = (*step.subtask_id.valid()?, *step.subtask_pid.valid()?);
            Some((task, SubtaskRef { task, product }))
        });
        subtasks.collect()
    }

    /// Refuses a task or step whose id an earlier one has, nested documents included. An import
    /// that creates all of them makes new ids and accepts it; an import of a stored guide does not.
    pub fn check_ids(&self) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let mut known = BTreeSet::new();
        let mut check = |id: Option<Uuid>, path: &str, what: &'static str| {
            if let Some(id) = id
                && !known.insert((what, id))
            {
                let description = format!("is the id of another {what} of the document");
                let at = Path::root(path);
                violations.add(&at.field("guid"), Reason::FieldInvalid, description);
            }
        };
        for document in self.all() {
            let task = &document.task;
            check(task.guid.map(|task| task.0), task.path.as_str(), "task");
            for step in &document.steps {
                check(step.guid.map(|step| step.0), &step.path, "step");
            }
        }
        violations.into_result()
    }

    /// Adds those violations of decoding that hold whichever tasks and steps are stored.
    /// `reimport` is whether the document may be of an existing task.
    pub fn add_violations(&self, reimport: bool, violations: &mut Violations) {
        match reimport {
            true => violations.append(self.task.patch.violations.clone()),
            false => drop(self.task.to_create(violations)),
        }
        for step in &self.steps {
            match reimport && (step.guid.is_some() || step.matched_id.is_some()) {
                true => violations.append(step.patch.violations.clone()),
                false => drop(step.to_create(TaskId(Uuid::nil()), violations)),
            }
            let nested = step.values.iter().flat_map(|value| &value.document);
            nested.for_each(|document| document.add_violations(reimport, violations));
        }
    }

    /// A placeholder for a document that is not imported.
    pub fn skipped(path: String) -> Self {
        let task = DocumentPath::Listed(format!("{path}.task"));
        Self::without_steps(path, task, TaskPatch::refused())
    }

    /// The document of a value that has none: a task without steps. `path` is that of the
    /// value.
    pub(super) fn for_value(path: String) -> Self {
        let task = DocumentPath::OfValue(path.clone());
        Self::without_steps(path, task, TaskPatch::reset())
    }

    fn without_steps(path: String, task: DocumentPath, patch: TaskPatch) -> Self {
        let task = DocumentTask {
            path: task,
            patch,
            ..DocumentTask::default()
        };
        Self {
            path,
            task,
            steps: Vec::new(),
        }
    }
}

impl DocumentTask {
    /// The task to create, if it is valid. Adds its violations.
    pub(super) fn to_create(&self, violations: &mut Violations) -> Option<NewTask> {
        let at = Path::root(self.path.as_str());
        NewTask::from_patch(self.patch.clone(), &at, violations)
    }
}

impl DocumentStep {
    /// The step to create, if it is valid, and the fields that are not honored. Adds its
    /// violations.
    pub(super) fn to_create(
        &self,
        task: TaskId,
        violations: &mut Violations,
    ) -> (Option<NewStep>, Vec<&'static str>) {
        let patch = StepPatch::clone(&self.patch);
        NewStep::from_patch(Some(task), patch, &Path::root(&self.path), violations)
    }
}
