//! References between the guides of a directory. Their subtask steps name tasks by the ids
//! that the documents use, which may be those of another account.

use std::{collections::BTreeSet, mem};

use crate::{
    cli::matching::TaskIds,
    messages::managed_documents::{all_steps, for_each_step_mut, managed_documents_mut},
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
        for_each_step_mut(&mut document.steps, &mut |step| {
            if let Some(id) = self.ids.get(&step.subtask_id.to_ascii_lowercase()) {
                step.subtask_id.clone_from(id);
            }
        });
    }

    /// Takes the steps out of a document that refer to tasks which are yet to be created.
    /// Returns those of the document itself with their places, and how many there are of the tasks
    /// that it manages.
    pub fn take_pending(&self, document: &mut TaskDocument) -> (Vec<(usize, Step)>, usize) {
        self.take(document, &ids_of(document))
    }

    /// Whether steps of a document refer to tasks of others that are yet to be created.
    pub fn refers_to_pending(&self, document: &TaskDocument) -> bool {
        let own = ids_of(document);
        let mut steps = all_steps(&document.steps).into_iter();
        steps.any(|step| self.is_pending(step, &own))
    }

    fn is_pending(&self, step: &Step, own: &BTreeSet<String>) -> bool {
        let id = step.subtask_id.to_ascii_lowercase();
        !own.contains(&id) && self.pending.contains(&id)
    }

    /// Takes the pending steps out. `own` are the ids of the whole guide at every depth.
    fn take(
        &self,
        document: &mut TaskDocument,
        own: &BTreeSet<String>,
    ) -> (Vec<(usize, Step)>, usize) {
        let steps = mem::take(&mut document.steps).into_iter().enumerate();
        let (pending, kept): (Vec<_>, Vec<_>) =
            steps.partition(|(_, step)| self.is_pending(step, own));
        document.steps = kept.into_iter().map(|(_, step)| step).collect();
        let mut of_managed = 0;
        for managed in document.steps.iter_mut().flat_map(managed_documents_mut) {
            let (pending, below) = self.take(managed, own);
            of_managed += pending.len() + below;
        }
        (pending, of_managed)
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
    let of_task = document.task.iter().map(|it| it.guid.to_ascii_lowercase());
    let mut ids: BTreeSet<String> = of_task.collect();
    let steps = all_steps(&document.steps).into_iter();
    let configs = steps.flat_map(|step| &step.feedback_config);
    for value in configs.flat_map(|config| &config.values) {
        ids.insert(value.link.to_ascii_lowercase());
        let managed = value.task_json.iter().filter_map(|it| it.task.as_ref());
        ids.extend(managed.map(|task| task.guid.to_ascii_lowercase()));
    }
    ids.remove("");
    ids
}
