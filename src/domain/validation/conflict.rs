//! Explains why no walkthrough sees a step: conditions on the way to it that read one variable,
//! and that no value of it meets together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::domain::{
    analysis::{CompiledCondition, Guide, StepPosition, VariableId, VariableValue},
    dependency::{Comparison, PlacedCondition},
};

use super::{
    budget::{Budget, Work},
    finding::FindingPlace,
    value_classes::ValueClasses,
    walkthrough::{Visit, Walkthroughs},
};

/// A condition that must hold for a step to be seen.
struct NeededCondition<'a> {
    condition: &'a CompiledCondition,
    /// The visit at which it must hold.
    visit: usize,
    /// Whether it is of the task that the visited step refers to.
    is_of_subtask: bool,
    path: String,
}

/// Finds conflicts in a guide.
pub struct ConflictSearch<'a> {
    guide: &'a Guide,
    walkthroughs: &'a Walkthroughs,
    budget: &'a Budget<'a>,
    /// The first visit of each step, as an index, and how many there are.
    visits_of: HashMap<StepPosition, (usize, usize)>,
    /// The visits of the observations that set each variable.
    setters: HashMap<VariableId, Vec<usize>>,
}

impl<'a> ConflictSearch<'a> {
    pub fn new(guide: &'a Guide, walkthroughs: &'a Walkthroughs, budget: &'a Budget<'a>) -> Self {
        let mut search = Self {
            guide,
            walkthroughs,
            budget,
            visits_of: HashMap::new(),
            setters: HashMap::new(),
        };
        for (index, visit) in walkthroughs.visits.iter().enumerate() {
            let visits = search.visits_of.entry(visit.position);
            visits.or_insert((index, 0)).1 += 1;
            let step = guide.step(visit.position);
            for variable in step.map_or(&[][..], |step| &step.sets) {
                search.setters.entry(*variable).or_default().push(index);
            }
        }
        search
    }

    /// Conditions on one variable that a step needs and that no value meets together, without those
    /// that can be left out. Empty if none were found.
    ///
    /// A step needs its own conditions and those of the task that it refers to. If walkthroughs
    /// come to it only once, it also needs the subtask step that enters its task, and the
    /// observations that alone set a variable that it needs.
    pub fn find(&self, position: StepPosition) -> Vec<FindingPlace> {
        let Some((visit, count)) = self.visits_of.get(&position) else {
            return Vec::new();
        };
        let needed = match count {
            1 => self.needed_on_the_way(*visit),
            _ => self.needed_at(*visit),
        };
        // Between two observations that set a variable, it has one value.
        let mut by_variable: BTreeMap<(VariableId, usize), Vec<NeededCondition<'_>>> =
            BTreeMap::new();
        for one in needed {
            let variable = one.condition.variable;
            let key = (variable, self.setters_before(variable, one.visit).len());
            by_variable.entry(key).or_default().push(one);
        }
        let conflicts = by_variable
            .into_iter()
            .filter_map(|((variable, _), needed)| {
                let classes = self.walkthroughs.classes_of(variable)?;
                self.contradicting(classes, needed)
            });
        let conflict = conflicts.take(1).flatten();
        conflict.filter_map(|one| self.place(&one)).collect()
    }

