//! Maps the ids of files to the ids of the account. An id that the account does not have becomes
//! the external id of the new task or step.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
};

use crate::{
    cli::pairing::KnownSteps,
    domain::ids::TaskId,
    messages::managed_documents::{
        all_steps, for_each_step_mut, managed_document, managed_documents_mut, values, values_mut,
    },
    proto::v1::{Step, StepType, Task, TaskDocument},
};

/// The tasks that files refer to.
#[derive(Default)]
pub(in crate::cli) struct TaskIds {
    /// The account's ids by the ids in files.
    known: HashMap<String, String>,
    /// The files' ids of tasks that the account does not have yet.
    pending: BTreeSet<String>,
}

/// Whether a file describes the task.
pub(in crate::cli) fn describes(document: &TaskDocument, task: &Task) -> bool {
    let Some(said) = &document.task else {
        return false;
    };
    let external_id = match said.external_id() {
        "" => said.guid.as_str(),
        id => id,
    };
    said.guid.eq_ignore_ascii_case(&task.guid) && !said.guid.is_empty()
        || !external_id.is_empty() && external_id == task.external_id()
}

/// Turns the guids in the document of a new guide into external ids.
pub(super) fn make_external(document: &mut TaskDocument) {
    if let Some(task) = &mut document.task {
        keep_as_external_id(&task.guid, &mut task.external_id);
    }
    for_each_step_mut(&mut document.steps, &mut |step| {
        keep_as_external_id(&step.guid, &mut step.external_id);
    });
}

fn keep_as_external_id(guid: &str, external_id: &mut Option<String>) {
    if !guid.is_empty() && external_id.as_ref().is_none_or(String::is_empty) {
        *external_id = Some(guid.to_owned());
    }
}

impl TaskIds {
    /// The external ids of tasks that are ids of other accounts.
    pub fn from_external_ids(tasks: &[Task]) -> Self {
        let mut ids = Self::default();
        for task in tasks {
            ids.add(task.external_id(), &task.guid);
        }
        ids
    }

    /// Replaces the ids of a document with those of the account, and notes the ids of its tasks.
    /// Steps that the stored guide does not have are new. Steps without any id are found in `base`,
    /// the state that the file was made from.
    pub fn adopt(
        &mut self,
        document: &mut TaskDocument,
        stored: &TaskDocument,
        base: Option<&TaskDocument>,
    ) {
        let Some(known) = &stored.task else {
            return;
        };
        // The document of a managed task may have only steps.
        let task = document.task.get_or_insert_default();
        self.add(&task.guid, &known.guid);
        if task.guid != known.guid && known.parent_guid.is_empty() {
            keep_as_external_id(&task.guid, &mut task.external_id);
        }
        task.guid.clone_from(&known.guid);
        let steps = KnownSteps::new(stored);
        let (mut taken, mut others) = (BTreeSet::new(), Vec::new());
        for step in &mut document.steps {
            match steps.get(step) {
                Some(known) => {
                    taken.insert(known.guid.as_str());
                    self.adopt_step(step, known, base);
                }
                None => others.push(step),
            }
        }
        // The answers and the ids of their tasks are known now.
        let (unnamed, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|step| step.guid.is_empty() && step.external_id().is_empty());
        for step in others {
            keep_as_external_id(&step.guid, &mut step.external_id);
            let target = self.target(step);
            let mut wiring = stored.steps.iter();
            let wiring = wiring.find(|it| !it.link.is_empty() && it.link == target);
            step.guid = wiring.map_or_else(String::new, |it| it.guid.clone());
            taken.extend(wiring.map(|it| it.guid.as_str()));
        }
        // A step without any id is the next step of the same type and title without an external id.
        for step in unnamed {
            let target = self.target(step);
            let is_same = |known: &&Step| {
                known.r#type == step.r#type
                    && known.external_id.is_none()
                    && !taken.contains(known.guid.as_str())
                    && match step.r#type() {
                        StepType::Subtask => known.subtask_id == target,
                        _ => known.title == step.title,
                    }
            };
            let former = base.and_then(|base| base.steps.iter().find(is_same));
            let found = match former {
                Some(former) => stored.steps.iter().find(|it| it.guid == former.guid),
                None => stored.steps.iter().find(is_same),
            };
            taken.extend(former.or(found).map(|it| it.guid.as_str()));
            if let Some(known) = found {
                self.adopt_step(step, known, base);
            }
        }
    }

    /// The account's id of the task that a step refers to.
    fn target(&self, step: &Step) -> String {
        let named = self.known.get(&key(step.subtask_external_id()));
        let id = key(&step.subtask_id);
        let known = named.or_else(|| self.known.get(&id));
        known.cloned().unwrap_or(id)
    }

    fn adopt_step(&mut self, step: &mut Step, stored: &Step, base: Option<&TaskDocument>) {
        if step.guid != stored.guid {
            keep_as_external_id(&step.guid, &mut step.external_id);
        }
        step.guid.clone_from(&stored.guid);
        let base = base.and_then(|base| base.steps.iter().find(|it| it.guid == stored.guid));
        for value in values_mut(step) {
            if let Some(known) = values(stored).find(|known| known.key == value.key) {
                self.add(&value.link, &known.link);
                value.link.clone_from(&known.link);
            }
            if let Some(managed) = &mut value.task_json
                && let Some(stored) = managed_document(stored, &value.key)
            {
                let base = base.and_then(|base| managed_document(base, &value.key));
                self.adopt(managed, stored, base);
            }
        }
    }

    fn add(&mut self, id: &str, stored: &str) {
        if !id.is_empty() && !stored.is_empty() {
            self.known.insert(key(id), stored.to_owned());
        }
    }

    /// Notes that the tasks of a document do not exist yet.
    pub fn add_pending(&mut self, document: &TaskDocument) {
        self.pending.extend(document_ids(document));
    }

    /// Notes that the tasks of a document exist in the account.
    pub fn remove_pending(&mut self, document: &TaskDocument) {
        for id in document_ids(document) {
            self.pending.remove(&id);
        }
    }

    /// Makes the steps of a document refer to the account's tasks, if they exist.
    pub fn resolve(&self, document: &mut TaskDocument) {
        for_each_step_mut(&mut document.steps, &mut |step| {
            if let Some(id) = self.known.get(&key(&step.subtask_id)) {
                step.subtask_id.clone_from(id);
            }
        });
    }

    /// Removes the steps of a document that refer to tasks that do not exist yet. Returns the
    /// removed steps of its own task with their positions, and the number of removed steps of its
    /// managed tasks.
    pub fn take_pending(&self, document: &mut TaskDocument) -> (Vec<(usize, Step)>, usize) {
        self.take(document, &document_ids(document))
    }

    /// Whether steps of a document refer to tasks of other documents that do not exist yet.
    pub fn refers_to_pending(&self, document: &TaskDocument) -> bool {
        let own = document_ids(document);
        let mut steps = all_steps(&document.steps).into_iter();
        steps.any(|step| self.is_pending(step, &own))
    }

    fn is_pending(&self, step: &Step, own: &BTreeSet<String>) -> bool {
        let name = named_task(step);
        !own.contains(&name) && self.pending.contains(&name)
    }

    /// `own` are the ids of the whole guide at every depth.
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

