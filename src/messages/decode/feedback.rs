//! The `feedback_config` of a step or of its translation.

use std::collections::HashSet;

use super::field::{Field, non_blank_text};
use crate::{
    domain::{
        feedback::{Feedback, FeedbackValue, MAX_FEEDBACK_VALUES, TYPE_ENUM},
        text::{Label, MAX_NAME_CHARS, check},
        violation::Reason,
    },
    proto::v1,
};

/// The only element of a step's `feedback_config`; `None` if it is empty. Of several elements, the
/// first is checked.
pub fn feedback(list: Vec<v1::FeedbackConfig>, mut field: Field<'_>) -> Option<Feedback> {
    field.at_most(list.len(), 1);
    let message = list.into_iter().next()?;
    config(message, field.index(0))
}

/// The only element of a translation's `feedback_config`, whose `linked` is ignored.
pub fn translated(mut list: Vec<v1::FeedbackConfig>, field: Field<'_>) -> Option<Feedback> {
    for config in &mut list {
        config.linked = None;
    }
    feedback(list, field)
}

/// The fields of a translation's `feedback_config` that are not honored.
pub fn ignored_links(list: &[v1::FeedbackConfig]) -> Vec<&'static str> {
    let mut ignored = Vec::new();
    if list.iter().any(|config| config.linked.is_some()) {
        ignored.push("translations.feedback_config.linked");
    }
    let mut values = list.iter().flat_map(|config| &config.values);
    if values.any(|value| !value.link.is_empty()) {
        ignored.push("translations.feedback_config.values.link");
    }
    ignored
}

fn config(message: v1::FeedbackConfig, mut field: Field<'_>) -> Option<Feedback> {
    let name = non_blank_text(message.name, field.field("name"));
    let parsed = (message.r#type == TYPE_ENUM).then_some(());
    field
        .field("type")
        .parsed(&message.r#type, parsed, "must be `enum`");
    let linked = message.linked.unwrap_or_default();
    let values = all_values(message.values, linked, field.field("values"));
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
    field.not_empty(&list, "needs at least one value");
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
    field.elements(list, usize::MAX, |message, field| {
        value(message, linked, field)
    })
}

/// One value. The system sets `link`; a sent one is ignored.
fn value(message: v1::FeedbackValue, linked: bool, mut field: Field<'_>) -> Option<FeedbackValue> {
    let key = non_blank_text(message.key, field.field("key"));
    let value = label(message.value, linked, field.field("value"));
    if message.task_json.is_some() {
        let mut field = field.field("task_json");
        field.refuse(Reason::FieldInvalid, "is only for ImportTask");
    }
    Some(FeedbackValue {
        key: key?,
        value: value?,
        link: None,
    })
}

/// The text of a value. The text of a linked value becomes the name of a task, so it has the same
/// limit.
fn label(text: String, linked: bool, mut field: Field<'_>) -> Option<Label> {
    if linked {
        field.accept(check(&text, MAX_NAME_CHARS))?;
    }
    non_blank_text(text, field)
}
