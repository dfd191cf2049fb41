//! The `feedback_config` of a step or of its translation.

use std::collections::HashSet;

use super::{
    REQUIRED,
    field::{Field, non_blank_text},
};
use crate::{
    domain::{
        feedback::{Feedback, FeedbackValue, MAX_FEEDBACK_VALUES, TYPE_ENUM},
        text::{Label, MAX_NAME_CHARS, check},
        violation::Reason,
    },
    messages::ignored::Ignored,
    proto::v1,
};

/// The one element of a step's `feedback_config`; `None` if it is empty. Of several, the
/// first is checked.
pub fn feedback(list: Vec<v1::FeedbackConfig>, mut field: Field<'_>) -> Option<Feedback> {
    field.at_most(list.len(), 1);
    let message = list.into_iter().next()?;
    config(message, field.index(0))
}

/// The one element of a translation's `feedback_config`, whose `linked` is ignored.
pub fn translated(mut list: Vec<v1::FeedbackConfig>, field: Field<'_>) -> Option<Feedback> {
    for config in &mut list {
        config.linked = None;
    }
    feedback(list, field)
}

/// Lists fields of a translation's `feedback_config` that are not honored.
pub fn list_ignored_of_translation(list: &[v1::FeedbackConfig], ignored: &mut Ignored) {
    if list.iter().any(|config| config.linked.is_some()) {
        ignored.add(["translations.feedback_config.linked"]);
    }
    let mut values = list.iter().flat_map(|config| &config.values);
    if values.any(|value| !value.link.is_empty()) {
        ignored.add(["translations.feedback_config.values.link"]);
    }
}

fn config(message: v1::FeedbackConfig, mut field: Field<'_>) -> Option<Feedback> {
    let v1::FeedbackConfig {
        name,
        r#type,
        linked,
        values,
    } = message;
    let name = non_blank_text(name, field.field("name"));
    match r#type.as_str() {
        TYPE_ENUM => {}
        "" => field.field("type").refuse(Reason::FieldRequired, REQUIRED),
        _ => field
            .field("type")
            .refuse(Reason::FieldInvalid, "must be `enum`"),
    }
    let linked = linked.unwrap_or_default();
    let values = all_values(values, linked, field.field("values"));
    Some(Feedback {
        name: name?,
        linked,
        values: values?,
    })
}

fn all_values(
    list: Vec<v1::FeedbackValue>,
    linked: bool,
    mut field: Field<'_>,
) -> Option<Vec<FeedbackValue>> {
    if list.is_empty() {
        field.refuse(Reason::FieldRequired, "needs at least one value");
    }
    if !field.at_most(list.len(), MAX_FEEDBACK_VALUES) {
        return None;
    }
    let mut keys = HashSet::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        if !keys.insert(value.key.as_str()) && !value.key.is_empty() {
            let mut element = field.index(index);
            let mut key = element.field("key");
            key.refuse(Reason::FieldInvalid, "is the key of another value");
        }
    }
    let values = list.into_iter().enumerate();
    let value = |(index, message)| value(message, linked, field.index(index));
    Some(values.filter_map(value).collect())
}

/// One value. The system sets `link`; a sent one is ignored.
fn value(message: v1::FeedbackValue, linked: bool, mut field: Field<'_>) -> Option<FeedbackValue> {
    let v1::FeedbackValue {
        key,
        value,
        link: _,
        task_json,
    } = message;
    let key = non_blank_text(key, field.field("key"));
    let value = label(value, linked, field.field("value"));
    if task_json.is_some() {
        let mut field = field.field("task_json");
        field.refuse(Reason::FieldInvalid, "is for ImportTask only");
    }
    Some(FeedbackValue {
        key: key?,
        value: value?,
        link: None,
    })
}

/// The text of a value. A linked one is at most as long as a task's name, which it
/// becomes.
fn label(text: String, linked: bool, mut field: Field<'_>) -> Option<Label> {
    if linked {
        field.accept(check(&text, MAX_NAME_CHARS))?;
    }
    non_blank_text(text, field)
}
