//! The values of a step's question, and the documents of their managed tasks.

use crate::proto::v1::{FeedbackValue, Step, TaskDocument};

pub fn values(step: &Step) -> impl Iterator<Item = &FeedbackValue> {
    step.feedback_config.iter().flat_map(|it| &it.values)
}

pub fn values_mut(step: &mut Step) -> impl Iterator<Item = &mut FeedbackValue> {
    step.feedback_config
        .iter_mut()
        .flat_map(|it| &mut it.values)
}

/// The documents, with the values that manage their tasks.
pub fn managed_documents(step: &Step) -> impl Iterator<Item = (&FeedbackValue, &TaskDocument)> {
    values(step).filter_map(|value| Some((value, value.task_json.as_deref()?)))
}

/// The document of the value with this key.
pub fn managed_document<'a>(step: &'a Step, key: &str) -> Option<&'a TaskDocument> {
    let mut managed = managed_documents(step);
    managed.find_map(|(value, document)| (value.key == key).then_some(document))
}

/// The documents, for changes.
pub fn managed_documents_mut(step: &mut Step) -> impl Iterator<Item = &mut TaskDocument> {
    values_mut(step).filter_map(|value| value.task_json.as_deref_mut())
}

/// The documents at every depth, with the values that manage their tasks. Each document comes
/// before its nested documents.
pub fn all_managed(steps: &[Step]) -> Vec<(&FeedbackValue, &TaskDocument)> {
    let managed = steps.iter().flat_map(managed_documents);
    let managed = managed.flat_map(|(value, document)| {
        let below = all_managed(&document.steps);
        [(value, document)].into_iter().chain(below)
    });
    managed.collect()
}

/// The steps at every depth. Each step is followed by the steps of its managed tasks.
pub fn all_steps(steps: &[Step]) -> Vec<&Step> {
    let steps = steps.iter().flat_map(|step| {
        let below = managed_documents(step);
        let below = below.flat_map(|(_, document)| all_steps(&document.steps));
        [step].into_iter().chain(below)
    });
    steps.collect()
}

/// Updates the steps at every depth, in the order of [`all_steps`].
pub fn for_each_step_mut(steps: &mut [Step], change: &mut impl FnMut(&mut Step)) {
    for step in steps {
        change(step);
        for document in managed_documents_mut(step) {
            for_each_step_mut(&mut document.steps, change);
        }
    }
}
