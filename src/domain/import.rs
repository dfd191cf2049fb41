//! Imports: a pure plan of every task and step as the document wants them.
//!
//! The store reads the existing task, and turns the plan's changes into statements.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{
    changes::Changes,
    decide::WriteContext,
    etag::GuideEtag,
    ids::{StepId, TaskId},
    order::Place,
    size::exported_bytes,
    step::{ReferencedTask, Step},
    task::Task,
};

mod document;
mod plan;
mod restore;

pub use document::{
    AbsentFields, AbsentSteps, Document, DocumentFields, DocumentPath, DocumentStep, DocumentTask,
    DocumentValue, Fields, ImportTarget, MissingSubtasks,
};
pub use plan::{plan, without_indexes};
pub use restore::RevisionDocument;

/// An existing task with its steps and its managed tasks.
#[derive(Clone, Debug)]
pub struct TaskTree {
    pub task: Task,
    pub steps: Vec<Step>,
    pub places: BTreeMap<StepId, Place>,
    /// The tasks that its observations manage, by id.
    pub managed: BTreeMap<TaskId, TaskTree>,
}

impl TaskTree {
    /// Its bytes in an export, at most.
    pub fn bytes(&self) -> usize {
        let own = exported_bytes(&self.task, &self.steps);
        let managed = self.managed.values().map(Self::bytes);
        managed.fold(own, usize::saturating_add)
    }
}

/// What the plan needs beside the document.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    pub write: &'a WriteContext,
    /// The task to update; `None` creates one.
    pub existing: Option<&'a TaskTree>,
    /// Tasks of the account that subtask steps of the document refer to.
    pub referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    /// What to do with existing steps that the document leaves out.
    pub absent_steps: AbsentSteps,
    /// What to do with fields of the existing task and its steps that the document leaves out.
    pub absent_fields: AbsentFields,
    /// What to do with subtask steps that refer to missing tasks.
    pub missing_subtasks: MissingSubtasks,
    /// Tasks that nobody manages and that the document's values with their ids manage again.
    pub unlinked: &'a BTreeMap<TaskId, &'a TaskTree>,
    /// Whether the plan has the guide after the import.
    pub shows_guide: bool,
}

impl<'a> ImportContext<'a> {
    /// What the plan of a guide needs that is not stored.
    pub fn of_new_guide(
        write: &'a WriteContext,
        referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    ) -> Self {
        static NO_TREES: BTreeMap<TaskId, &TaskTree> = BTreeMap::new();
        Self {
            write,
            existing: None,
            referenced,
            absent_steps: AbsentSteps::Refuse,
            absent_fields: AbsentFields::Keep,
            missing_subtasks: MissingSubtasks::NotFound,
            unlinked: &NO_TREES,
            shows_guide: false,
        }
    }
}

/// What an import writes and answers.
#[derive(Debug)]
pub struct ImportPlan {
    pub changes: Changes,
    pub imported: Imported,
    /// Where each task and step of the plan stands in the document.
    pub origins: Origins,
}

/// What an import or a restore does.
#[derive(Clone, Debug)]
pub struct Imported {
    pub task: Task,
    pub outcome: ImportOutcome,
    /// The etag of the guide afterwards.
    pub guide_etag: GuideEtag,
    /// The revision that keeps the guide as it was before; 0 if there is none. The plan makes none.
    pub previous_revision: i64,
    /// The guide afterwards, if it is wanted. Places of steps are left out.
    pub guide: Option<Box<TaskTree>>,
    /// Fields that were sent and not honored, as paths in the request.
    pub ignored: BTreeSet<String>,
    /// Subtask steps that are left out, by the document's ids.
    pub skipped: BTreeSet<StepId>,
    /// New ids of tasks and steps of a revision, by their ids in it.
    pub replaced: BTreeMap<Uuid, Uuid>,
}

/// What an import does with a guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    Created,
    Updated,
    /// It is as the document wants it: nothing is written.
    Unchanged,
}

/// Where a task or step stands in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin<Id> {
    /// Its id in the document; `None` if it has none.
    pub guid: Option<Id>,
    /// Its path in the request.
    pub path: DocumentPath,
}

impl<Id> Origin<Id> {
    /// The origin of a task or step that an import adds or keeps: the document does not list it.
    pub fn unlisted() -> Self {
        Self {
            guid: None,
            path: DocumentPath::Unlisted,
        }
    }
}

/// Where planned tasks and steps stand in a document, by the ids that they get.
#[derive(Debug, Default)]
pub struct Origins {
    pub tasks: BTreeMap<TaskId, Origin<TaskId>>,
    pub steps: BTreeMap<StepId, Origin<StepId>>,
}
