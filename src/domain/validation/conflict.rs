//! Explains why no walkthrough sees a step: conditions on the way to it that read one variable,
//! and that no value of it meets together.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::domain::analysis::{
    CompiledCondition, CompiledGroup, Guide, Holding, StepPosition, VariableId, VariableValue,
};
use crate::domain::dependency::Group;

use super::{classes::ValueClasses, finding::FindingPlace, walkthrough::Walkthroughs};

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
    /// The visit at which it must hold.
    visit: usize,
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
    /// The first visit of each step, as an index, and how many there are.
    visits_of: HashMap<StepPosition, (usize, usize)>,
    /// The visits of the observations that set each variable.
    setters: HashMap<VariableId, Vec<usize>>,
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
            visits_of: HashMap::new(),
            setters: HashMap::new(),
            entries: HashMap::new(),
            work_left: MAX_WORK,
        };
        for (index, visit) in walkthroughs.visits.iter().enumerate() {
            search
                .visits_of
                .entry(visit.position)
                .or_insert((index, 0))
                .1 += 1;
            for variable in guide
                .step(visit.position)
                .map_or(&[][..], |step| &step.sets)
            {
                search.setters.entry(*variable).or_default().push(index);
            }
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
    /// A step needs its own conditions and those of the task that it refers to. If walkthroughs
    /// come to it only once, it also needs to be entered, and the answers that its conditions
    /// need: so it needs what the subtask step needs that enters its task, and what an observation
    /// needs that alone sets a variable before it.
    pub fn find(&mut self, position: StepPosition) -> Conflict {
        let Some((visit, count)) = self.visits_of.get(&position).copied() else {
            return Conflict::default();
        };
        let mut needed = Vec::new();
        self.add_visit(visit, &mut needed);
        if count == 1 {
            self.add_way(visit, &mut needed);
        }
        // Between two observations that set a variable, it has one value.
        let mut by_variable: BTreeMap<(VariableId, usize), Vec<NeededCondition<'_>>> =
            BTreeMap::new();
        for one in needed {
            let variable = one.condition.variable;
            let key = (variable, self.setters_before(variable, one.visit).len());
            by_variable.entry(key).or_default().push(one);
        }
        for ((variable, _), of_variable) in by_variable {
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
            let rows: Vec<Holding> = of_variable
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

    /// The visits of the observations that set a variable before a visit.
    fn setters_before(&self, variable: VariableId, visit: usize) -> &[usize] {
        let setters = self.setters.get(&variable).map_or(&[][..], Vec::as_slice);
        let before = setters.partition_point(|setter| *setter < visit);
        setters.get(..before).unwrap_or_default()
    }

    /// Adds the conditions of the visits without which a walkthrough does not see what is needed
    /// so far, which are of `visit`.
    fn add_way(&mut self, visit: usize, needed: &mut Vec<NeededCondition<'a>>) {
        let mut known = HashSet::from([visit]);
        let mut open = vec![visit];
        // The needed conditions before it have been looked at.
        let mut next = 0;
        while let Some(visit) = open.pop() {
            let entry = self.entry(visit);
            let answers = needed.iter().skip(next);
            let answers = answers.filter_map(|one| self.answering_visit(one));
            let before: Vec<usize> = entry.into_iter().chain(answers).collect();
            next = needed.len();
            for visit in before {
                if known.insert(visit) {
                    self.add_visit(visit, needed);
                    open.push(visit);
                }
            }
        }
    }

    /// The visit of the subtask step that enters the task of a visit, if only one does.
    /// Walkthroughs begin in the root, which no step needs to enter.
    fn entry(&self, visit: usize) -> Option<usize> {
        let task = self.walkthroughs.visits.get(visit)?.position.task;
        let entry = self.entries.get(&task).copied().flatten();
        entry.filter(|_| task != 0)
    }

    /// The only visit that can set the answer that a condition needs.
    fn answering_visit(&self, needed: &NeededCondition<'_>) -> Option<usize> {
        let NeededCondition {
            condition, visit, ..
        } = needed;
        let is_unanswered = self.walkthroughs.starts_unanswered(condition.variable);
        match self.setters_before(condition.variable, *visit) {
            [setter] if is_unanswered && !condition.holds(&VariableValue::Unanswered) => {
                Some(*setter)
            }
            _ => None,
        }
    }

    /// Adds the conditions of a visited step, and of the task that it refers to.
    fn add_visit(&mut self, visit: usize, needed: &mut Vec<NeededCondition<'a>>) {
        let guide = self.guide;
        let visited = self.walkthroughs.visits.get(visit);
        let Some(position) = visited.map(|visited| visited.position) else {
            return;
        };
        let Some((task, step)) = guide.tasks.get(position.task).zip(guide.step(position)) else {
            return;
        };
        let subtask = step.subtask.and_then(|index| guide.tasks.get(index));
        let of_step = step.source.step.content.dependencies.as_ref();
        let of_subtask =
            subtask.and_then(|subtask| subtask.source.task.content.dependencies.as_ref());
        let conditions = of_step.into_iter().chain(of_subtask).map(Group::conditions);
        if !self.spend((1 + conditions.sum::<usize>()) * PLACE_WORK) {
            return;
        }
        let place = |path: &str| FindingPlace::of_step(task, step, path);
        add_group(of_step, step.dependencies.as_ref(), visit, &place, needed);
        if let Some(subtask) = subtask {
            let place = |path: &str| FindingPlace::of_task(subtask, path);
            add_group(
                of_subtask,
                subtask.dependencies.as_ref(),
                visit,
                &place,
                needed,
            );
        }
    }

    /// Takes work from what is left; false if it is not enough.
    fn spend(&mut self, work: usize) -> bool {
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or(self.work_left);
        left.is_some()
    }
}

/// Adds the conditions without which a group cannot hold.
fn add_group<'a>(
    source: Option<&'a Group>,
    group: Option<&'a CompiledGroup>,
    visit: usize,
    place: &impl Fn(&str) -> FindingPlace,
    needed: &mut Vec<NeededCondition<'a>>,
) {
    if let Some((source, group)) = source.zip(group) {
        let conditions = group.with_sources(source);
        let conditions = conditions.filter(|(placed, _)| placed.is_needed);
        needed.extend(conditions.map(|(placed, condition)| NeededCondition {
            place: place(&placed.path),
            condition,
            visit,
        }));
    }
}

/// Which classes of values meet a condition.
fn met(classes: &ValueClasses, row: &Holding) -> Vec<bool> {
    let mut met = vec![!row.holds; classes.count()];
    for class in &row.listed {
        if let Some(met) = met.get_mut(*class) {
            *met = row.holds;
        }
    }
    met
}

/// Whether no class of values meets all of the conditions.
fn contradict(classes: &ValueClasses, rows: &[Holding]) -> bool {
    // Those that hold for listed classes leave only these, and the others exclude classes.
    let mut holding = rows.iter().filter(|row| row.holds);
    let mut possible: BTreeSet<usize> = match holding.next() {
        Some(row) => row.listed.iter().copied().collect(),
        None => (0..classes.count()).collect(),
    };
    for row in holding {
        let row: HashSet<usize> = row.listed.iter().copied().collect();
        possible.retain(|class| row.contains(class));
    }
    for row in rows.iter().filter(|row| !row.holds) {
        for class in &row.listed {
            possible.remove(class);
        }
    }
    possible.is_empty()
}

/// The indexes of contradicting conditions without those that can be left out, one after the
/// other, so that the remaining ones still contradict.
fn irreducible(classes: &ValueClasses, rows: &[Holding]) -> Vec<usize> {
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
