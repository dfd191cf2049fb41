//! Wiring steps: each managed task has exactly one, in the task of the observation
//! that manages it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::domain::{
    ids::TaskId,
    import::{AbsentFields, DocumentPath, Origin},
    step::{NewStep, Step, StepContent, StepKind, SubtaskRef},
};

use super::{ManagedTaskIds, PlannedStep, Planner, SubtaskReference};

impl<'a> Planner<'a> {
    /// Gives every managed task its wiring step. A step that the document lists for it
    /// keeps its place; the others follow their observation, in value order.
    pub(super) fn place_wiring_steps(
        &mut self,
        mut steps: Vec<PlannedStep<'a>>,
        stored: &'a [Step],
    ) -> Vec<PlannedStep<'a>> {
        let stored: BTreeMap<TaskId, &'a Step> = stored
            .iter()
            .filter_map(|step| Some((step.link?, step)))
            .collect();
        let mut listed = ListedWiringSteps::default();
        for (index, step) in steps.iter().enumerate() {
            if let Some(task) = step.after.link {
                listed.add_linked(task);
            } else if let Some(reference) = &step.reference
                // A stored step becomes one only if it is listed as one, as after it was unlinked.
                && (step.before.is_none() || step.document_link.is_some())
            {
                listed.add_new(index, step.document_link, reference.task);
            }
        }
        let managed: Vec<Vec<ManagedTaskIds>> = steps
            .iter_mut()
            .map(|step| std::mem::take(&mut step.managed))
            .collect();
        let mut added: BTreeMap<usize, Vec<PlannedStep<'a>>> = BTreeMap::new();
        for (observation, ids) in managed.into_iter().enumerate() {
            for ids in ids {
                let found = listed.take(ids.stored, &ids.in_document);
                let stored = stored.get(&ids.stored).copied();
                let unlisted = self.find_or_add_wiring_step(
                    &mut steps,
                    observation,
                    ids.stored,
                    found,
                    stored,
                );
                if let Some(step) = &unlisted {
                    let origin = Origin {
                        guid: None,
                        path: DocumentPath::OfValue(ids.value_path),
                    };
                    self.origins.steps.insert(step.after.guid, origin);
                }
                added.entry(observation).or_default().extend(unlisted);
            }
        }
        let mut placed = Vec::with_capacity(steps.len());
        for (index, step) in steps.into_iter().enumerate() {
            placed.push(step);
            placed.extend(added.remove(&index).unwrap_or_default());
        }
        placed
    }

    /// Makes a listed step the wiring step of a managed task, or returns one that the
    /// document does not list.
    fn find_or_add_wiring_step(
        &self,
        steps: &mut [PlannedStep<'a>],
        observation: usize,
        task: TaskId,
        found: WiringStep,
        stored: Option<&'a Step>,
    ) -> Option<PlannedStep<'a>> {
        let listed = match found {
            WiringStep::Linked => return None,
            WiringStep::New(index) => steps
                .get_mut(index)
                // One stored step does not become another one.
                .filter(|step| stored.is_none() || step.before.is_none()),
            WiringStep::Unlisted => None,
        };
        let Some(listed) = listed else {
            let observation = &steps.get(observation)?.after;
            return Some(match (stored, self.absent_fields) {
                (Some(step), AbsentFields::Keep) => PlannedStep::unchanged(step),
                (Some(step), AbsentFields::Reset) => PlannedStep::without_fields(step),
                (None, _) => self.new_wiring_step(task, observation),
            });
        };
        match stored {
            None => listed.after.link = Some(task),
            Some(step) => {
                // The document lists the stored step without its id.
                let sent = std::mem::replace(&mut *listed.after, step.clone());
                listed.after.content = sent.content;
                let question = sent.kind.into_feedback();
                if question.is_some() || self.absent_fields == AbsentFields::Reset {
                    listed.after.kind.set_feedback(question);
                }
                listed.before = Some(step);
            }
        }
        None
    }

    fn new_wiring_step(&self, task: TaskId, observation: &Step) -> PlannedStep<'a> {
        let subtask = SubtaskRef {
            task,
            product: observation.product,
        };
        let new = NewStep {
            task: observation.task,
            product: observation.product,
            // The title is set when references are resolved.
            title: String::new(),
            kind: StepKind::of_subtask(subtask),
            content: StepContent::default(),
        };
        let after = Step {
            link: Some(task),
            ..Step::create(new, self.write)
        };
        PlannedStep::new(None, after, Some(SubtaskReference::to(task)))
    }
}

