//! Explains why no walkthrough sees a step: conditions on one variable that no value of it
//! meets together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::domain::analysis::{
    CompiledCondition, CompiledGroup, CompiledNode, Guide, GuideStep, StepPosition, VariableId,
};
use crate::domain::dependency::{Group, LogicalOperator};

use super::{
    classes::{HoldingClasses, ValueClasses},
    conditions::NodePath,
    finding::FindingPlace,
    walkthrough::Walkthroughs,
};

/// Most work to find the conflicts of a guide, in classes of values that are looked at. Those
/// that are not found by then are not explained.
const MAX_WORK: usize = 5_000_000;
/// The work to look up a target among the values.
const LOOKUP_WORK: usize = 8;
/// The work to make the place of a condition.
const PLACE_WORK: usize = 32;

/// A condition that must hold for a step to be seen.
struct NeededCondition<'a> {
    place: FindingPlace,
    condition: &'a CompiledCondition,
}

/// Conditions on one variable that a step needs and that no value meets together.
#[derive(Debug, Default)]
pub struct Conflict {
    /// Where they are; empty if none were found.
    pub places: Vec<FindingPlace>,
    /// Whether some of them may be left out, as there was no work left to find that out.
    pub is_reducible: bool,
}

/// Finds conflicts in a guide.
pub struct ConflictSearch<'a> {
    guide: &'a Guide,
    walkthroughs: &'a Walkthroughs,
    /// The first visit of each step, as an index.
    first_visits: HashMap<StepPosition, usize>,
    /// The visit of the step that enters each task; `None` if several do.
    entries: HashMap<usize, Option<usize>>,
    work_left: usize,
}

impl<'a> ConflictSearch<'a> {
    /// A search in these walkthroughs of a guide.
    pub fn new(guide: &'a Guide, walkthroughs: &'a Walkthroughs) -> Self {
        let mut search = Self {
            guide,
            walkthroughs,
            first_visits: HashMap::new(),
            entries: HashMap::new(),
            work_left: MAX_WORK,
        };
        for (index, visit) in walkthroughs.visits.iter().enumerate() {
            search.first_visits.entry(visit.position).or_insert(index);
            if let Some(subtask) = visit.subtask {
                let entry = search.entries.entry(subtask.task);
                entry
                    .and_modify(|entry| *entry = None)
                    .or_insert(Some(index));
            }
        }
        search
    }

    /// Conditions on one variable that a step needs and that no value meets together.
    ///
    /// A step needs its own conditions and those of the task that it refers to. It also needs
    /// those of the subtask step that enters its task, if walkthroughs enter the task only once.
    pub fn find(&mut self, position: StepPosition) -> Conflict {
        let mut needed = Vec::new();
        self.add_step(position, &mut needed);
        self.add_entry(position, &mut needed);
        let mut by_variable: BTreeMap<VariableId, Vec<NeededCondition<'_>>> = BTreeMap::new();
        for one in needed {
            by_variable
                .entry(one.condition.variable)
                .or_default()
                .push(one);
        }
        for (variable, of_variable) in by_variable {
            let Some(classes) = self.walkthroughs.classes_of(variable) else {
                continue;
            };
            let lookups = of_variable.iter().map(|one| classes.cost(one.condition));
            let lookups = lookups.fold(0, usize::saturating_add);
            if !self.spend(
                lookups
                    .saturating_mul(LOOKUP_WORK)
                    .saturating_add(classes.count()),
            ) {
                break;
            }
            let rows: Vec<HoldingClasses> = of_variable
                .iter()
                .map(|one| classes.holding(one.condition))
                .collect();
            if !contradict(classes, &rows) {
                continue;
            }
            let can_reduce = self.spend(rows.len().saturating_mul(classes.count()));
            let kept = match can_reduce {
                true => irreducible(classes, &rows),
                false => (0..rows.len()).collect(),
            };
            let places = kept.iter().filter_map(|index| of_variable.get(*index));
            return Conflict {
                places: places.map(|one| one.place.clone()).collect(),
                is_reducible: !can_reduce,
            };
        }
        Conflict::default()
    }

