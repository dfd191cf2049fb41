//! The differences between a stored guide and what it is about to become.

mod print;
mod value_lines;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub(super) use self::print::text;
use super::document::{self, DocumentError};
use crate::proto::v1::{FeedbackValue, Step, StepType, Task, TaskDocument};

/// Fields of a task that are not compared, as a document does not set them.
/// `dependency_shorthand` says the same as `dependencies`.
const UNCOMPARED_TASK_FIELDS: [&str; 16] = [
    "account_id",
    "created_ts",
    "dependency_shorthand",
    "dirty_record",
    "etag",
    "guid",
    "idx",
    "modified_ts",
    "mvn_indexed",
    "mvn_info",
    "mvn_ts",
    "mvn_version",
    "parent_guid",
    "product_id",
    "steps",
    "type",
];
/// The same of a step.
const UNCOMPARED_STEP_FIELDS: [&str; 12] = [
    "account_id",
    "created_ts",
    "dependency_shorthand",
    "dirty_record",
    "etag",
    "guid",
    "link",
    "modified_ts",
    "product_id",
    "r_data",
    "task",
    "type",
];
const TRANSLATIONS: &str = "translations";

/// A difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    pub kind: ChangeKind,
    /// The guid of the task; empty for one that is created.
    pub task: String,
    /// The guid of the step; empty for the task itself, and for a step that is created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The place of the step, counted from 1; 0 for the task itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub place: usize,
    /// The title of the step, or the name of the task.
    pub title: String,
    /// The path of the field; empty for the whole task or step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What the field has; absent if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it will have; absent if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The place of the step that still leads to a task which is managed no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtask_step: Option<usize>,
}

/// What happens to a task, a step or a field of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeKind {
    /// A field changes.
    Changed,
    /// A step, or a managed task with its steps, is created.
    Added,
    /// A step is deleted, or a task is managed no longer.
    Removed,
    /// A step gets another place.
    Moved,
}

impl Change {
    /// A change of a whole task.
    fn of_task(kind: ChangeKind, guid: &str, name: &str) -> Self {
        Self {
            kind,
            task: guid.to_owned(),
            step: String::new(),
            place: 0,
            title: name.to_owned(),
            path: String::new(),
            before: None,
            after: None,
            subtask_step: None,
        }
    }

    /// A change of a whole step, which stands at this index.
    fn of_step(kind: ChangeKind, task: &str, index: usize, step: &Step) -> Self {
        Self {
            step: step.guid.clone(),
            place: index + 1,
            ..Self::of_task(kind, task, &step.title)
        }
    }

    /// Whether the guide loses a step.
    pub fn removes_step(&self) -> bool {
        self.kind == ChangeKind::Removed && self.place > 0
    }
}

fn is_zero(place: &usize) -> bool {
    *place == 0
}

/// The differences between a stored guide and a planned one that has its ids.
pub(super) fn between(
    stored: &TaskDocument,
    planned: &TaskDocument,
) -> Result<Vec<Change>, DocumentError> {
    let mut changes = Vec::new();
    add_guide(stored, planned, &mut changes)?;
    Ok(changes)
}

fn add_guide(
    stored: &TaskDocument,
    planned: &TaskDocument,
    changes: &mut Vec<Change>,
) -> Result<(), DocumentError> {
    let before = stored.task.clone().unwrap_or_default();
    let after = planned.task.clone().unwrap_or_default();
    let task = before.guid.clone();
    let subject = Change::of_task(ChangeKind::Changed, &task, &before.name);
    let fields = |task: &Task| Ok::<_, DocumentError>(document::json("Task", task)?.into_fields());
    let (before, after) = (fields(&before)?, fields(&after)?);
    add_fields(&subject, before, after, &UNCOMPARED_TASK_FIELDS, changes);
    add_steps(&task, stored, planned, changes)
}

fn add_steps(
    task: &str,
    stored: &TaskDocument,
    planned: &TaskDocument,
    changes: &mut Vec<Change>,
) -> Result<(), DocumentError> {
    let places: BTreeMap<&str, usize> = stored
        .steps
        .iter()
        .enumerate()
        .map(|(place, step)| (step.guid.as_str(), place))
        .collect();
    let kept: Vec<Option<usize>> = planned
        .steps
        .iter()
        .map(|step| places.get(step.guid.as_str()).copied())
        .collect();
    let known: Vec<usize> = kept.iter().copied().flatten().collect();
    let unmoved = longest_increasing(&known);
    let subject = |kind, index, step: &Step| Change::of_step(kind, task, index, step);
    for (place, (step, before)) in planned.steps.iter().zip(&kept).enumerate() {
        let Some(before) = before else {
            changes.push(subject(ChangeKind::Added, place, step));
            continue;
        };
        let Some(stored) = stored.steps.get(*before) else {
            continue;
        };
        if unmoved.binary_search(before).is_err() {
            changes.push(Change {
                before: Some((before + 1).into()),
                after: Some((place + 1).into()),
                ..subject(ChangeKind::Moved, *before, stored)
            });
        }
        let changed = subject(ChangeKind::Changed, place, stored);
        let (before, after) = (step_fields(stored)?, step_fields(step)?);
        add_fields(&changed, before, after, &UNCOMPARED_STEP_FIELDS, changes);
        add_managed(stored, step, &planned.steps, changes)?;
    }
    let gone = stored.steps.iter().enumerate();
    let gone = gone.filter(|(place, _)| !known.contains(place));
    changes.extend(gone.map(|(place, step)| subject(ChangeKind::Removed, place, step)));
    Ok(())
}

