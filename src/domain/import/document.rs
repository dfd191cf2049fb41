//! A document of an import. Its tasks and steps are decoded by the planner, which knows what is
//! stored of them.

use std::collections::{BTreeMap, BTreeSet};

use strum_macros::FromRepr;
use uuid::Uuid;

use crate::domain::{
    Error, Result,
    decide::SentFields,
    external_id::ExternalId,
    ids::{StepId, TaskId},
    step::{NewStep, SentSubtask, Step, StepType},
    task::{NewTask, Task},
    violation::{Path, Reason, Violations},
};

/// What an import does with existing steps that the document leaves out, with the numbers of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i32)]
pub enum AbsentSteps {
    Refuse = 0,
    /// Moves them after the listed steps, in their former order.
    Keep = 1,
    Delete = 2,
}

/// What an import does with fields of stored tasks and steps that the document leaves out, with the numbers
/// of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i32)]
pub enum AbsentFields {
    Keep = 1,
    /// Sets their defaults, so that the guide is exactly the document.
    Reset = 2,
}

/// The task that an import is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportTarget {
    New,
    Id(TaskId),
    /// The task with this external id, or a new one if there is none.
    ExternalId(ExternalId),
}

/// The path in a request of a task or step that an import writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPath {
    /// The document has it here: `document.task` or `document.steps[3]`.
    Listed(String),
    /// The import adds it for the value at this path: the wiring step, or the task if the value
    /// has no document.
    OfValue(String),
    /// The document does not have it.
    Unlisted,
}

/// The violations that hold whatever is stored. `may_be_stored` is whether anything is.
fn certain_violations<Stored, New>(
    fields: &dyn SentFields<Stored, New>,
    may_be_stored: bool,
) -> Violations {
    if may_be_stored {
        return fields.violations();
    }
    match fields.decode(None, None) {
        Err(Error::Invalid(violations)) => violations,
        Ok(_) | Err(_) => Violations::new(),
    }
}

/// A task with its steps.
#[derive(Debug)]
pub struct Document {
    /// The path in the request, such as
    /// `document.steps[3].feedback_config[0].values[1].task_json`.
    pub path: String,
    pub task: DocumentTask,
    pub steps: Vec<DocumentStep>,
}

/// The task of a document.
#[derive(Debug)]
pub struct DocumentTask {
    /// The path in the request.
    pub path: String,
    /// Its id in the document.
    pub guid: Option<TaskId>,
    /// `None` if the document has no task, for which it is refused.
    pub fields: Option<Box<dyn SentFields<Task, NewTask>>>,
}

impl DocumentTask {
    /// A new task with these fields, if they are valid.
    pub fn to_create(&self) -> Option<NewTask> {
        self.fields.as_ref()?.decode(None, None).ok()
    }
}

/// A step of a document. References are parsed up front; malformed ones count as absent.
#[derive(Debug)]
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
    pub step_type: Option<StepType>,
    /// The task that a subtask step refers to, by the document's id of it.
    pub subtask: SentSubtask,
    /// The title of a step that may be a subtask step. Such a step takes the name of its task
    /// instead, and another title is listed as ignored.
    pub title: Option<String>,
    /// Whether it sets or clears the question.
    pub edits_question: bool,
    /// One element for each value of its question; empty if no question was sent.
    pub values: Vec<DocumentValue>,
    pub fields: Box<dyn SentFields<Step, NewStep>>,
}

impl DocumentStep {
    /// A new step with these fields, if they are valid.
    pub fn to_create(&self) -> Option<NewStep> {
        self.fields.decode(None, None).ok()
    }
}

/// The managed task of a value.
#[derive(Debug)]
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
        self.all_steps()
            .filter_map(|step| step.subtask.guid)
            .collect()
    }

    /// The tasks that subtask steps refer to, each once, with all that the steps say of it.
    pub fn subtask_targets(&self) -> Vec<SentSubtask> {
        let mut targets: Vec<SentSubtask> = Vec::new();
        let (mut by_guid, mut by_external_id) = (BTreeMap::new(), BTreeMap::new());
        let steps = self.all_steps();
        for step in steps.filter(|step| step.step_type == Some(StepType::Subtask)) {
            let sent = &step.subtask;
            let known = sent.guid.and_then(|guid| by_guid.get(&guid));
            let named = || by_external_id.get(sent.external_id.as_ref()?);
            let index = known.or_else(named).copied().unwrap_or(targets.len());
            by_guid.extend(sent.guid.map(|guid| (guid, index)));
            by_external_id.extend(sent.external_id.as_ref().map(|id| (id, index)));
            match targets.get_mut(index) {
                Some(target) => {
                    target.guid = target.guid.or(sent.guid);
                    target.product = target.product.or(sent.product);
                    let external_id = target.external_id.take();
                    target.external_id = external_id.or_else(|| sent.external_id.clone());
                }
                None => targets.push(sent.clone()),
            }
        }
        targets.retain(SentSubtask::names_task);
        targets
    }

    /// The external ids of the tasks that subtask steps refer to.
    pub fn named_subtasks(&self) -> BTreeSet<&ExternalId> {
        self.all_steps()
            .filter_map(|step| step.subtask.external_id.as_ref())
            .collect()
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
            check(task.guid.map(|task| task.0), &task.path, "task");
            for step in &document.steps {
                check(step.guid.map(|step| step.0), &step.path, "step");
            }
        }
        violations.into_result()
    }

    /// Adds those violations of decoding that hold whichever tasks and steps are stored.
    /// `reimport` is whether the document may be of an existing task.
    pub fn add_violations(&self, reimport: bool, violations: &mut Violations) {
        if let Some(fields) = &self.task.fields {
            violations.append(certain_violations(fields.as_ref(), reimport));
        }
        for step in &self.steps {
            let may_be_stored = reimport && (step.guid.is_some() || step.matched_id.is_some());
            violations.append(certain_violations(step.fields.as_ref(), may_be_stored));
            let nested = step.values.iter().flat_map(|value| &value.document);
            nested.for_each(|document| document.add_violations(reimport, violations));
        }
    }
}

/// A path as in `ignored_paths`: without list indexes and map keys.
pub fn without_indexes(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0_u32;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}
