//! Wiring steps: each managed task has exactly one, in the task of the observation
//! that manages it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::domain::{
    ids::TaskId,
    import::{AbsentFields, DocumentPath, Origin},
    step::{NewStep, Step, StepContent, StepKind, SubtaskRef},
};

use super::{ManagedTask, PlannedStep, Planner};

impl<'a> Planner<'a> {
    /// Gives every managed task its wiring step. A step that the document lists for it
    /// keeps its place; the others follow their observation, in value order.
    pub(super) fn place_wiring_steps(
        &mut self,
        mut steps: Vec<PlannedStep<'a>>,
        stored: &'a [Step],
    ) -> Vec<PlannedStep<'a>> {
        let stored = stored.iter().filter_map(|step| Some((step.link?, step)));
        let stored: BTreeMap<TaskId, &'a Step> = stored.collect();
        let mut listed = ListedSteps::of(&steps);
        let managed: Vec<Vec<ManagedTask>> = steps
            .iter_mut()
            .map(|step| std::mem::take(&mut step.managed))
            .collect();
        let mut added: BTreeMap<usize, Vec<PlannedStep<'a>>> = BTreeMap::new();
        for (observation, tasks) in managed.into_iter().enumerate() {
            for task in tasks {
                if listed.linked.contains(&task.id) {
                    continue;
                }
                let stored = stored.get(&task.id).copied();
                let step = listed.take(&task).and_then(|index| steps.get_mut(index));
                // One stored step does not become another one.
                match step.filter(|step| stored.is_none() || step.before.is_none()) {
                    Some(step) => self.wire(step, task.id, stored),
                    None => {
                        let observation_step = steps.get(observation).map(|step| &step.after);
                        let step = observation_step.map(|it| self.unlisted(task, it, stored));
                        added.entry(observation).or_default().extend(step);
                    }
                }
            }
        }
        let mut placed = Vec::with_capacity(steps.len());
        for (index, step) in steps.into_iter().enumerate() {
            placed.push(step);
            placed.extend(added.remove(&index).unwrap_or_default());
        }
        placed
    }

    /// Makes a listed step the wiring step of a task. If it is stored, the document lists it without its
    /// id.
    fn wire(&self, listed: &mut PlannedStep<'a>, task: TaskId, stored: Option<&'a Step>) {
        let Some(step) = stored else {
            listed.after.link = Some(task);
            return;
        };
        let sent = std::mem::replace(&mut *listed.after, step.clone());
        listed.after.content = sent.content;
        let question = sent.kind.into_feedback();
        if question.is_some() || self.context.absent_fields == AbsentFields::Reset {
            listed.after.kind.set_feedback(question);
        }
        listed.before = Some(step);
        listed.origin = Origin::unlisted();
    }

    /// A wiring step that the document does not list.
    fn unlisted(
        &self,
        managed: ManagedTask,
        observation: &Step,
        stored: Option<&'a Step>,
    ) -> PlannedStep<'a> {
        let step = match (stored, self.context.absent_fields) {
            (Some(step), AbsentFields::Keep) => PlannedStep::unchanged(step),
            (Some(step), AbsentFields::Reset) => PlannedStep::without_fields(step),
            (None, _) => {
                let (task, product) = (managed.id, observation.product);
                let new = NewStep {
                    task: observation.task,
                    product,
                    // The title is set when references are resolved.
                    title: String::new(),
                    kind: StepKind::of_subtask(SubtaskRef { task, product }),
                    content: StepContent::default(),
                };
                let after = Step {
                    link: Some(task),
                    ..Step::create(new, self.context.write)
                };
                PlannedStep::unlisted(None, after)
            }
        };
        let path = DocumentPath::OfValue(managed.value_path);
        PlannedStep {
            origin: Origin { guid: None, path },
            ..step
        }
    }
}

/// How a listed subtask step names the managed task whose wiring step it may become. `Link` goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Link,
    Subtask,
}

/// The listed steps of a task that are wiring steps or may become one. They are found by
/// id, so that no managed task takes a scan of all steps.
#[derive(Default)]
struct ListedSteps {
    /// The managed tasks that have a listed wiring step.
    linked: BTreeSet<TaskId>,
    /// The indexes of steps that may become one, in their order, by the document's id of a task that they
    /// name.
    named: BTreeMap<(Named, TaskId), VecDeque<usize>>,
}

impl ListedSteps {
    fn of(steps: &[PlannedStep<'_>]) -> Self {
        let mut listed = Self::default();
        for (index, step) in steps.iter().enumerate() {
            let link = step.document.and_then(|document| document.link);
            if let Some(task) = step.after.link {
                listed.linked.insert(task);
            } else if let Some(subtask) = step.after.kind.subtask()
                // A stored step becomes one only if it is listed as one, as after it was unlinked.
                && (step.before.is_none() || link.is_some())
            {
                listed.add(index, link, subtask.task);
            }
        }
        listed
    }

    /// Adds a step that may become a wiring step. `link` and `subtask` are the document's ids of its tasks.
    fn add(&mut self, index: usize, link: Option<TaskId>, subtask: TaskId) {
        let name = match link {
            Some(task) => (Named::Link, task),
            None => (Named::Subtask, subtask),
        };
        self.named.entry(name).or_default().push_back(index);
    }

    /// Takes the first step whose `link` names a task, or else the first without `link` that refers
    /// to it.
    fn take(&mut self, task: &ManagedTask) -> Option<usize> {
        [Named::Link, Named::Subtask].into_iter().find_map(|name| {
            let names = task.in_document.iter().map(|id| (name, *id));
            let first = names.filter_map(|name| Some((*self.named.get(&name)?.front()?, name)));
            let (_, name) = first.min()?;
            self.named.get_mut(&name)?.pop_front()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};
    use uuid::Uuid;

    use super::*;

    fn task() -> impl Strategy<Value = TaskId> {
        (0..6_u128).prop_map(|id| TaskId(Uuid::from_u128(id)))
    }

    proptest! {
        #[test]
        fn the_first_step_that_names_a_task_wires_it(
            steps in vec((option::of(task()), task()), 0..8),
            managed in vec(vec(task(), 1..3), 0..8),
        ) {
            let mut listed = ListedSteps::default();
            for (index, (link, subtask)) in steps.iter().enumerate() {
                listed.add(index, *link, *subtask);
            }
            let mut left: Vec<_> = steps.into_iter().map(Some).collect();
            for in_document in managed {
                let first = |names: &dyn Fn(Option<TaskId>, TaskId) -> bool| {
                    let names = |(link, subtask)| names(link, subtask);
                    left.iter().position(|step| step.is_some_and(names))
                };
                let linked = first(&|link, _| link.is_some_and(|link| in_document.contains(&link)));
                let expected = linked.or_else(|| {
                    first(&|link, subtask| link.is_none() && in_document.contains(&subtask))
                });
                let task = ManagedTask {
                    id: TaskId(Uuid::nil()),
                    in_document,
                    value_path: String::new(),
                };
                prop_assert_eq!(listed.take(&task), expected);
                if let Some(index) = expected {
                    left[index] = None;
                }
            }
        }
    }
}
