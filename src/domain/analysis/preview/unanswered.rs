//! Variables that are not answered, as all their observations are hidden.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::analysis::{
    CompiledGroup, Guide, PossibleValues, StopSignal, Truth, Variable, VariableId,
};

use super::{GuideState, visibility::GuideParts};

/// A task, or a step of it, with dependencies: their indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    pub task: usize,
    pub step: Option<usize>,
}

/// Sets the variables to not answered that only the guide sets, that have no value, and whose
/// observations are all hidden. That may hide further observations, so it is repeated until no
/// variable is left to set. A hidden observation stays hidden whatever becomes known, so the
/// order makes no difference, and observations that wait for one another stay undetermined.
/// `None` if nobody waits for it any more.
pub(super) fn hide_unanswered(
    guide: &Guide,
    state: &mut GuideState,
    parts: &mut GuideParts,
    stop: StopSignal<'_>,
) -> Option<()> {
    let variables = guide.variables.iter().enumerate();
    let open = variables.map(|(index, variable)| (VariableId(index), variable));
    let open =
        open.filter(|(id, variable)| state.value(*id).is_none() && is_set_in_guide_only(variable));
    let mut open: Vec<(VariableId, &Variable)> = open.collect();
    let readers = readers(guide);
    while !open.is_empty() {
        if stop.is_given() {
            return None;
        }
        let reached = parts.reached(guide);
        let is_hidden = |variable: &Variable| {
            let mut setters = variable.setters.iter();
            setters.all(|setter| parts.step_visible(&reached, *setter) == Truth::False)
        };
        let (hidden, left): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|(_, variable)| is_hidden(variable));
        if hidden.is_empty() {
            break;
        }
        open = left;
        let mut changed = BTreeSet::new();
        for (id, _) in hidden {
            state.set_unanswered(id);
            changed.extend(readers.get(&id).into_iter().flatten().copied());
        }
        parts.update(guide, state, changed);
    }
    Some(())
}

fn is_set_in_guide_only(variable: &Variable) -> bool {
    let may_be_anything = match &variable.possible {
        PossibleValues::Keys(_) => false,
        PossibleValues::Anything => true,
    };
    !variable.setters.is_empty() && !variable.outside.may_exist() && !may_be_anything
}

/// What reads each variable.
fn readers(guide: &Guide) -> BTreeMap<VariableId, Vec<Reader>> {
    let mut readers: BTreeMap<VariableId, Vec<Reader>> = BTreeMap::new();
    let mut add = |group: Option<&CompiledGroup>, reader| {
        if let Some(group) = group {
            group.for_each(&mut |condition| {
                readers.entry(condition.variable).or_default().push(reader);
            });
        }
    };
    for (task, read) in guide.tasks.iter().enumerate() {
        add(read.dependencies.as_ref(), Reader { task, step: None });
        for (index, step) in guide.steps(task).iter().enumerate() {
            let step_reader = Reader {
                task,
                step: Some(index),
            };
            add(step.dependencies.as_ref(), step_reader);
        }
    }
    readers
}
