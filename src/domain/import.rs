//! Imports and restores: the guide that a document or a revision wants, and how the stored one
//! differs from it.

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
mod wanted;

pub use document::{
    AbsentFields, AbsentSteps, Document, DocumentStep, DocumentTask, DocumentValue, GuideDocument,
    ImportDocument, ImportTarget, StepFields, SubtaskIds, without_indexes,
};
pub use plan::{Absent, plan};
pub use restore::Restore;

/// A task with its steps and its managed tasks.
#[derive(Clone, Debug)]
pub struct TaskTree {
    pub task: Task,
    pub steps: Vec<Step>,
    /// Empty if they are not known.
    pub places: BTreeMap<StepId, Place>,
    /// The tasks that its observations manage.
    pub managed: BTreeMap<TaskId, TaskTree>,
}

impl TaskTree {
    /// The tree and all trees below it, the outermost first.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut index = 0;
        while let Some(tree) = all.get(index).copied() {
            all.extend(tree.managed.values());
            index += 1;
        }
        all
    }

    /// Visits all steps, and removes those for which `keep` is false.
    pub fn retain_steps(&mut self, keep: &mut impl FnMut(&mut Step) -> bool) {
        self.steps.retain_mut(&mut *keep);
        for tree in self.managed.values_mut() {
            tree.retain_steps(keep);
        }
    }

    /// Its bytes in an export, at most.
    pub fn bytes(&self) -> usize {
        let trees = self.all().into_iter();
        let bytes = trees.map(|tree| exported_bytes(&tree.task, &tree.steps));
        bytes.fold(0, usize::saturating_add)
    }
}

/// What an import or a restore reads.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    pub write: &'a WriteContext,
    /// The task to update; `None` creates one.
    pub existing: Option<&'a TaskTree>,
    /// Tasks of the account that subtask steps refer to.
    pub referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    /// Whether the plan has the guide after the import.
    pub shows_guide: bool,
}

impl<'a> ImportContext<'a> {
    /// For a guide that is not stored.
    pub fn for_new_guide(
        write: &'a WriteContext,
        referenced: &'a BTreeMap<TaskId, ReferencedTask>,
    ) -> Self {
        Self {
            write,
            existing: None,
            referenced,
            shows_guide: false,
        }
    }
}

#[derive(Debug)]
pub struct ImportPlan {
    pub changes: Changes,
    pub imported: Imported,
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
    /// The guide afterwards, if it is wanted.
    pub guide: Option<Box<TaskTree>>,
    /// Fields that were sent and not honored, as paths in the request.
    pub ignored: BTreeSet<String>,
    /// Subtask steps that are left out, by their ids in the revision.
    pub skipped: BTreeSet<StepId>,
    /// New ids of tasks and steps of a revision, by their ids in it.
    pub replaced: BTreeMap<Uuid, Uuid>,
}

/// The values are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    Created = 1,
    Updated = 2,
    /// The guide is as it is wanted: nothing is written.
    Unchanged = 3,
}

/// Where a task or step stands in a document.
#[derive(Clone, Debug)]
pub struct Origin<Id> {
    /// Its id in the document; `None` if it has none.
    pub guid: Option<Id>,
    /// Its path in the request: `document.task` or `document.steps[3]`.
    pub path: String,
    /// Whether the import adds it for a value, as a wiring step or as a task without a document. Then the
    /// path is that of the value.
    pub is_added_for_value: bool,
}

impl<Id> Origin<Id> {
    /// The path of a field in the request; an empty `field` is the task or step itself.
    pub fn field_path(&self, field: &str) -> String {
        if self.is_added_for_value || field.is_empty() {
            self.path.clone()
        } else {
            format!("{}.{field}", self.path)
        }
    }
}

/// Where tasks and steps stand in a document, by the ids that they get.
#[derive(Debug, Default)]
pub struct Origins {
    pub tasks: BTreeMap<TaskId, Origin<TaskId>>,
    pub steps: BTreeMap<StepId, Origin<StepId>>,
}