    /// Returns a minimal contradicting subset, or `None` if the conditions do not contradict or the budget
    /// is spent.
    fn contradicting(
        &self,
        classes: &ValueClasses,
        mut needed: Vec<NeededCondition<'a>>,
    ) -> Option<Vec<NeededCondition<'a>>> {
        let work = needed.len().saturating_mul(classes.count());
        if !self.budget.spend(Work::Conflicts, work) {
            return None;
        }
        let unmet_by = |condition: &CompiledCondition| -> Vec<bool> {
            let apart = classes.distinguished_from_unanswered(condition);
            let holds_apart = condition.operator != Comparison::NotEqual;
            let classes = 0..classes.count();
            classes
                .map(|class| apart.contains(&class) != holds_apart)
                .collect()
        };
        // For each class, how many of the conditions it does not meet.
        let mut unmet = vec![0_usize; classes.count()];
        for one in &needed {
            for (count, is_unmet) in unmet.iter_mut().zip(unmet_by(one.condition)) {
                *count += usize::from(is_unmet);
            }
        }
        if unmet.contains(&0) {
            return None;
        }
        needed.retain(|one| {
            let is_unmet = unmet_by(one.condition);
            let is_needed = unmet.iter().zip(&is_unmet).any(|pair| pair == (&1, &true));
            if !is_needed {
                for (count, is_unmet) in unmet.iter_mut().zip(is_unmet) {
                    *count -= usize::from(is_unmet);
                }
            }
            is_needed
        });
        Some(needed)
    }

    /// The conditions without which a walkthrough does not see a visited step, in the order of the
    /// walk.
    fn needed_on_the_way(&self, visit: usize) -> Vec<NeededCondition<'a>> {
        let mut needed = Vec::new();
        let mut known = BTreeSet::new();
        let mut open = vec![visit];
        while let Some(visit) = open.pop() {
            if !known.insert(visit) {
                continue;
            }
            open.extend(self.entering_visit(visit));
            let conditions = self.needed_at(visit);
            open.extend(
                conditions
                    .iter()
                    .filter_map(|one| self.answering_visit(one)),
            );
            needed.extend(conditions);
        }
        needed
    }

    /// The conditions without which those of a visited step, and those of the task that it refers
    /// to, cannot hold.
    fn needed_at(&self, visit: usize) -> Vec<NeededCondition<'a>> {
        let step = self
            .visit(visit)
            .and_then(|it| self.guide.step(it.position));
        let Some(step) = step else {
            return Vec::new();
        };
        let subtask = self.guide.subtask(step);
        let of_subtask = subtask.map(|task| {
            let source = &task.source.task.content.dependencies;
            (source, &task.dependencies, true)
        });
        let of_step = (
            &step.source.step.content.dependencies,
            &step.dependencies,
            false,
        );
        let mut needed = Vec::new();
        for (source, compiled, is_of_subtask) in [Some(of_step), of_subtask].into_iter().flatten() {
            if let Some((source, compiled)) = source.as_ref().zip(compiled.as_ref()) {
                let conditions = compiled.with_sources(source);
                let conditions = conditions.filter(|(placed, _)| placed.is_needed);
                needed.extend(conditions.map(|(placed, condition)| {
                    let PlacedCondition { path, .. } = placed;
                    NeededCondition {
                        condition,
                        visit,
                        is_of_subtask,
                        path,
                    }
                }));
            }
        }
        // To make a path takes about as long as to look at this many classes.
        const PATH_WORK: usize = 32;
        match self
            .budget
            .spend(Work::Conflicts, (1 + needed.len()) * PATH_WORK)
        {
            true => needed,
            false => Vec::new(),
        }
    }

    fn visit(&self, visit: usize) -> Option<&Visit> {
        self.walkthroughs.visits.get(visit)
    }

    /// The visits of the observations that set a variable before a visit.
    fn setters_before(&self, variable: VariableId, visit: usize) -> &[usize] {
        let setters = self.setters.get(&variable).map_or(&[][..], Vec::as_slice);
        let before = setters.partition_point(|setter| *setter < visit);
        setters.get(..before).unwrap_or_default()
    }

    /// The visit of the subtask step that enters the task of a visit.
    fn entering_visit(&self, visit: usize) -> Option<usize> {
        let stop = self.guide.route.get(self.visit(visit)?.stop)?.parent?;
        let visits = &self.walkthroughs.visits;
        visits.binary_search_by_key(&stop, |visit| visit.stop).ok()
    }

    /// The only visit that can set the answer that a condition needs.
    fn answering_visit(&self, needed: &NeededCondition<'_>) -> Option<usize> {
        let variable = needed.condition.variable;
        let is_unanswered = self.walkthroughs.starts_unanswered(variable);
        match self.setters_before(variable, needed.visit) {
            [setter] if is_unanswered && !needed.condition.holds(&VariableValue::Unanswered) => {
                Some(*setter)
            }
            _ => None,
        }
    }

    fn place(&self, needed: &NeededCondition<'_>) -> Option<FindingPlace> {
        let position = self.visit(needed.visit)?.position;
        let step = self.guide.step(position)?;
        match needed.is_of_subtask {
            true => {
                let subtask = self.guide.subtask(step)?;
                Some(FindingPlace::new(subtask, None, &needed.path))
            }
            false => {
                let task = self.guide.tasks.get(position.task)?;
                Some(FindingPlace::new(task, Some(step), &needed.path))
            }
        }
    }
}
