//! References between the guides of a directory. Their subtask steps name tasks by the ids
//! that the documents use, which may be those of another account.

use std::collections::BTreeSet;

use crate::{
    cli::matching::TaskIds,
    messages::managed_documents::{managed_documents, managed_documents_mut},
    proto::v1::{Step, TaskDocument},
};

/// The tasks that documents refer to.
#[derive(Default)]
pub(super) struct References {
    /// The account's ids by those of the documents.
    pub ids: TaskIds,
    /// The documents' ids of tasks that the account does not have yet.
    pending: BTreeSet<String>,
}

/// How many steps of a document refer to tasks that are yet to be created.
pub(super) struct PendingSteps {
    /// Steps of the document's own task.
    pub of_task: usize,
    /// Steps of the tasks that it manages.
    of_managed: usize,
}

impl PendingSteps {
    pub fn is_empty(&self) -> bool {
        self.of_task + self.of_managed == 0
    }
}

impl References {
    /// Notes that the tasks of a document are yet to be created.
    pub fn add_pending(&mut self, document: &TaskDocument) {
        self.pending.extend(ids_of(document));
    }

    /// Notes that the tasks of a document are in the account.
    pub fn remove_pending(&mut self, document: &TaskDocument) {
        for id in ids_of(document) {
            self.pending.remove(&id);
        }
    }

    /// Makes the steps of a document refer to the account's tasks, where it has them.
    pub fn resolve(&self, document: &mut TaskDocument) {
        for step in &mut document.steps {
            if let Some(id) = self.ids.get(&step.subtask_id.to_ascii_lowercase()) {
                step.subtask_id.clone_from(id);
            }
            for document in managed_documents_mut(step) {
                self.resolve(document);
            }
        }
    }

    /// Takes the steps out of a document that refer to tasks which are yet to be created.
    /// Returns those of the document itself with their places, and how many there are of the tasks
    /// that it manages.
    pub fn take_pending(&self, document: &mut TaskDocument) -> (Vec<(usize, Step)>, usize) {
        let own = ids_of(document);
        let steps = document.steps.iter().cloned().enumerate();
        let pending = steps
            .filter(|(_, step)| self.is_pending(step, &own))
            .collect();
        let left_out = self.leave_out(document, &own);
        (pending, left_out.of_managed)
    }

    /// Whether steps of a document refer to tasks of others that are yet to be created.
    pub fn refers_to_pending(&self, document: &TaskDocument) -> bool {
        self.has_pending(document, &ids_of(document))
    }

    fn has_pending(&self, document: &TaskDocument, own: &BTreeSet<String>) -> bool {
        document.steps.iter().any(|step| {
            let mut managed = managed_documents(step);
            self.is_pending(step, own) || managed.any(|(_, it)| self.has_pending(it, own))
        })
    }

    /// Takes the steps out of a document that refer to tasks which are yet to be created.
    pub fn leave_out_pending(&self, document: &mut TaskDocument) -> PendingSteps {
        let own = ids_of(document);
        self.leave_out(document, &own)
    }

    fn is_pending(&self, step: &Step, own: &BTreeSet<String>) -> bool {
        let id = step.subtask_id.to_ascii_lowercase();
        !own.contains(&id) && self.pending.contains(&id)
    }

    fn leave_out(&self, document: &mut TaskDocument, own: &BTreeSet<String>) -> PendingSteps {
        let before = document.steps.len();
        document.steps.retain(|step| !self.is_pending(step, own));
        let mut left_out = PendingSteps {
            of_task: before - document.steps.len(),
            of_managed: 0,
        };
        for document in document.steps.iter_mut().flat_map(managed_documents_mut) {
            let PendingSteps {
                of_task,
                of_managed,
            } = self.leave_out(document, own);
            left_out.of_managed += of_task + of_managed;
        }
        left_out
    }
}

/// Puts steps that were taken out back into the guide after a dry run.
pub(super) fn put_back(
    pending: Vec<(usize, Step)>,
    stored: &TaskDocument,
    after: &mut TaskDocument,
) {
    for (index, step) in pending {
        let mut of_guide = stored.steps.iter();
        let former = of_guide.find(|stored| stored.guid == step.guid);
        let step = match former.cloned() {
            Some(former) => Step {
                subtask_id: step.subtask_id,
                subtask_pid: step.subtask_pid,
                ..former
            },
            None => step,
        };
        after.steps.insert(index.min(after.steps.len()), step);
    }
}

/// The ids of a document's task and of those that it manages.
fn ids_of(document: &TaskDocument) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    add_ids(document, &mut ids);
    ids.remove("");
    ids
}

fn add_ids(document: &TaskDocument, ids: &mut BTreeSet<String>) {
    ids.extend(document.task.iter().map(|it| it.guid.to_ascii_lowercase()));
    let configs = document.steps.iter().flat_map(|it| &it.feedback_config);
    for value in configs.flat_map(|config| &config.values) {
        ids.insert(value.link.to_ascii_lowercase());
        if let Some(document) = &value.task_json {
            add_ids(document, ids);
        }
    }
}