/// The fields of a step without its managed tasks, which are compared as guides.
fn step_fields(step: &Step) -> Result<Vec<(String, Value)>, DocumentError> {
    let mut step = step.clone();
    let configs = step.feedback_config.iter_mut();
    for value in configs.flat_map(|config| &mut config.values) {
        value.task_json = None;
        value.link.clear();
    }
    if step.r#type() == StepType::Subtask {
        // It follows the task that the step refers to.
        step.title.clear();
    }
    Ok(document::json("Step", &step)?.into_fields())
}

/// Adds the differences of the tasks that an observation manages. `steps` are those of its
/// task after the change.
fn add_managed(
    stored: &Step,
    planned: &Step,
    steps: &[Step],
    changes: &mut Vec<Change>,
) -> Result<(), DocumentError> {
    fn managed(step: &Step) -> Vec<&FeedbackValue> {
        let configs = step.feedback_config.iter();
        let linked = configs.filter(|config| config.linked());
        linked.flat_map(|config| &config.values).collect()
    }
    let (stored, planned) = (managed(stored), managed(planned));
    for value in &planned {
        match stored.iter().find(|before| before.key == value.key) {
            None => changes.push(Change::of_task(ChangeKind::Added, "", &value.value)),
            Some(before) => {
                let empty = TaskDocument::default();
                let (before, after) = (
                    before.task_json.as_deref().unwrap_or(&empty),
                    value.task_json.as_deref().unwrap_or(&empty),
                );
                add_guide(before, after, changes)?;
            }
        }
    }
    let is_planned = |key: &str| planned.iter().any(|value| value.key == key);
    for value in stored.iter().filter(|value| !is_planned(&value.key)) {
        let mut steps = steps.iter();
        let subtask_step = steps.position(|step| step.subtask_id == value.link);
        changes.push(Change {
            subtask_step: subtask_step.map(|index| index + 1),
            ..Change::of_task(ChangeKind::Removed, &value.link, &value.value)
        });
    }
    Ok(())
}

/// Adds the fields of a task or step that differ, those of translations one by one.
fn add_fields(
    subject: &Change,
    before: Vec<(String, Value)>,
    after: Vec<(String, Value)>,
    uncompared: &[&str],
    changes: &mut Vec<Change>,
) {
    let mut names: Vec<String> = before.iter().map(|(name, _)| name.clone()).collect();
    let added = after.iter().map(|(name, _)| name.clone());
    names.extend(added.filter(|name| before.iter().all(|(known, _)| known != name)));
    let get = |fields: &[(String, Value)], name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    for name in names.iter().filter(|it| !uncompared.contains(&it.as_str())) {
        let depth = if name == TRANSLATIONS { 2 } else { 0 };
        let (before, after) = (get(&before, name), get(&after, name));
        add_values(subject, name, before, after, depth, changes);
    }
}

/// Adds a value if it differs; of objects down to `depth`, the members that do.
fn add_values(
    subject: &Change,
    path: &str,
    before: Option<Value>,
    after: Option<Value>,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    if before == after {
        return;
    }
    match (depth, before, after) {
        (1.., Some(Value::Object(mut before)), Some(Value::Object(mut after))) => {
            let mut names: Vec<String> = before.keys().cloned().collect();
            names.extend(after.keys().cloned());
            names.sort();
            names.dedup();
            for name in names {
                let (before, after) = (before.remove(&name), after.remove(&name));
                let path = format!("{path}.{name}");
                add_values(subject, &path, before, after, depth - 1, changes);
            }
        }
        (_, before, after) => changes.push(Change {
            path: path.to_owned(),
            before,
            after,
            ..subject.clone()
        }),
    }
}

/// The longest increasing subsequence of a list. Elements that are not in it have moved.
fn longest_increasing(list: &[usize]) -> Vec<usize> {
    // `ends[n]` is the index of the smallest element that ends a subsequence of n + 1 elements.
    let mut ends: Vec<usize> = Vec::new();
    // For each element, the index of the one before it in the longest subsequence it ends.
    let mut before: Vec<Option<usize>> = Vec::with_capacity(list.len());
    for (index, number) in list.iter().enumerate() {
        let length = ends.partition_point(|end| list.get(*end) < Some(number));
        before.push(length.checked_sub(1).and_then(|at| ends.get(at).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut longest = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        longest.extend(list.get(index));
        next = before.get(index).copied().flatten();
    }
    longest.reverse();
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_increasing_subsequence_is_found() {
        for (list, longest) in [
            (&[][..], &[][..]),
            (&[0, 1, 2], &[0, 1, 2]),
            (&[1, 2, 0], &[1, 2]),
            (&[2, 0, 1, 3], &[0, 1, 3]),
            (&[3, 2, 1, 0], &[0]),
            (&[4, 0, 3, 1, 2, 5], &[0, 1, 2, 5]),
        ] {
            assert_eq!(longest_increasing(list), longest, "{list:?}");
        }
    }
}