/// Inserts removed steps into the guide after a dry run.
pub(super) fn put_back(
    pending: Vec<(usize, Step)>,
    stored: Option<&TaskDocument>,
    after: &mut TaskDocument,
) {
    for (index, step) in pending {
        let mut known = stored.into_iter().flat_map(|stored| &stored.steps);
        let step = match known.find(|it| it.guid == step.guid) {
            Some(known) => Step {
                subtask_id: step.subtask_id,
                subtask_pid: step.subtask_pid,
                subtask_external_id: step.subtask_external_id,
                ..known.clone()
            },
            None => step,
        };
        after.steps.insert(index.min(after.steps.len()), step);
    }
}

/// An id as a lookup key. The case of guids does not matter, unlike that of external ids.
fn key(id: &str) -> String {
    TaskId::parse(id).map_or_else(|| id.to_owned(), |guid| guid.to_string())
}

/// How a subtask step names its task: by external id, or else by id.
pub(super) fn named_task(step: &Step) -> String {
    match step.subtask_external_id() {
        "" => key(&step.subtask_id),
        id => named(id),
    }
}

/// An external id, marked to distinguish it from an id.
pub(super) fn named(external_id: &str) -> String {
    format!("external id {external_id}")
}

/// The ids of a document's task and its managed tasks, and the external id of the task.
fn document_ids(document: &TaskDocument) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    if let Some(task) = &document.task {
        ids.insert(key(&task.guid));
        ids.extend(task.external_id.as_deref().map(named));
    }
    let mut add = |id: &str| ids.insert(key(id));
    for value in all_steps(&document.steps).into_iter().flat_map(values) {
        add(&value.link);
        let managed = value.task_json.as_ref().and_then(|it| it.task.as_ref());
        if let Some(task) = managed {
            add(&task.guid);
        }
    }
    ids.remove("");
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_are_the_same_in_either_case_and_external_ids_are_not() {
        for (id, found) in [
            (
                "01A20006-4F3B-7D2F-8A4C-B9BF03C0C9D8",
                "01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d8",
            ),
            (
                "01A200064F3B7D2F8A4CB9BF03C0C9D8",
                "01A200064F3B7D2F8A4CB9BF03C0C9D8",
            ),
            ("X", "X"),
        ] {
            assert_eq!(key(id), found);
        }
    }
}