    /// Adds the conditions of a step, and of the task that it refers to.
    fn add_step(&mut self, position: StepPosition, needed: &mut Vec<NeededCondition<'a>>) {
        let guide = self.guide;
        let Some((task, step)) = guide.tasks.get(position.task).zip(guide.step(position)) else {
            return;
        };
        let subtask = step.subtask.and_then(|index| guide.tasks.get(index));
        let of_step = step.source.step.content.dependencies.as_ref();
        let of_subtask =
            subtask.and_then(|subtask| subtask.source.task.content.dependencies.as_ref());
        let conditions = of_step.into_iter().chain(of_subtask).map(Group::conditions);
        if !self.spend(conditions.sum::<usize>() * PLACE_WORK) {
            return;
        }
        let place = |path: &str| FindingPlace::of_step(task, step, path);
        add_group(step.dependencies.as_ref(), &place, needed);
        if let Some(subtask) = subtask {
            let place = |path: &str| FindingPlace::of_task(subtask, path);
            add_group(subtask.dependencies.as_ref(), &place, needed);
        }
    }

    /// Takes work from what is left; false if it is not enough.
    fn spend(&mut self, work: usize) -> bool {
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or(self.work_left);
        left.is_some()
    }

    /// Adds the conditions of the subtask step that enters the step's task, if walkthroughs
    /// enter the task only once. Conditions on variables that are set between the two steps are
    /// left out.
    fn add_entry(&mut self, position: StepPosition, needed: &mut Vec<NeededCondition<'a>>) {
        // Walkthroughs begin in the root; nothing else needs to hold.
        if position.task == 0 {
            return;
        }
        let visits = &self.walkthroughs.visits;
        let from = self.entries.get(&position.task).copied().flatten();
        let Some((from, to)) = from.zip(self.first_visits.get(&position).copied()) else {
            return;
        };
        let Some(entry) = visits.get(from) else {
            return;
        };
        if !self.spend(to.saturating_sub(from)) {
            return;
        }
        let between = visits.iter().take(to).skip(from);
        let between = between.filter_map(|visit| self.guide.step(visit.position));
        let set: HashSet<&VariableId> = between.flat_map(|step: &GuideStep| &step.sets).collect();
        let mut of_entry = Vec::new();
        self.add_step(entry.position, &mut of_entry);
        of_entry.retain(|one| !set.contains(&one.condition.variable));
        needed.append(&mut of_entry);
    }
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

/// Which classes of values meet a condition.
fn met(classes: &ValueClasses, row: &HoldingClasses) -> Vec<bool> {
    let mut met = vec![!row.holds; classes.count()];
    for class in &row.classes {
        if let Some(met) = met.get_mut(*class) {
            *met = row.holds;
        }
    }
    met
}

/// Whether no class of values meets all of the conditions.
fn contradict(classes: &ValueClasses, rows: &[HoldingClasses]) -> bool {
    // Those that hold for listed classes leave only these, and the others exclude classes.
    let mut holding = rows.iter().filter(|row| row.holds);
    let mut possible: BTreeSet<usize> = match holding.next() {
        Some(row) => row.classes.iter().copied().collect(),
        None => (0..classes.count()).collect(),
    };
    for row in holding {
        let row: HashSet<usize> = row.classes.iter().copied().collect();
        possible.retain(|class| row.contains(class));
    }
    for row in rows.iter().filter(|row| !row.holds) {
        for class in &row.classes {
            possible.remove(class);
        }
    }
    possible.is_empty()
}

/// The indexes of contradicting conditions without those that can be left out, one after the
/// other, so that the remaining ones still contradict.
fn irreducible(classes: &ValueClasses, rows: &[HoldingClasses]) -> Vec<usize> {
    // For each class, how many of the remaining conditions it does not meet.
    let mut unmet_later = vec![0_usize; classes.count()];
    for row in rows {
        for (count, met) in unmet_later.iter_mut().zip(met(classes, row)) {
            *count += usize::from(!met);
        }
    }
    let mut met_by_kept = vec![true; classes.count()];
    let mut kept = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let met = met(classes, row);
        for (count, met) in unmet_later.iter_mut().zip(&met) {
            *count -= usize::from(!met);
        }
        let mut possible = met_by_kept.iter().zip(&unmet_later);
        let is_needed = possible.any(|(met, unmet_later)| *met && *unmet_later == 0);
        if is_needed {
            kept.push(index);
            for (kept, met) in met_by_kept.iter_mut().zip(met) {
                *kept &= met;
            }
        }
    }
    kept
}
