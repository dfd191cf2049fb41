//! Variables whose value would decide the visibility of steps.

use std::collections::HashMap;

use crate::domain::analysis::{CompiledGroup, Guide, PossibleValues, Truth, Variable};

use super::{GuideState, ListedStep};

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

/// The open variables, those of most steps first.
pub fn open_variables(
    guide: &Guide,
    state: &GuideState,
    listed: &[ListedStep],
) -> Vec<OpenVariable> {
    let mut names = OpenNames::of(guide);
    let task_groups = guide.tasks.iter().map(|task| {
        let group = task.dependencies.as_ref();
        group.filter(|group| state.truth(group) == Truth::Unknown)
    });
    let task_groups: Vec<Option<&CompiledGroup>> = task_groups.collect();
    let steps = listed.iter().filter(|step| step.visible == Truth::Unknown);
    for (number, listed) in steps.enumerate() {
        let step = guide.step(listed.position);
        let unknown_group = |task: usize| task_groups.get(task).copied().flatten();
        let groups = [
            unknown_group(listed.position.task),
            step.and_then(|step| step.dependencies.as_ref()),
            step.and_then(|step| unknown_group(step.subtask?)),
        ];
        for group in groups.into_iter().flatten() {
            names.count(group, state, number);
        }
    }
    names.into_list(guide)
}

/// How many steps depend on each name.
struct OpenNames<'a> {
    /// For each variable, the index of its name in `names`.
    name_of: Vec<usize>,
    /// Each name, how many steps depend on it, and the last step that was counted.
    names: Vec<(&'a str, usize, Option<usize>)>,
}

impl<'a> OpenNames<'a> {
    fn of(guide: &'a Guide) -> Self {
        let mut indexes = HashMap::new();
        let mut names = Vec::new();
        let variables = guide.variables.iter();
        let name_of = variables.map(|variable| {
            *indexes.entry(variable.name.as_str()).or_insert_with(|| {
                names.push((variable.name.as_str(), 0, None));
                names.len() - 1
            })
        });
        Self {
            name_of: name_of.collect(),
            names,
        }
    }

    /// Counts a step once for each name of a group whose value is not known.
    fn count(&mut self, group: &CompiledGroup, state: &GuideState, step: usize) {
        group.for_each(&mut |condition| {
            if state.value(condition.variable).is_some() {
                return;
            }
            let name = self.name_of.get(condition.variable.0);
            if let Some((_, count, last)) = name.and_then(|name| self.names.get_mut(*name))
                && last.replace(step) != Some(step)
            {
                *count += 1;
            }
        });
    }

    fn into_list(self, guide: &Guide) -> Vec<OpenVariable> {
        let mut open = self.names;
        open.retain(|(_, count, _)| *count > 0);
        open.sort_by(|(one, count, _), (other, others, _)| others.cmp(count).then(one.cmp(other)));
        open.truncate(MAX_OPEN_VARIABLES);
        let mut room = MAX_NAME_AND_KEY_BYTES;
        let mut fits = |text: &str| {
            let rest = room.checked_sub(text.len());
            room = rest.unwrap_or_default();
            rest.is_some()
        };
        let mut list = Vec::with_capacity(open.len());
        for (name, steps, _) in open {
            if !fits(name) {
                break;
            }
            let variables = guide.variables.iter();
            let same = variables.filter(|variable| variable.name == name && variable.is_read);
            let keys = keys(same).into_iter().take_while(|key| fits(key));
            list.push(OpenVariable {
                name: name.to_owned(),
                steps,
                keys: keys.collect(),
            });
        }
        list
    }
}

/// The possible keys of the variables of a name; none if one of them can have any value.
fn keys<'a>(variables: impl Iterator<Item = &'a Variable>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for variable in variables {
        match &variable.possible {
            PossibleValues::Anything => return Vec::new(),
            PossibleValues::Keys(keys) => {
                for key in keys.texts().take(MAX_KEYS) {
                    if all.len() < MAX_KEYS && !all.iter().any(|one| one == key) {
                        all.push(key.to_owned());
                    }
                }
            }
        }
    }
    all
}
