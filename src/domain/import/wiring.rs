//! Wiring steps: each managed task has exactly one, in the task whose
//! observation manages it.

use std::collections::BTreeMap;

use crate::domain::{
    ids::TaskId,
    step::{Step, StepType},
};

use super::plan::Draft;

/// A managed task that needs its wiring step.
pub(super) struct Wire {
    /// The observation's index among the listed steps.
    pub observation: usize,
    /// The managed task.
    pub task: TaskId,
    /// The document's ids for it.
    pub aliases: Vec<TaskId>,
}

/// Finds or makes the wiring step of every wire. A step that the document lists
/// for it stays where it is listed; others come right behind their observation,
/// in value order. `unlisted` are existing wiring steps that the document does
/// not list.
pub(super) fn wire_up(
    mut drafts: Vec<Draft>,
    wires: Vec<Wire>,
    unlisted: &BTreeMap<TaskId, &Step>,
    mut make: impl FnMut(TaskId, &Step) -> Draft,
) -> Vec<Draft> {
    let mut behind: BTreeMap<usize, Vec<Draft>> = BTreeMap::new();
    for wire in wires {
        let standing = unlisted.get(&wire.task).copied();
        let claimed = claim(&mut drafts, &wire);
        match (claimed, standing) {
            (Some(draft), None) => draft.after.link = Some(wire.task),
            (Some(draft), Some(step)) => {
                // The document lists it without its id.
                let content = std::mem::replace(&mut draft.after, step.clone()).content;
                draft.after.content = content;
                draft.before = Some(step.clone());
            }
            (None, standing) => {
                let Some(observation) = drafts.get(wire.observation) else {
                    continue;
                };
                let draft = match standing {
                    Some(step) => Draft::standing(step.clone()),
                    None => make(wire.task, &observation.after),
                };
                behind.entry(wire.observation).or_default().push(draft);
            }
        }
    }
    let mut steps = Vec::with_capacity(drafts.len());
    for (index, draft) in drafts.into_iter().enumerate() {
        steps.push(draft);
        steps.extend(behind.remove(&index).unwrap_or_default());
    }
    steps
}

/// The new step of the document that wires a task: one that says so, or else
/// one that refers to it.
fn claim<'a>(drafts: &'a mut [Draft], wire: &Wire) -> Option<&'a mut Draft> {
    let free = |draft: &Draft| {
        draft.before.is_none()
            && draft.after.link.is_none()
            && draft.after.kind.step_type() == StepType::Subtask
    };
    let says = |draft: &Draft| draft.wires.is_some_and(|task| wire.aliases.contains(&task));
    let refers = |draft: &Draft| {
        let reference = draft.reference.as_ref();
        draft.wires.is_none() && reference.is_some_and(|to| wire.aliases.contains(&to.task))
    };
    let position = drafts
        .iter()
        .position(|draft| free(draft) && says(draft))
        .or_else(|| drafts.iter().position(|draft| free(draft) && refers(draft)))?;
    drafts.get_mut(position)
}
