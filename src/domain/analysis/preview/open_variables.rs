//! Variables whose value would decide the visibility of steps.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use crate::domain::analysis::{CompiledCondition, Truth, Visit, budget::Budget};

use super::visibility::GuideView;

const MAX_OPEN_VARIABLES: usize = 100;
const MAX_KEYS: usize = 100;

/// A variable without a known value that steps of unknown visibility depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVariable {
    /// The name that conditions use.
    pub name: String,
    /// The number of listed steps that depend on it.
    pub steps: usize,
    /// Its possible keys, at most `MAX_KEYS`; empty if any value is possible.
    pub keys: Vec<String>,
}

impl GuideView<'_> {
    /// The open variables of listed steps, sorted by the number of steps that depend on them, the
    /// most first. Names and keys beyond the byte budget are left out.
    pub fn open_variables<'a>(
        &self,
        listed: impl Iterator<Item = &'a Visit<Truth>>,
        budget: &Budget<'_>,
    ) -> Vec<OpenVariable> {
        let mut steps: BTreeMap<&str, usize> = BTreeMap::new();
        for visit in listed.filter(|visit| visit.visible == Truth::Unknown) {
            let open = self.unknown_conditions(visit);
            let open = open.filter(|condition| self.state.value(condition.variable).is_none());
            let open = open.map(|condition| self.guide[condition.variable].name.as_str());
            for name in open.collect::<BTreeSet<&str>>() {
                *steps.entry(name).or_default() += 1;
            }
        }
        let mut open: Vec<(&str, usize)> = steps.into_iter().collect();
        open.sort_by_key(|(_, steps)| Reverse(*steps));
        let fits = |text: &str| budget.bytes.spend(text.len());
        let open = open.into_iter().take(MAX_OPEN_VARIABLES);
        let open = open.take_while(|(name, _)| fits(name));
        open.map(|(name, steps)| {
            let keys = self.possible_keys(name);
            let keys = keys.into_iter().take_while(|key| fits(key));
            OpenVariable {
                name: name.to_owned(),
                steps,
                keys: keys.map(str::to_owned).collect(),
            }
        })
        .collect()
    }

    /// The conditions that may leave the visibility of a step unknown: its own, and those of its
    /// task and subtask if their truth is unknown.
    fn unknown_conditions(&self, visit: &Visit<Truth>) -> impl Iterator<Item = &CompiledCondition> {
        // A preview leaves out no step, so visits and stops have the same indexes.
        let parent = self.guide.stop(visit.stop).parent;
        let entered = parent.and_then(|parent| self.evaluation.visits.get(parent)?.subtask);
        let task_holds = entered.map_or(self.evaluation.task_holds, |task| task.condition);
        let subtask = visit.subtask.map(|it| (it.task, it.condition));
        let tasks = [Some((visit.position.task, task_holds)), subtask];
        let unknown = tasks.into_iter().flatten();
        let unknown = unknown.filter(|(_, holds)| *holds == Truth::Unknown);
        unknown
            .flat_map(|(task, _)| &self.guide.task(task).conditions)
            .chain(&self.guide[visit.position].conditions)
    }

    /// The possible keys of the variables with a name; empty if one of them can have any value.
    fn possible_keys(&self, name: &str) -> Vec<&str> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut all = Vec::new();
        let variables = self.guide.variables_named(name);
        for variable in variables.map(|id| &self.guide[id]).filter(|it| it.is_read) {
            match &variable.keys {
                None => return Vec::new(),
                Some(keys) => all.extend(keys.iter().filter(|key| seen.insert(key))),
            }
        }
        all.truncate(MAX_KEYS);
        all
    }
}
