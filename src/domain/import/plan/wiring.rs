//! Wiring steps: each managed task has exactly one, in the task of the observation
//! that manages it.

use std::collections::BTreeMap;

use crate::domain::{
    ids::TaskId,
    step::{NewStep, Step, StepContent, StepKind, StepType, SubtaskRef},
};

use super::{ManagedTaskIds, PlannedStep, Planner, SubtaskReference};

impl<'a> Planner<'a> {
    /// Gives every managed task its wiring step. A step that the document lists for it
    /// keeps its place; the others follow their observation, in value order.
    pub(super) fn place_wiring_steps(
        &self,
        mut steps: Vec<PlannedStep<'a>>,
        stored: &'a [Step],
    ) -> Vec<PlannedStep<'a>> {
        let stored: BTreeMap<TaskId, &'a Step> = stored
            .iter()
            .filter_map(|step| Some((step.link?, step)))
            .collect();
        let managed: Vec<Vec<ManagedTaskIds>> = steps
            .iter_mut()
            .map(|step| std::mem::take(&mut step.managed))
            .collect();
        let mut added: BTreeMap<usize, Vec<PlannedStep<'a>>> = BTreeMap::new();
        for (observation, ids) in managed.into_iter().enumerate() {
            for ids in ids {
                let unlisted = self.find_or_add_wiring_step(&mut steps, observation, &ids, &stored);
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
        ids: &ManagedTaskIds,
        stored: &BTreeMap<TaskId, &'a Step>,
    ) -> Option<PlannedStep<'a>> {
        let task = ids.stored;
        if steps.iter().any(|step| step.after.link == Some(task)) {
            return None;
        }
        let stored = stored.get(&task).copied();
        let Some(listed) = find_new_step(steps, ids) else {
            let observation = &steps.get(observation)?.after;
            return Some(match stored {
                Some(step) => PlannedStep::unchanged(step),
                None => self.new_wiring_step(task, observation),
            });
        };
        match stored {
            None => listed.after.link = Some(task),
            Some(step) => {
                // The document lists the stored step without its id.
                let content = std::mem::replace(&mut *listed.after, step.clone()).content;
                listed.after.content = content;
                listed.before = Some(step);
            }
        }
        None
    }

    fn new_wiring_step(&self, task: TaskId, observation: &Step) -> PlannedStep<'a> {
        let new = NewStep {
            task: observation.task,
            product: observation.product,
            kind: StepKind::Subtask {
                subtask: SubtaskRef {
                    task,
                    product: observation.product,
                },
                feedback: None,
            },
            content: StepContent::default(),
        };
        let after = Step {
            link: Some(task),
            // The title is set when references are resolved.
            ..Step::create(new, String::new(), self.write)
        };
        PlannedStep::new(None, after, Some(SubtaskReference::to(task)))
    }
}

/// The new step that the document lists for a managed task: one whose `link` names the
/// task, or else one without `link` that refers to it.
fn find_new_step<'a, 's>(
    steps: &'s mut [PlannedStep<'a>],
    ids: &ManagedTaskIds,
) -> Option<&'s mut PlannedStep<'a>> {
    let is_free = |step: &PlannedStep<'_>| {
        step.before.is_none()
            && step.after.link.is_none()
            && step.after.kind.step_type() == StepType::Subtask
    };
    let names = |task: Option<TaskId>| task.is_some_and(|task| ids.in_document.contains(&task));
    let links = |step: &PlannedStep<'_>| is_free(step) && names(step.document_link);
    let refers = |step: &PlannedStep<'_>| {
        let reference = step.reference.as_ref();
        is_free(step) && step.document_link.is_none() && names(reference.map(|to| to.task))
    };
    let position = steps.iter().position(links);
    let position = position.or_else(|| steps.iter().position(refers))?;
    steps.get_mut(position)
}
