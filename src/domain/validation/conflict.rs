//! Explains why no walkthrough sees a step: conditions on the path to it that read the same
//! variable, and that no value meets together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::domain::analysis::{CompiledCondition, Dependencies, VariableId, VariableValue};

use super::{
    finding::FindingPlace,
    walkthrough::{Visit, Walkthroughs},
};

/// The work to build a path, in classes that can be examined in the same time.
const PATH_WORK: usize = 32;

/// A condition that must hold for a step to be seen.
struct NeededCondition<'a> {
    condition: &'a CompiledCondition,
    /// The stop of the route at which it must hold.
    stop: usize,
    place: FindingPlace,
}

pub struct ConflictSearch<'a> {
    walkthroughs: &'a Walkthroughs<'a>,
    /// The stops at the observations that set each variable.
    setters: HashMap<VariableId, Vec<usize>>,
}

impl<'a> ConflictSearch<'a> {
    pub fn new(walkthroughs: &'a Walkthroughs<'a>) -> Self {
        let mut setters: HashMap<VariableId, Vec<usize>> = HashMap::new();
        for visit in &walkthroughs.visits {
            for variable in &walkthroughs.guide[visit.position].sets {
                setters.entry(*variable).or_default().push(visit.stop);
            }
        }
        Self {
            walkthroughs,
            setters,
        }
    }

    /// A minimal set of conditions on one variable that a step needs and that no value meets
    /// together. Empty if none was found.
    pub fn find(&self, visits: &[&Visit]) -> Vec<FindingPlace> {
        // Between two observations that set a variable, it has one value.
        let mut groups: BTreeMap<(VariableId, usize), Vec<NeededCondition<'_>>> = BTreeMap::new();
        for one in self.needed(visits) {
            let variable = one.condition.variable;
            let key = (variable, self.setters_before(variable, one.stop).len());
            groups.entry(key).or_default().push(one);
        }
        let conflict = groups
            .into_iter()
            .find_map(|((variable, _), needed)| self.contradicting(variable, needed));
        let conflict = conflict.into_iter().flatten();
        conflict.map(|one| one.place).collect()
    }

    /// The conditions, if no class of values meets them all. A greedy pass leaves out conditions
    /// that are not needed for the contradiction. `None` if a class meets them all, or if the
    /// budget is spent.
    fn contradicting(
        &self,
        variable: VariableId,
        mut needed: Vec<NeededCondition<'a>>,
    ) -> Option<Vec<NeededCondition<'a>>> {
        let classes = &self.walkthroughs.variables.get(&variable)?.classes;
        let work = needed.len().saturating_mul(classes.count());
        if !self.walkthroughs.budget.hints.spend(work) {
            return None;
        }
        let outcomes = |one: &NeededCondition<'_>| classes.outcomes(&one.condition.criterion);
        // For each class, the number of conditions that it does not meet.
        let mut unmet = vec![0_usize; classes.count()];
        for one in &needed {
            for (count, meets) in unmet.iter_mut().zip(outcomes(one)) {
                *count += usize::from(!meets);
            }
        }
        if unmet.contains(&0) {
            return None;
        }
        needed.retain(|one| {
            let meets = outcomes(one);
            let is_needed = unmet.iter().zip(&meets).any(|pair| pair == (&1, &false));
            if !is_needed {
                for (count, meets) in unmet.iter_mut().zip(meets) {
                    *count -= usize::from(!meets);
                }
            }
            is_needed
        });
        Some(needed)
    }

    /// The conditions that must hold for a walkthrough to see a step: its own, and those of the
    /// task that it refers to. If walkthroughs can reach it only once, it also needs the subtask
    /// step that enters its task, and each observation that is the only one to set a variable that
    /// it needs.
    fn needed(&self, visits: &[&Visit]) -> Vec<NeededCondition<'a>> {
        let mut needed = Vec::new();
        let mut known = BTreeSet::new();
        let mut open: Vec<usize> = visits.iter().take(1).map(|visit| visit.stop).collect();
        while let Some(stop) = open.pop() {
            if known.insert(stop) {
                let conditions = self.needed_at(stop);
                if visits.len() == 1 {
                    open.extend(self.walkthroughs.guide.stop(stop).parent);
                    open.extend(conditions.iter().filter_map(|it| self.answering_stop(it)));
                }
                needed.extend(conditions);
            }
        }
        needed
    }

    /// The conditions without which the dependencies of a stop's step, or of the task that the step
    /// refers to, cannot hold. Empty if the budget is spent.
    fn needed_at(&self, stop: usize) -> Vec<NeededCondition<'a>> {
        let guide = self.walkthroughs.guide;
        let position = guide.stop(stop).position;
        let step = &guide[position];
        let own = (guide.task(position.task), Some(step), step.dependencies());
        let subtask = guide.subtask(step);
        let entered = subtask.map(|subtask| (subtask, None, subtask.dependencies()));
        let mut needed = Vec::new();
        for (task, step, dependencies) in [own].into_iter().chain(entered) {
            let conditions = dependencies.into_iter().flat_map(Dependencies::placed);
            let conditions = conditions.filter(|(placed, _)| placed.is_needed);
            needed.extend(conditions.map(|(placed, condition)| NeededCondition {
                condition,
                stop,
                place: FindingPlace::new(task, step, &placed.path),
            }));
        }
        let work = (1 + needed.len()) * PATH_WORK;
        if !self.walkthroughs.budget.hints.spend(work) {
            needed.clear();
        }
        needed
    }

    /// The stops at the observations that set a variable before a stop.
    fn setters_before(&self, variable: VariableId, stop: usize) -> &[usize] {
        let setters = self.setters.get(&variable).map_or(&[][..], Vec::as_slice);
        let before = setters.partition_point(|setter| *setter < stop);
        setters.get(..before).unwrap_or_default()
    }

    /// The only stop that can set the answer that a condition needs.
    fn answering_stop(&self, needed: &NeededCondition<'_>) -> Option<usize> {
        let CompiledCondition {
            variable,
            criterion,
            ..
        } = needed.condition;
        let needs_answer = !criterion.holds(&VariableValue::Unanswered);
        let read = self.walkthroughs.variables.get(variable)?;
        let is_set_here = needs_answer && read.starts_unanswered;
        match self.setters_before(*variable, needed.stop) {
            [setter] if is_set_here => Some(*setter),
            _ => None,
        }
    }
}
