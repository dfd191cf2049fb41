//! Variables whose value would decide the visibility of steps.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use crate::domain::analysis::{
    CompiledCondition, Evaluation, Guide, Truth, VariableId, Visit, budget::Budget,
};

use super::{GuideState, VariablesByName};

const MAX_OPEN_VARIABLES: usize = 100;
const MAX_KEYS: usize = 100;

/// A variable without a known value that steps of unknown visibility depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVariable {
    /// The name that conditions use.
    pub name: String,
    /// How many of the listed steps depend on it.
    pub steps: usize,
    /// Its possible keys, at most `MAX_KEYS`; empty if anything is possible.
    pub keys: Vec<String>,
}

/// The open variables of listed steps, those of most steps first. Names and keys that the budget
/// has no bytes for are left out.
pub fn open_variables<'a>(
    guide: &Guide,
    names: &VariablesByName<'_>,
    state: &GuideState,
    evaluation: &Evaluation<Truth>,
    listed: impl Iterator<Item = &'a Visit<Truth>>,
    budget: &Budget<'_>,
) -> Vec<OpenVariable> {
    let mut steps: BTreeMap<&str, usize> = BTreeMap::new();
    for visit in listed.filter(|visit| visit.visible == Truth::Unknown) {
        let open = unknown_conditions(guide, evaluation, visit)
            .filter(|condition| state.value(condition.variable).is_none())
            .map(|condition| guide[condition.variable].name.as_str());
        for name in open.collect::<BTreeSet<&str>>() {
            *steps.entry(name).or_default() += 1;
        }
    }
    let mut open: Vec<(&str, usize)> = steps.into_iter().collect();
    open.sort_by_key(|(_, steps)| Reverse(*steps));
    let fits = |text: &str| budget.bytes.spend(text.len());
    open.into_iter()
        .take(MAX_OPEN_VARIABLES)
        .take_while(|(name, _)| fits(name))
        .map(|(name, steps)| OpenVariable {
            name: name.to_owned(),
            steps,
            keys: possible_keys(guide, names.get(name).into_iter().flatten())
                .into_iter()
                .take_while(|key| fits(key))
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

/// The conditions that may leave the visibility of a step unknown: its own, and those of its task
/// and subtask if their truth is not known.
fn unknown_conditions<'a>(
    guide: &'a Guide,
    evaluation: &Evaluation<Truth>,
    visit: &Visit<Truth>,
) -> impl Iterator<Item = &'a CompiledCondition> {
    // A preview leaves out no step, so the visits are those of the route.
    let parent = guide.stop(visit.stop).parent;
    let entered = parent.and_then(|parent| evaluation.visits.get(parent)?.subtask);
    let task_holds = entered.map_or(evaluation.task_holds, |task| task.condition);
    let task = (visit.position.task, task_holds);
    let subtask = visit
        .subtask
        .map(|subtask| (subtask.task, subtask.condition));
    let of_tasks = [Some(task), subtask].into_iter().flatten();
    let of_tasks = of_tasks
        .filter(|(_, holds)| *holds == Truth::Unknown)
        .flat_map(|(task, _)| &guide.task(task).conditions);
    of_tasks.chain(&guide[visit.position].conditions)
}

/// The possible keys of variables; none if one of them can have any value.
fn possible_keys<'a>(
    guide: &'a Guide,
    variables: impl Iterator<Item = &'a VariableId>,
) -> Vec<&'a str> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut all = Vec::new();
    for variable in variables.map(|id| &guide[*id]).filter(|it| it.is_read) {
        match &variable.keys {
            None => return Vec::new(),
            Some(keys) => all.extend(keys.keys().filter(|key| seen.insert(key))),
        }
    }
    all.truncate(MAX_KEYS);
    all
}
