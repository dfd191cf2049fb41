//! Explains why no walkthrough sees a step: conditions on one variable that no value of it
//! meets together.

use std::collections::BTreeSet;

use crate::domain::analysis::{
    CompiledCondition, CompiledGroup, CompiledNode, Guide, GuideStep, GuideTask, StepPosition,
};
use crate::domain::dependency::LogicalOperator;

use super::{
    classes::ValueClasses, conditions::NodePath, finding::FindingPlace, walkthrough::Walkthroughs,
};

/// A condition that must hold for a step to be seen.
struct NeededCondition<'a> {
    place: FindingPlace,
    condition: &'a CompiledCondition,
}

/// Conditions on one variable that a step needs and that no value meets together. None of
/// them can be left out. Empty if none were found.
///
/// A step needs its own conditions and those of the task that it refers to. It also needs
/// those of the subtask step that enters its task, if walkthroughs enter the task only once.
pub fn find(
    guide: &Guide,
    walkthroughs: &Walkthroughs,
    position: StepPosition,
) -> Vec<FindingPlace> {
    let mut needed = Vec::new();
    add_step(guide, position, &mut needed);
    add_entry(guide, walkthroughs, position, &mut needed);
    let variables: BTreeSet<usize> = needed.iter().map(|one| one.condition.variable.0).collect();
    for variable in variables {
        let of_variable: Vec<&NeededCondition<'_>> = needed
            .iter()
            .filter(|one| one.condition.variable.0 == variable)
            .collect();
        if contradict(guide, variable, &of_variable) {
            let irreducible = shrink(guide, variable, of_variable);
            return irreducible.iter().map(|one| one.place.clone()).collect();
        }
    }
    Vec::new()
}

/// Adds the conditions of a step, and of the task that it refers to.
fn add_step<'a>(guide: &'a Guide, position: StepPosition, needed: &mut Vec<NeededCondition<'a>>) {
    let Some((task, step)) = guide.tasks.get(position.task).zip(guide.step(position)) else {
        return;
    };
    let place = |path: &str| FindingPlace::of_step(task, step, path);
    add_group(step.dependencies.as_ref(), &place, needed);
    if let Some(subtask) = step.subtask.and_then(|index| guide.tasks.get(index)) {
        add_task(subtask, needed);
    }
}

fn add_task<'a>(task: &'a GuideTask, needed: &mut Vec<NeededCondition<'a>>) {
    let place = |path: &str| FindingPlace::of_task(task, path);
    add_group(task.dependencies.as_ref(), &place, needed);
}

/// Adds the conditions of the subtask step that enters the step's task, if walkthroughs enter
/// the task only once. Conditions on variables that are set between the two steps are left out.
fn add_entry<'a>(
    guide: &'a Guide,
    walkthroughs: &Walkthroughs,
    position: StepPosition,
    needed: &mut Vec<NeededCondition<'a>>,
) {
    // Walkthroughs begin in the root; nothing else needs to hold.
    if position.task == 0 {
        return;
    }
    let visits = || walkthroughs.visits.iter().enumerate();
    let mut entries = visits().filter(|(_, visit)| {
        let task = visit.subtask.map(|subtask| subtask.task);
        task == Some(position.task)
    });
    let entry = entries.next().filter(|_| entries.next().is_none());
    let here = visits().find(|(_, visit)| visit.position == position);
    let Some(((from, entry), (to, _))) = entry.zip(here) else {
        return;
    };
    let between = walkthroughs.visits.iter().take(to).skip(from);
    let between = between.filter_map(|visit| guide.step(visit.position));
    let set: Vec<_> = between.flat_map(|step: &GuideStep| &step.sets).collect();
    let mut of_entry = Vec::new();
    add_step(guide, entry.position, &mut of_entry);
    of_entry.retain(|one| !set.contains(&&one.condition.variable));
    needed.append(&mut of_entry);
}

/// Adds the conditions without which a group cannot hold.
fn add_group<'a>(
    group: Option<&'a CompiledGroup>,
    place: &impl Fn(&str) -> FindingPlace,
    needed: &mut Vec<NeededCondition<'a>>,
) {
    if let Some(group) = group {
        add_nodes(group, &mut NodePath::default(), place, needed);
    }
}

fn add_nodes<'a>(
    group: &'a CompiledGroup,
    path: &mut NodePath,
    place: &impl Fn(&str) -> FindingPlace,
    needed: &mut Vec<NeededCondition<'a>>,
) {
    let needs_all = match group.operator {
        LogicalOperator::And => true,
        LogicalOperator::Or => group.nodes.len() == 1,
    };
    if !needs_all {
        return;
    }
    for (index, node) in group.nodes.iter().enumerate() {
        path.enter(index);
        match node {
            CompiledNode::Group(inner) => add_nodes(inner, path, place, needed),
            CompiledNode::Condition(condition) => needed.push(NeededCondition {
                place: place(&path.to_string()),
                condition,
            }),
        }
        path.leave();
    }
}

/// Whether no value of the variable meets all of the conditions.
fn contradict(guide: &Guide, variable: usize, needed: &[&NeededCondition<'_>]) -> bool {
    let Some(variable) = guide.variables.get(variable) else {
        return false;
    };
    let conditions: Vec<&CompiledCondition> = needed.iter().map(|one| one.condition).collect();
    let setters = variable.setters.iter();
    let steps = setters.filter_map(|setter| guide.step(*setter));
    let keys = steps.flat_map(GuideStep::answer_keys);
    let classes = ValueClasses::new(&variable.possible, keys, &conditions);
    let mut possible = vec![true; classes.count()];
    for condition in conditions {
        for (possible, holds) in possible.iter_mut().zip(classes.outcomes(condition)) {
            *possible &= holds;
        }
    }
    !possible.contains(&true)
}

/// Removes each condition without which the remaining ones still contradict.
fn shrink<'a, 'n>(
    guide: &Guide,
    variable: usize,
    mut needed: Vec<&'n NeededCondition<'a>>,
) -> Vec<&'n NeededCondition<'a>> {
    let mut index = 0;
    while index < needed.len() {
        let left_out = needed.remove(index);
        if needed.is_empty() || !contradict(guide, variable, &needed) {
            needed.insert(index, left_out);
            index += 1;
        }
    }
    needed
}
