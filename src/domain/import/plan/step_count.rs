//! The number of a task's steps after an import, counted before anything is planned.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    ids::{StepId, TaskId},
    import::{AbsentSteps, DocumentStep, TaskTree},
    link::{linked_tasks, links_by_key},
    step::Step,
};

use super::wiring::{ListedWiringSteps, WiringStep};

/// How many steps a task will have: those that are listed, that are added to wire its managed
/// tasks, and that are kept. It is what [`super::Planner::plan_steps`] returns, if the steps
/// are valid.
pub(super) fn count_steps(
    documents: &[DocumentStep],
    existing: Option<&TaskTree>,
    absent: AbsentSteps,
) -> usize {
    let stored: &[Step] = existing.map_or(&[], |tree| &tree.steps);
    let mut counter = StepCounter::new(stored);
    let listed = listed_steps(documents, existing);
    for (document, before) in &listed {
        counter.add_listed(document, *before);
    }
    for (document, before) in &listed {
        counter.add_unlisted(document, *before, existing);
    }
    let StepCounter { present, count, .. } = counter;
    match absent {
        AbsentSteps::Keep => {
            let is_absent = |step: &&Step| !present.contains(&step.guid);
            count + stored.iter().filter(is_absent).count()
        }
        AbsentSteps::Refuse | AbsentSteps::Delete => count,
    }
}

/// The valid steps of a document, each with the stored one that it updates.
fn listed_steps<'d, 'a>(
    documents: &'d [DocumentStep],
    existing: Option<&'a TaskTree>,
) -> Vec<(&'d DocumentStep, Option<&'a Step>)> {
    let stored: BTreeMap<StepId, &Step> = existing
        .iter()
        .flat_map(|tree| &tree.steps)
        .map(|step| (step.guid, step))
        .collect();
    let listed = documents.iter().filter_map(|document| {
        let updated = document.guid.filter(|_| existing.is_some());
        match updated {
            Some(guid) => Some((document, Some(*stored.get(&guid)?))),
            None => document.new.is_ok().then_some((document, None)),
        }
    });
    listed.collect()
}

struct StepCounter {
    count: usize,
    /// The stored steps that are counted.
    present: BTreeSet<StepId>,
    wiring: ListedWiringSteps,
    /// The stored wiring steps, by managed task.
    stored_wiring: BTreeMap<TaskId, StepId>,
}

impl StepCounter {
    fn new(stored: &[Step]) -> Self {
        let wiring = stored
            .iter()
            .filter_map(|step| Some((step.link?, step.guid)));
        Self {
            count: 0,
            present: BTreeSet::new(),
            wiring: ListedWiringSteps::default(),
            stored_wiring: wiring.collect(),
        }
    }

    fn add_listed(&mut self, document: &DocumentStep, before: Option<&Step>) {
        let index = self.count;
        self.count += 1;
        match before {
            Some(before) => {
                self.present.insert(before.guid);
                if let Some(task) = before.link {
                    self.wiring.add_linked(task);
                }
            }
            None => {
                let new = document.new.as_ref().ok();
                if let Some(subtask) = new.and_then(|new| new.kind.subtask()) {
                    self.wiring.add_new(index, document.link, subtask.task);
                }
            }
        }
    }

    /// Adds the wiring steps of the tasks that a step manages, unless the document lists them.
    fn add_unlisted(
        &mut self,
        document: &DocumentStep,
        before: Option<&Step>,
        existing: Option<&TaskTree>,
    ) {
        let new = document.new.as_ref().ok();
        let kind = before.map(|step| &step.kind);
        let kind = kind.or_else(|| new.map(|new| &new.kind));
        // Only the questions of observations manage tasks.
        let Some(former) = kind.and_then(|kind| kind.observation_feedback()) else {
            return;
        };
        let Some(question) = document.question(before) else {
            linked_tasks(former).for_each(|task| self.add_managed(Some(task), &[]));
            return;
        };
        if !question.linked {
            return;
        }
        let links = links_by_key(former);
        let mut values = document.values.iter();
        for value in &question.values {
            let ids = values.next().map_or(&[][..], |value| &value.ids);
            let link = links.get(&value.key).copied();
            let is_stored =
                |task: &TaskId| existing.is_some_and(|tree| tree.managed.contains_key(task));
            self.add_managed(link.filter(is_stored), ids);
        }
    }

