//! Fields of a document that differ from the stored guide and can never change.

use std::collections::{BTreeMap, BTreeSet};

use super::steps_by_guid;
use crate::proto::v1::{StepType, TaskDocument};

/// The paths of such fields, in the form of `ignored_paths`. The document has the ids of
/// the stored guide.
pub(in crate::cli) fn fixed_paths(document: &TaskDocument, stored: &TaskDocument) -> Vec<String> {
    let mut paths = BTreeSet::new();
    add_paths("document", document, stored, &mut paths);
    paths.into_iter().collect()
}

fn add_paths(
    path: &str,
    document: &TaskDocument,
    stored: &TaskDocument,
    paths: &mut BTreeSet<String>,
) {
    if let (Some(sent), Some(stored)) = (&document.task, &stored.task)
        && differs(sent.product_id, stored.product_id)
    {
        paths.insert(format!("{path}.task.product_id"));
    }
    let stored_steps = steps_by_guid(stored);
    for sent in &document.steps {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        if differs(sent.product_id, stored.product_id) {
            paths.insert(format!("{path}.steps.product_id"));
        }
        let sent_type = (sent.r#type() != StepType::Unspecified).then_some(sent.r#type);
        if differs(sent_type, Some(stored.r#type)) {
            paths.insert(format!("{path}.steps.type"));
        }
        let managed = stored.feedback_config.iter();
        let managed: BTreeMap<&str, &TaskDocument> = managed
            .flat_map(|config| &config.values)
            .filter_map(|value| Some((value.key.as_str(), value.task_json.as_ref()?)))
            .collect();
        let configs = sent.feedback_config.iter();
        for value in configs.flat_map(|config| &config.values) {
            if let (Some(sent), Some(stored)) = (&value.task_json, managed.get(value.key.as_str()))
            {
                let path = format!("{path}.steps.feedback_config.values.task_json");
                add_paths(&path, sent, stored, paths);
            }
        }
    }
}

fn differs<T: PartialEq>(sent: Option<T>, stored: Option<T>) -> bool {
    sent.is_some() && sent != stored
}
