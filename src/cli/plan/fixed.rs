//! Fields of a document that differ from the stored guide and can never change.

use std::collections::BTreeSet;

use super::{managed_by_key, managed_documents, steps_by_guid};
use crate::proto::v1::{FeedbackValue, Step, StepType, TaskDocument};

/// The paths of such fields, in the form of `ignored_paths`. The document has the ids of
/// the stored guide.
pub(in crate::cli) fn fixed_paths(document: &TaskDocument, stored: &TaskDocument) -> Vec<String> {
    let mut paths = BTreeSet::new();
    add_paths("document", document, stored, None, &mut paths);
    paths.into_iter().collect()
}

fn add_paths(
    path: &str,
    document: &TaskDocument,
    stored: &TaskDocument,
    value: Option<&FeedbackValue>,
    paths: &mut BTreeSet<String>,
) {
    if let (Some(sent), Some(stored)) = (&document.task, &stored.task) {
        if differs(sent.product_id, stored.product_id) {
            paths.insert(format!("{path}.task.product_id"));
        }
        // A managed task is named by its value, which may change with it.
        let named = value.map_or(&stored.name, |value| &value.value);
        let is_managed = !stored.parent_guid.is_empty();
        if is_managed && sent_text_differs(&sent.name, &stored.name) && sent.name != *named {
            paths.insert(format!("{path}.task.name"));
        }
    }
    let stored_steps = steps_by_guid(stored);
    for sent in &document.steps {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        if differs(sent.product_id, stored.product_id) {
            paths.insert(format!("{path}.steps.product_id"));
        }
        if changes_type(sent, stored) {
            paths.insert(format!("{path}.steps.type"));
        }
        if keeps_subtask(sent, stored) && sent_text_differs(&sent.title, &stored.title) {
            paths.insert(format!("{path}.steps.title"));
        }
        let managed = managed_by_key(stored);
        for (value, sent) in managed_documents(sent) {
            if let Some(stored) = managed.get(value.key.as_str()) {
                let path = format!("{path}.steps.feedback_config.values.task_json");
                add_paths(&path, sent, stored, Some(value), paths);
            }
        }
    }
}

/// Whether a step is sent with another type than the stored one has.
pub(super) fn changes_type(sent: &Step, stored: &Step) -> bool {
    sent.r#type() != StepType::Unspecified && sent.r#type != stored.r#type
}

/// Whether a subtask step still refers to the stored task, whose name is its title.
fn keeps_subtask(sent: &Step, stored: &Step) -> bool {
    let is_same = sent.subtask_id.is_empty()
        // A wiring step refers to its managed task, whatever is sent.
        || !stored.link.is_empty()
        || sent.subtask_id.eq_ignore_ascii_case(&stored.subtask_id);
    stored.r#type() == StepType::Subtask && is_same
}

fn sent_text_differs(sent: &str, stored: &str) -> bool {
    !sent.is_empty() && sent != stored
}

fn differs<T: PartialEq>(sent: Option<T>, stored: Option<T>) -> bool {
    sent.is_some() && sent != stored
}
