//! The question of a step.

use std::collections::HashSet;

use super::{REQUIRED, at_most, line, text_violation};
use crate::{
    domain::{
        feedback::{Feedback, FeedbackValue, TYPE_ENUM, VALUES_MAX},
        text::{Label, NAME_MAX, check},
        violation::{Path, Reason, Violations},
    },
    grpc::ignored::Ignored,
    proto::v1,
};

/// The one element of a `feedback_config`; `None` if there is none.
pub fn feedback(
    list: Vec<v1::FeedbackConfig>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Feedback> {
    if !at_most(list.len(), 1, path, faults) {
        return None;
    }
    let message = list.into_iter().next()?;
    config(message, &path.index(0), faults)
}

/// The one element of a translation's `feedback_config`, which links nothing.
pub fn translated(
    mut list: Vec<v1::FeedbackConfig>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Feedback> {
    for config in &mut list {
        config.linked = None;
    }
    feedback(list, path, faults)
}

/// Lists what a step's question was sent with that the system sets.
pub fn note(list: &[v1::FeedbackConfig], ignored: &mut Ignored) {
    ignored.note([("feedback_config.values.link", has_link(list))]);
}

/// Lists what a translated question was sent with that has no meaning there.
pub fn note_translated(list: &[v1::FeedbackConfig], ignored: &mut Ignored) {
    let linked = list.iter().any(|config| config.linked.is_some());
    ignored.note([
        ("translations.feedback_config.linked", linked),
        ("translations.feedback_config.values.link", has_link(list)),
    ]);
}

fn has_link(list: &[v1::FeedbackConfig]) -> bool {
    list.iter()
        .flat_map(|config| &config.values)
        .any(|value| !value.link.is_empty())
}

fn config(
    message: v1::FeedbackConfig,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Feedback> {
    let v1::FeedbackConfig {
        name,
        r#type,
        linked,
        values,
    } = message;
    let name = line(name, &path.field("name"), faults);
    check_type(&r#type, &path.field("type"), faults);
    let linked = linked.unwrap_or_default();
    let values = all_values(values, linked, &path.field("values"), faults);
    Some(Feedback {
        name: name?,
        linked,
        values: values?,
    })
}

fn check_type(kind: &str, path: &Path<'_>, faults: &mut Violations) {
    match kind {
        TYPE_ENUM => {}
        "" => faults.add(path, Reason::FieldRequired, REQUIRED),
        _ => faults.add(path, Reason::FieldInvalid, "must be `enum`"),
    }
}

fn all_values(
    list: Vec<v1::FeedbackValue>,
    linked: bool,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Vec<FeedbackValue>> {
    if list.is_empty() {
        faults.add(path, Reason::FieldRequired, "needs at least one value");
    }
    if !at_most(list.len(), VALUES_MAX, path, faults) {
        return None;
    }
    check_keys(&list, path, faults);
    let values = list.into_iter().enumerate();
    let value = |(index, message)| value(message, linked, &path.index(index), faults);
    Some(values.filter_map(value).collect())
}

fn check_keys(list: &[v1::FeedbackValue], path: &Path<'_>, faults: &mut Violations) {
    let mut keys = HashSet::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        if !keys.insert(value.key.as_str()) && !value.key.is_empty() {
            let description = "is the key of another value";
            faults.add(
                &path.index(index).field("key"),
                Reason::FieldInvalid,
                description,
            );
        }
    }
}

/// One value. Its `link` is the system's; whoever decodes the step lists it.
fn value(
    message: v1::FeedbackValue,
    linked: bool,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<FeedbackValue> {
    let v1::FeedbackValue {
        key,
        value,
        link: _,
        task_json,
    } = message;
    let key = line(key, &path.field("key"), faults);
    let value = label(value, linked, &path.field("value"), faults);
    if task_json.is_some() {
        let description = "is for ImportTask only";
        faults.add(&path.field("task_json"), Reason::FieldInvalid, description);
    }
    Some(FeedbackValue {
        key: key?,
        value: value?,
        link: None,
    })
}

/// What is shown for a value; of a linked one it becomes a task's name.
fn label(text: String, linked: bool, path: &Path<'_>, faults: &mut Violations) -> Option<Label> {
    if linked && let Err(fault) = check(&text, NAME_MAX) {
        faults.push(text_violation(fault, path));
        return None;
    }
    line(text, path, faults)
}
