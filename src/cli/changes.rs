//! The differences between a stored guide and its next state.

mod print;
mod value_lines;

use prost::Message;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::print::text;
use super::{document, guides};
use crate::{
    messages::{
        compare::{
            FieldPath, ManagedDifference, StepDifference, TaskDifference, compare, own_fields,
        },
        managed_documents::managed_documents,
    },
    proto::v1::{FeedbackValue, Step, TaskDocument},
};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Change {
    pub kind: ChangeKind,
    /// The guid of the task; empty for a new task.
    pub task: String,
    /// The guid of the step; empty for the task itself and for a new step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The position of the step, counted from 1; 0 for the task itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub place: usize,
    /// The title of the step, or the name of the task.
    pub title: String,
    /// The path of the field; empty for the whole task or step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The old value of the field; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value of the field; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The position of the step that still leads to a task that is no longer managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtask_step: Option<usize>,
}

/// What happens to a task, a step or a field of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeKind {
    #[default]
    Changed,
    /// A step, or a managed task with its steps, was created.
    Added,
    /// A step was deleted, or a task is no longer managed.
    Removed,
    Moved,
}

impl Change {
    /// A change of a whole task.
    fn for_task(kind: ChangeKind, guid: &str, name: &str) -> Self {
        Self {
            kind,
            task: guid.to_owned(),
            title: name.to_owned(),
            ..Self::default()
        }
    }

    /// A task that is no longer managed. `steps` are the steps of the task that managed it.
    fn for_unmanaged(value: &FeedbackValue, steps: &[Step]) -> Self {
        let mut steps = steps.iter();
        let subtask_step = steps.position(|step| step.subtask_id == value.link);
        Self {
            subtask_step: subtask_step.map(|index| index + 1),
            ..Self::for_task(ChangeKind::Removed, &value.link, &value.value)
        }
    }

    /// A change of a whole step at this index.
    fn for_step(kind: ChangeKind, task: &str, index: usize, step: &Step) -> Self {
        Self {
            step: step.guid.clone(),
            place: index + 1,
            ..Self::for_task(kind, task, &step.title)
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

/// The differences between a stored guide and its next state.
pub(super) fn between(stored: &TaskDocument, planned: &TaskDocument) -> Vec<Change> {
    let mut changes = Vec::new();
    add_task(&compare(stored, planned), &mut changes);
    changes
}

fn add_task(difference: &TaskDifference<'_>, changes: &mut Vec<Change>) {
    let TaskDifference {
        base,
        target,
        fields,
        steps,
    } = difference;
    let (task, name) = (guides::guid(base), guides::name(base));
    if !fields.is_empty() {
        let subject = Change::for_task(ChangeKind::Changed, task, name);
        let [before, after] = [base, target].map(|guide| guide.task.clone().unwrap_or_default());
        add_fields("Task", &subject, fields, [&before, &after], changes);
    }
    for step in steps {
        add_step(step, task, &target.steps, changes);
    }
}

/// Adds the differences of a step. `planned` are the steps of its task after the change.
fn add_step(
    difference: &StepDifference<'_>,
    task: &str,
    planned: &[Step],
    changes: &mut Vec<Change>,
) {
    match (difference.base, difference.target) {
        (None, None) => {}
        (None, Some((index, step))) => changes.push(Change {
            step: String::new(),
            ..Change::for_step(ChangeKind::Added, task, index, step)
        }),
        (Some((index, step)), None) => {
            changes.push(Change::for_step(ChangeKind::Removed, task, index, step));
            let unlinked = managed_documents(step);
            changes.extend(unlinked.map(|(value, _)| Change::for_unmanaged(value, planned)));
        }
        (Some((former, before)), Some((index, after))) => {
            if difference.moved {
                changes.push(Change {
                    before: Some((former + 1).into()),
                    after: Some((index + 1).into()),
                    ..Change::for_step(ChangeKind::Moved, task, former, before)
                });
            }
            let subject = Change::for_step(ChangeKind::Changed, task, index, before);
            let own = [before, after].map(own_fields);
            let messages = own.each_ref().map(|step| &**step);
            add_fields("Step", &subject, &difference.fields, messages, changes);
            for (_, managed) in &difference.managed {
                match managed {
                    ManagedDifference::Added(value, _) => {
                        changes.push(Change::for_task(ChangeKind::Added, "", &value.value));
                    }
                    ManagedDifference::Removed(value, _) => {
                        changes.push(Change::for_unmanaged(value, planned));
                    }
                    ManagedDifference::Changed(task) => add_task(task, changes),
                }
            }
        }
    }
}

/// Adds the fields that differ between two messages of this type.
fn add_fields<M: Message>(
    name: &str,
    subject: &Change,
    fields: &[FieldPath],
    messages: [&M; 2],
    changes: &mut Vec<Change>,
) {
    if fields.is_empty() {
        return;
    }
    let [before, after] = messages.map(|message| document::json(name, message));
    changes.extend(fields.iter().map(|field| Change {
        path: field.to_string(),
        before: field.value(&before).cloned(),
        after: field.value(&after).cloned(),
        ..subject.clone()
    }));
}
