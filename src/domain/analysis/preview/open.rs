//! Variables whose value would decide the visibility of steps.

use std::collections::{HashMap, HashSet};

use crate::domain::analysis::{
    CompiledCondition, Evaluation, Guide, PossibleValues, Truth, Visit, budget::Budget,
};

use super::GuideState;

pub const MAX_OPEN_VARIABLES: usize = 100;
pub const MAX_KEYS: usize = 100;

/// A variable without a known value that steps of unknown visibility depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVariable {
    /// The name that conditions use.
    pub name: String,
    /// How many of the listed steps depend on it.
    pub steps: usize,
    /// Its possible keys, at most [`MAX_KEYS`]; empty if anything is possible.
    pub keys: Vec<String>,
}

/// The open variables of listed steps, those of most steps first. Names and keys that the budget
/// has no bytes for are left out.
pub fn open_variables<'a>(
    guide: &Guide,
    state: &GuideState,
    evaluation: &Evaluation<Truth>,
    listed: impl Iterator<Item = &'a Visit<Truth>>,
    budget: &Budget<'_>,
) -> Vec<OpenVariable> {
    // The first variable of each name stands for all.
    let mut first: HashMap<&str, usize> = HashMap::new();
    let variables = guide.variables.iter().enumerate();
    let first: Vec<usize> = variables
        .map(|(index, variable)| *first.entry(&variable.name).or_insert(index))
        .collect();
    // How many steps depend on a name, and the last of them.
    let mut dependents = vec![(0_usize, None); first.len()];
    for visit in listed.filter(|visit| visit.visible == Truth::Unknown) {
        for condition in unknown_conditions(guide, evaluation, visit) {
            let first = first.get(condition.variable.0);
            if let Some((count, last)) = first.and_then(|first| dependents.get_mut(*first))
                && state.value(condition.variable).is_none()
                && last.replace(visit.stop) != Some(visit.stop)
            {
                *count += 1;
            }
        }
    }
    let counts = guide.variables.iter().zip(dependents);
    let mut open: Vec<(&str, usize)> = counts
        .filter(|(_, (count, _))| *count > 0)
        .map(|(variable, (count, _))| (variable.name.as_str(), count))
        .collect();
    open.sort_by(|(one, count), (other, others)| others.cmp(count).then(one.cmp(other)));
    let fits = |text: &str| budget.bytes.spend(text.len());
    open.into_iter()
        .take(MAX_OPEN_VARIABLES)
        .take_while(|(name, _)| fits(name))
        .map(|(name, steps)| OpenVariable {
            name: name.to_owned(),
            steps,
            keys: possible_keys(guide, name)
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

/// The possible keys of the variables of a name; none if one of them can have any value.
fn possible_keys<'a>(guide: &'a Guide, name: &str) -> Vec<&'a str> {
    let variables = guide.variables.iter();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut all = Vec::new();
    for variable in variables.filter(|variable| variable.name == name && variable.is_read) {
        match &variable.possible {
            PossibleValues::Anything => return Vec::new(),
            PossibleValues::Keys(keys) => all.extend(keys.keys().filter(|key| seen.insert(key))),
        }
    }
    all.truncate(MAX_KEYS);
    all
}