/// The listed steps of a task that are wiring steps or may become one. They are found by
/// id, so that no managed task takes a scan of all steps.
#[derive(Default)]
struct ListedWiringSteps {
    /// The managed tasks that have a listed wiring step.
    linked: BTreeSet<TaskId>,
    /// The indexes of new subtask steps, by the task that their `link` names.
    links: BTreeMap<TaskId, VecDeque<usize>>,
    /// The indexes of those without `link`, by the task that they refer to.
    references: BTreeMap<TaskId, VecDeque<usize>>,
}

/// The wiring step of a managed task.
enum WiringStep {
    /// A listed step that is linked to the task already.
    Linked,
    /// The new step at this index of the listed ones.
    New(usize),
    /// One that the document does not list.
    Unlisted,
}

impl ListedWiringSteps {
    /// Adds the stored wiring step of a managed task.
    fn add_linked(&mut self, task: TaskId) {
        self.linked.insert(task);
    }

    /// Adds a subtask step without a wired task. `link` and `reference` are the document's ids of
    /// its tasks. Steps are added in their order.
    fn add_new(&mut self, index: usize, link: Option<TaskId>, reference: TaskId) {
        let steps = match link {
            Some(task) => self.links.entry(task),
            None => self.references.entry(reference),
        };
        steps.or_default().push_back(index);
    }

    /// Finds the wiring step of a managed task, and takes it if it is new: the first whose
    /// `link` names the task, or else the first without `link` that refers to it. `in_document` are
    /// the document's ids of the task.
    fn take(&mut self, stored: TaskId, in_document: &[TaskId]) -> WiringStep {
        if self.linked.contains(&stored) {
            return WiringStep::Linked;
        }
        let ids = || in_document.iter().copied().chain([stored]);
        let found =
            take_first(&mut self.links, ids()).or_else(|| take_first(&mut self.references, ids()));
        match found {
            Some(index) => {
                self.linked.insert(stored);
                WiringStep::New(index)
            }
            None => WiringStep::Unlisted,
        }
    }
}

/// Takes the first of all steps that are kept for the tasks.
fn take_first(
    steps: &mut BTreeMap<TaskId, VecDeque<usize>>,
    tasks: impl Iterator<Item = TaskId>,
) -> Option<usize> {
    let first = tasks.filter_map(|task| Some((*steps.get(&task)?.front()?, task)));
    let (_, task) = first.min()?;
    steps.get_mut(&task)?.pop_front()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};
    use uuid::Uuid;

    use super::*;

    /// A listed step.
    #[derive(Clone, Debug)]
    enum Listed {
        Linked(TaskId),
        New {
            link: Option<TaskId>,
            reference: TaskId,
        },
    }

    fn task() -> impl Strategy<Value = TaskId> {
        (0..6_u128).prop_map(|id| TaskId(Uuid::from_u128(id)))
    }

    fn listed() -> impl Strategy<Value = Listed> {
        prop_oneof![
            1 => task().prop_map(Listed::Linked),
            4 => (option::of(task()), task())
                .prop_map(|(link, reference)| Listed::New { link, reference }),
        ]
    }

    /// The index of the wiring step in the list.
    fn scan(steps: &[Listed], task: Option<TaskId>, ids: &[TaskId]) -> Option<usize> {
        let names = |id: &TaskId| Some(*id) == task || ids.contains(id);
        let linked = |step: &Listed| matches!(step, Listed::Linked(to) if Some(*to) == task);
        let links = |step: &Listed| matches!(step, Listed::New { link: Some(to), .. } if names(to));
        let refers = |step: &Listed| matches!(step, Listed::New { link: None, reference } if names(reference));
        let first = |is: &dyn Fn(&Listed) -> bool| steps.iter().position(is);
        first(&linked)
            .or_else(|| first(&links))
            .or_else(|| first(&refers))
    }

    proptest! {
        #[test]
        fn the_first_step_that_names_a_task_wires_it(
            mut steps in vec(listed(), 0..8),
            managed in vec((task(), vec(task(), 0..3)), 0..8),
        ) {
            let mut found = ListedWiringSteps::default();
            for (index, step) in steps.iter().enumerate() {
                match step {
                    Listed::Linked(task) => found.add_linked(*task),
                    Listed::New { link, reference } => found.add_new(index, *link, *reference),
                }
            }
            for (task, ids) in managed {
                let expected = scan(&steps, Some(task), &ids);
                match found.take(task, &ids) {
                    WiringStep::Linked => {
                        let step = expected.and_then(|index| steps.get(index));
                        prop_assert!(matches!(step, Some(Listed::Linked(_))));
                    }
                    WiringStep::New(index) => {
                        prop_assert_eq!(expected, Some(index));
                        steps[index] = Listed::Linked(task);
                    }
                    WiringStep::Unlisted => prop_assert_eq!(expected, None),
                }
            }
        }
    }
}
