//! A guide in the order in which walkthroughs go through it.

use crate::domain::{
    analysis::{
        CompiledCondition, CompiledGroup, Guide, GuideStep, PossibleValues, StepPosition,
        SubtaskEntry,
    },
    dependency::Comparison,
};

use super::{classes::VALUES_PER_TARGET, walkthrough::Unpublished};

/// Calls `visit` with the steps of a guide in the order of a walk, and with the tasks that
/// the walk is inside of. It skips steps that `shows` is false for.
pub fn walk<'a>(
    guide: &'a Guide,
    shows: &impl Fn(&GuideStep) -> bool,
    visit: &mut impl FnMut(StepPosition, &'a GuideStep, &[usize]),
) {
    walk_from(guide, shows, visit, &mut vec![0]);
}

fn walk_from<'a>(
    guide: &'a Guide,
    shows: &impl Fn(&GuideStep) -> bool,
    visit: &mut impl FnMut(StepPosition, &'a GuideStep, &[usize]),
    entered: &mut Vec<usize>,
) {
    let Some(task) = entered.last().copied() else {
        return;
    };
    for (index, step) in guide.steps(task).iter().enumerate() {
        if !shows(step) {
            continue;
        }
        visit(StepPosition { task, step: index }, step, entered);
        match guide.subtask_entry(step, entered) {
            SubtaskEntry::Enter(subtask) => {
                entered.push(subtask);
                walk_from(guide, shows, visit, entered);
                entered.pop();
            }
            SubtaskEntry::NoTask | SubtaskEntry::Cycle(_) | SubtaskEntry::TooDeep(_) => {}
        }
    }
}

/// What the conditions of the walkthroughs read.
pub struct Reads<'a> {
    /// The conditions that read each variable.
    pub conditions: Vec<Vec<&'a CompiledCondition>>,
    /// Whether each variable is read before an observation sets it.
    pub before_set: Vec<bool>,
}

impl<'a> Reads<'a> {
    /// The reads of all conditions that walkthroughs can come to.
    pub fn of(guide: &'a Guide, unpublished: Unpublished) -> Self {
        let count = guide.variables.len();
        let mut reads = Self {
            conditions: vec![Vec::new(); count],
            before_set: vec![false; count],
        };
        let mut set = vec![false; count];
        let shows = |step: &GuideStep| unpublished.shows_step(step);
        reads.add(
            guide.root().and_then(|task| task.dependencies.as_ref()),
            &set,
        );
        walk(guide, &shows, &mut |_, step, _| {
            reads.add(step.dependencies.as_ref(), &set);
            let subtask = step.subtask.and_then(|task| guide.tasks.get(task));
            reads.add(subtask.and_then(|task| task.dependencies.as_ref()), &set);
            for id in &step.sets {
                if let Some(set) = set.get_mut(id.0) {
                    *set = true;
                }
            }
        });
        reads
    }

    fn add(&mut self, group: Option<&'a CompiledGroup>, set: &[bool]) {
        let Some(group) = group else { return };
        group.for_each(&mut |condition| {
            let index = condition.variable.0;
            if let Some(conditions) = self.conditions.get_mut(index) {
                conditions.push(condition);
            }
            if let Some(before) = self.before_set.get_mut(index) {
                *before |= set.get(index).is_some_and(|set| !set);
            }
        });
    }

    /// About how many values and targets are looked up to find the classes of all variables
    /// and the conditions that hold for them. A condition is looked up at each step of a walk
    /// that reads it.
    pub fn lookups(&self, guide: &Guide) -> usize {
        let variables = guide.variables.iter().zip(&self.conditions);
        let each = variables.map(|(variable, conditions)| {
            let targets: usize = conditions.iter().map(|one| one.targets.count()).sum();
            let bounds = conditions.iter().filter(|one| match one.operator {
                Comparison::Equal | Comparison::NotEqual => false,
                Comparison::Greater | Comparison::Less => true,
            });
            let values = match &variable.possible {
                PossibleValues::Keys(keys) => keys.count(),
                PossibleValues::Anything => VALUES_PER_TARGET * targets,
            };
            // A bound may hold for every value.
            values
                .saturating_mul(1 + bounds.count())
                .saturating_add(2 * targets)
        });
        each.fold(0, usize::saturating_add)
    }
}
