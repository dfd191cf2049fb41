//! The steps of a document, and the documents of the tasks that they manage.

use std::collections::BTreeMap;

use crate::proto::v1::{FeedbackValue, Step, TaskDocument};

/// The steps of a document's own task by their ids.
pub fn steps_by_guid(document: &TaskDocument) -> BTreeMap<&str, &Step> {
    let steps = document.steps.iter();
    steps.map(|step| (step.guid.as_str(), step)).collect()
}

/// The documents, with the values that manage their tasks.
pub fn managed_documents(step: &Step) -> impl Iterator<Item = (&FeedbackValue, &TaskDocument)> {
    let configs = step.feedback_config.iter();
    let values = configs.flat_map(|config| &config.values);
    values.filter_map(|value| Some((value, value.task_json.as_deref()?)))
}

/// The document of the value with this key.
pub fn managed_document<'a>(step: &'a Step, key: &str) -> Option<&'a TaskDocument> {
    let mut managed = managed_documents(step);
    managed.find_map(|(value, document)| (value.key == key).then_some(document))
}

/// The documents, to be changed.
pub fn managed_documents_mut(step: &mut Step) -> impl Iterator<Item = &mut TaskDocument> {
    let configs = step.feedback_config.iter_mut();
    let values = configs.flat_map(|config| &mut config.values);
    values.filter_map(|value| value.task_json.as_deref_mut())
}
