//! A document of an import.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use serde_json::{Map, Value};
use strum_macros::FromRepr;
use uuid::Uuid;

use super::TaskTree;
use crate::domain::{
    external_id::ExternalId,
    ids::{StepId, TaskId},
    step::{NewStep, SentSubtask, StepType},
    task::NewTask,
    time::Timestamp,
    violation::{Path, Reason, Violations},
};

/// What an import does with existing steps that the document leaves out, with the numbers of the
/// API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i32)]
pub enum AbsentSteps {
    Refuse = 0,
    /// Moves them after the listed steps, in their former order.
    Keep = 1,
    Delete = 2,
}

/// What an import does with fields of stored tasks and steps that the document leaves out, with the
/// numbers of the API.
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

/// The document of an import.
#[derive(Debug)]
pub enum ImportDocument {
    /// It creates its task, so it does not depend on stored data.
    Decoded(Box<Document>),
    /// It may change a stored task, against which it is decoded.
    Undecoded(Box<dyn GuideDocument>),
}

/// A document of a request before its fields are decoded.
pub trait GuideDocument: Debug + Send + Sync {
    /// Decodes it against the guide that is stored. A field that was not sent gets the value that it has
    /// after the import.
    fn decode(&self, stored: Option<&TaskTree>) -> Document;
}

/// The ids of the tasks to which the subtask steps of a document refer.
#[derive(Clone, Debug, Default)]
pub struct SubtaskIds {
    pub guids: BTreeSet<TaskId>,
    pub external_ids: BTreeSet<ExternalId>,
}

impl SubtaskIds {
    pub fn add(&mut self, subtask: SentSubtask) {
        self.guids.extend(subtask.guid);
        self.external_ids.extend(subtask.external_id);
    }
}

/// A task with its steps as a document wants them.
#[derive(Debug, Default)]
pub struct Document {
    /// The path in the request, such as
    /// `document.steps[3].feedback_config[0].values[1].task_json`.
    pub path: String,
    pub task: DocumentTask,
    pub steps: Vec<DocumentStep>,
    /// The violations of its fields. The outermost document also has the violations of nested ones.
    pub violations: Violations,
    /// The paths of sent fields that are not honored. The outermost document also has those of nested ones.
    pub ignored: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct DocumentTask {
    /// The path in the request.
    pub path: String,
    /// Its id in the document.
    pub guid: Option<TaskId>,
    /// Its fields after the import. A managed task has placeholders for what it inherits. `None` if they
    /// are invalid.
    pub new: Option<NewTask>,
    /// When the task of a revision was created.
    pub created: Timestamp,
}

/// A step of a document. Malformed references count as absent.
#[derive(Debug)]
pub struct DocumentStep {
    /// The path in the request.
    pub path: String,
    /// Its id in the document.
    pub guid: Option<StepId>,
    /// The stored step that it is.
    pub stored: Option<StepId>,
    /// The document's id of the task whose wiring step it is.
    pub link: Option<TaskId>,
    /// The task that a subtask step refers to, by the document's id of it.
    pub subtask: SentSubtask,
    /// The sent title. A subtask step takes the name of its task instead, and another title is listed as
    /// ignored.
    pub title: Option<String>,
    /// Whether it sets or clears the question.
    pub edits_question: bool,
    /// One element for each value of its question; empty if no question was sent.
    pub values: Vec<DocumentValue>,
    pub fields: StepFields,
    /// When the step of a revision was created.
    pub created: Timestamp,
    /// That of the step of a revision; `None` if it cannot be read.
    pub r_data: Option<Map<String, Value>>,
}

impl DocumentStep {
    /// A step that the stored task does not have.
    pub fn unknown(path: String, guid: Option<StepId>) -> Self {
        Self {
            path,
            guid,
            stored: None,
            link: None,
            subtask: SentSubtask::default(),
            title: None,
            edits_question: false,
            values: Vec::new(),
            fields: StepFields::Refused,
            created: Timestamp::default(),
            r_data: None,
        }
    }
}

/// The fields of a step after an import.
#[derive(Debug)]
pub enum StepFields {
    /// They are invalid, or the stored task has no step with its id.
    Refused,
    /// They stay as they are stored.
    Kept,
    New(Box<NewStep>),
}

impl StepFields {
    pub fn as_new(&self) -> Option<&NewStep> {
        match self {
            Self::New(new) => Some(new.as_ref()),
            Self::Refused | Self::Kept => None,
        }
    }

    pub fn step_type(&self) -> Option<StepType> {
        self.as_new().map(|new| new.kind.step_type())
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

    /// Whether all tasks and steps are valid.
    pub fn is_decoded(&self) -> bool {
        let mut documents = self.all().into_iter();
        let is_refused = |step: &DocumentStep| matches!(step.fields, StepFields::Refused);
        documents.all(|it| it.task.new.is_some() && !it.steps.iter().any(is_refused))
    }

    /// The ids that its tasks have, those of managed tasks included.
    pub fn task_ids(&self) -> BTreeSet<TaskId> {
        let tasks = self.all().into_iter().map(|document| &document.task);
        tasks.filter_map(|task| task.guid).collect()
    }

    /// The ids of the tasks to which subtask steps refer.
    pub fn subtasks(&self) -> SubtaskIds {
        let mut subtasks = SubtaskIds::default();
        for step in self.all_steps() {
            subtasks.add(step.subtask.clone());
        }
        subtasks
    }

    /// The tasks that subtask steps refer to, each once, with all that the steps say of it.
    pub fn subtask_targets(&self) -> Vec<SentSubtask> {
        let mut targets: Vec<SentSubtask> = Vec::new();
        let (mut by_guid, mut by_external_id) = (BTreeMap::new(), BTreeMap::new());
        let steps = self.all_steps();
        for step in steps.filter(|step| step.fields.step_type() == Some(StepType::Subtask)) {
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