    /// Adds the wiring step of a managed task, unless it is listed. `task` is the id of a
    /// stored one.
    fn add_managed(&mut self, task: Option<TaskId>, in_document: &[TaskId]) {
        match self.wiring.take(task, in_document) {
            WiringStep::Linked => return,
            WiringStep::New(_) => {}
            WiringStep::Unlisted => self.count += 1,
        }
        let stored = task.and_then(|task| self.stored_wiring.get(&task));
        self.present.extend(stored);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use uuid::Uuid;

    use super::*;
    use crate::domain::{
        decide::WriteContext,
        error::Error,
        feedback::{Feedback, FeedbackValue},
        ids::{AccountId, ProductId},
        import::{Document, DocumentValue, ImportContext, plan},
        step::{Cost, NewStep, StepContent, StepKind, StepType},
        text::{Label, Name},
        time::Timestamp,
    };

    thread_local! {
        static IDS: Cell<usize> = const { Cell::new(0) };
    }

    fn counted_id() -> Uuid {
        IDS.set(IDS.get() + 1);
        Uuid::now_v7()
    }

    fn label(text: &str) -> Label {
        Label::parse(text.to_owned()).expect("a label")
    }

    /// An observation that manages this many tasks.
    fn observation(tasks: usize) -> DocumentStep {
        let value = |key: usize| FeedbackValue {
            key: label(&key.to_string()),
            value: label("A"),
            link: None,
        };
        let feedback = Feedback {
            name: label("it"),
            linked: true,
            values: (0..tasks).map(value).collect(),
        };
        let new = NewStep {
            task: TaskId(Uuid::nil()),
            product: ProductId::new(1).expect("a product"),
            title: "What is it?".to_owned(),
            kind: StepKind::new(StepType::Observation, Cost::default(), Some(feedback), None)
                .expect("an observation"),
            content: StepContent::default(),
        };
        DocumentStep {
            path: "document.steps[0]".to_owned(),
            guid: None,
            task: None,
            link: None,
            step_type: Some(StepType::Observation),
            product: None,
            title: None,
            new: Ok(Box::new(new)),
            patch: None,
            values: (0..tasks).map(|_| DocumentValue::default()).collect(),
        }
    }

    /// Plans the import of a guide, and returns how many ids were made for it.
    fn ids_of_plan(steps: Vec<DocumentStep>) -> (Result<(), Error>, usize) {
        let name = Name::parse("Guide".to_owned()).expect("a name");
        let product = ProductId::new(1).expect("a product");
        let path = "document".to_owned();
        let document = Document {
            steps,
            ..Document::for_value(path, name, product)
        };
        let write = WriteContext {
            account: AccountId::parse("42").expect("an account"),
            subject: String::new(),
            now: Timestamp(1),
            new_id: counted_id,
            max_message_bytes: 1 << 20,
            automatic_revisions: 0,
            keeps_deleted_tasks: false,
        };
        IDS.set(0);
        let planned = plan(
            &document,
            ImportContext::of_new_guide(&write, &BTreeMap::new()),
        );
        (planned.map(|_| ()), IDS.get())
    }

    #[test]
    fn too_many_steps_are_refused_before_a_managed_task_is_planned() {
        // A task with ten steps, and a task and a step for each of 999 values.
        let (planned, ids) = ids_of_plan(vec![observation(999); 10]);
        assert!(planned.is_ok(), "{planned:?}");
        assert_eq!(ids, 1 + 10 + 2 * 9_990);
        // A task with eleven steps, and nothing for their values.
        let (planned, ids) = ids_of_plan(vec![observation(999); 11]);
        assert!(matches!(planned, Err(Error::Invalid(_))), "{planned:?}");
        assert_eq!(ids, 1 + 11);
    }
}
