//! A document as a caller wrote it, decoded.

use std::collections::BTreeSet;

use crate::domain::{
    ids::{ProductId, StepId, TaskId},
    step::{NewStep, StepPatch, StepType},
    task::{AccessLevel, NewTask, Published, TaskPatch},
    text::Name,
    translation::TaskTranslations,
    violation::Violations,
};

/// Most steps of one document.
pub const STEPS_MAX: usize = 10_000;
/// Deepest nesting of documents, the outermost counted.
pub const DEPTH_MAX: usize = 8;

/// What becomes of steps that a re-import leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentSteps {
    /// The import fails when there are any.
    Refuse,
    /// They follow the listed ones in their former order.
    Keep,
    /// They are deleted.
    Delete,
}

/// A task with its steps.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it stands in the request, such as
    /// `document.steps[3].feedback_config[0].values[1].task_json`.
    pub path: String,
    /// The task.
    pub task: DocumentTask,
    /// Its steps in order.
    pub steps: Vec<DocumentStep>,
}

/// What a document says of its task.
#[derive(Clone, Debug)]
pub struct DocumentTask {
    /// The id that the document gives it.
    pub guid: Option<TaskId>,
    /// The product, if one was sent.
    pub product: Option<ProductId>,
    /// The name, if one was sent: a managed task ignores it.
    pub name: Option<String>,
    /// What it says of a new or an existing task.
    pub says: Says<NewTask, TaskPatch>,
}

/// What a document says of one step.
#[derive(Clone, Debug)]
pub struct DocumentStep {
    /// Where it stands in the request.
    pub path: String,
    /// The id that the document gives it.
    pub guid: Option<StepId>,
    /// The task that it belongs to, by the document's id.
    pub task: Option<TaskId>,
    /// The task that it wires, by the document's id.
    pub link: Option<TaskId>,
    /// The type, if one was sent that there is.
    pub step_type: Option<StepType>,
    /// The product, if one was sent.
    pub product: Option<ProductId>,
    /// The title, if one was sent: a subtask step ignores it.
    pub title: Option<String>,
    /// What it says of a new or an existing step.
    pub says: Says<NewStep, StepPatch>,
    /// What its question's values say of the tasks that they manage; as many
    /// as values, or none when no question was sent.
    pub values: Vec<DocumentValue>,
}

/// What a value says of the task that it manages.
#[derive(Clone, Debug, Default)]
pub struct DocumentValue {
    /// The document's ids for the task.
    pub aliases: Vec<TaskId>,
    /// The task with its steps.
    pub document: Option<Document>,
}

/// What is said of something that may or may not exist yet.
#[derive(Clone, Debug)]
pub struct Says<N, P> {
    /// If it is to be made: what it is, or what is wrong with that.
    pub new: Result<N, Violations>,
    /// If it exists: what changes.
    pub patch: P,
}

impl Document {
    /// The tasks that subtask steps name, by the document's ids, nested
    /// documents included.
    pub fn subtasks(&self) -> BTreeSet<TaskId> {
        let mut found = BTreeSet::new();
        self.add_subtasks(&mut found);
        found
    }

    fn add_subtasks(&self, found: &mut BTreeSet<TaskId>) {
        for step in &self.steps {
            let new = step.says.new.as_ref().ok();
            found.extend(new.and_then(|new| new.kind.subtask()).map(|to| to.task));
            found.extend(step.says.patch.new_subtask());
            for document in step
                .values
                .iter()
                .filter_map(|value| value.document.as_ref())
            {
                document.add_subtasks(found);
            }
        }
    }

    /// A document that nothing is made of.
    pub fn unread(path: String) -> Self {
        let task = DocumentTask {
            guid: None,
            product: None,
            name: None,
            says: Says {
                new: Err(Violations::new()),
                patch: TaskPatch::default(),
            },
        };
        Self {
            path,
            task,
            steps: Vec::new(),
        }
    }

    /// What is made of a value without a document: a task without steps.
    pub(super) fn bare(name: Name, product: ProductId) -> Self {
        let new = NewTask {
            name,
            product,
            dependencies: None,
            published: Published::default(),
            roles: AccessLevel::ALL.to_vec(),
            translations: TaskTranslations::new(),
        };
        let task = DocumentTask {
            guid: None,
            product: None,
            name: None,
            says: Says {
                new: Ok(new),
                patch: TaskPatch::default(),
            },
        };
        Self {
            path: String::new(),
            task,
            steps: Vec::new(),
        }
    }
}
