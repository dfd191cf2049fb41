//! Variables whose value would decide the visibility of steps.

use std::collections::{HashMap, HashSet};

use crate::domain::analysis::{CompiledGroup, Evaluation, Guide, PossibleValues, Truth, Visit};

use super::GuideState;

/// Most open variables of a preview.
pub const MAX_OPEN_VARIABLES: usize = 100;
/// Most keys of an open variable.
pub const MAX_KEYS: usize = 100;
/// Most bytes of all names and keys together; names and keys beyond it are left out.
const MAX_NAME_AND_KEY_BYTES: usize = 1024 * 1024;

/// A variable without a known value that steps of unknown visibility depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVariable {
    /// Its name, as conditions read it.
    pub name: String,
    /// How many of the listed steps depend on it.
    pub steps: usize,
    /// Its possible keys, at most [`MAX_KEYS`]; empty if anything is possible.
    pub keys: Vec<String>,
}

/// How many steps depend on a name, and the last of them.
#[derive(Clone, Copy, Debug, Default)]
struct Dependents {
    count: usize,
    last: Option<usize>,
}

/// The open variables of listed steps, those of most steps first.
pub fn open_variables<'a>(
    guide: &Guide,
    state: &GuideState,
    evaluation: &Evaluation<Truth>,
    listed: impl Iterator<Item = &'a Visit<Truth>>,
) -> Vec<OpenVariable> {
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    let names = guide.variables.iter().map(|variable| {
        let next = indexes.len();
        *indexes.entry(&variable.name).or_insert(next)
    });
    let name_of_variable: Vec<usize> = names.collect();
    let mut dependents = vec![Dependents::default(); indexes.len()];
    for visit in listed.filter(|visit| visit.visible == Truth::Unknown) {
        for group in unknown_groups(guide, evaluation, visit) {
            for condition in group.conditions() {
                let name = name_of_variable.get(condition.variable.0);
                let dependents = name.and_then(|name| dependents.get_mut(*name));
                if let Some(dependents) = dependents
                    && state.value(condition.variable).is_none()
                    && dependents.last.replace(visit.stop) != Some(visit.stop)
                {
                    dependents.count += 1;
                }
            }
        }
    }
    let counts = indexes.into_iter().filter_map(|(name, index)| {
        let count = dependents.get(index)?.count;
        (count > 0).then_some((name, count))
    });
    let mut open: Vec<(&str, usize)> = counts.collect();
    open.sort_by(|(one, count), (other, others)| others.cmp(count).then(one.cmp(other)));
    open.truncate(MAX_OPEN_VARIABLES);
    let mut bytes_left = MAX_NAME_AND_KEY_BYTES;
    let mut fits = |text: &str| {
        let left = bytes_left.checked_sub(text.len());
        bytes_left = left.unwrap_or_default();
        left.is_some()
    };
    let mut list = Vec::with_capacity(open.len());
    for (name, steps) in open {
        if !fits(name) {
            break;
        }
        let keys = possible_keys(guide, name)
            .into_iter()
            .take_while(|key| fits(key));
        list.push(OpenVariable {
            name: name.to_owned(),
            steps,
            keys: keys.map(str::to_owned).collect(),
        });
    }
    list
}

/// The dependencies that may leave the visibility of a step unknown: its own, and those of its task
/// and subtask if their truth is not known.
fn unknown_groups<'a>(
    guide: &'a Guide,
    evaluation: &Evaluation<Truth>,
    visit: &Visit<Truth>,
) -> impl Iterator<Item = &'a CompiledGroup> {
    let step = guide.step(visit.position);
    // A preview leaves out no step, so the visits are those of the route.
    let parent = guide.route.get(visit.stop).and_then(|stop| stop.parent);
    let parent = parent.and_then(|parent| evaluation.visits.get(parent)?.subtask);
    let task_holds = parent.map_or(evaluation.task_holds, |parent| parent.condition);
    let task = guide.tasks.get(visit.position.task);
    let task = task.filter(|_| task_holds == Truth::Unknown);
    let subtask = visit
        .subtask
        .filter(|subtask| subtask.condition == Truth::Unknown);
    let subtask = subtask.and_then(|subtask| guide.tasks.get(subtask.task));
    let groups = [
        task.and_then(|task| task.dependencies.as_ref()),
        step.and_then(|step| step.dependencies.as_ref()),
        subtask.and_then(|task| task.dependencies.as_ref()),
    ];
    groups.into_iter().flatten()
}

/// The possible keys of the variables of a name; none if one of them can have any value.
fn possible_keys<'a>(guide: &'a Guide, name: &str) -> Vec<&'a str> {
    let variables = guide.variables.iter();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut all = Vec::new();
    for variable in variables.filter(|variable| variable.name == name && variable.is_read) {
        match &variable.possible {
            PossibleValues::Anything => return Vec::new(),
            PossibleValues::Keys(keys) => all.extend(keys.texts().filter(|key| seen.insert(key))),
        }
    }
    all.truncate(MAX_KEYS);
    all
}
