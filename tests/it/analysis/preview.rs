//! PreviewTask.

use std::collections::BTreeMap;

use crate::kit::prelude::*;

mod answers;
mod documents;
mod invalid;
mod laws;
mod pages;
mod reference;
mod subtasks;
mod texts;
mod traces;
mod unanswered;
mod visibility;

/// Whether each step is visible, by title.
fn seen(preview: &PreviewTaskResponse) -> BTreeMap<&str, Visibility> {
    let steps = preview.steps.iter();
    steps.map(|step| (title(step), step.visibility())).collect()
}

/// The title of a step.
fn title(step: &PreviewedStep) -> &str {
    step.title.as_ref().map_or("", |title| title.text.as_str())
}

/// The first step with a title.
fn step_titled<'a>(preview: &'a PreviewTaskResponse, wanted: &str) -> &'a PreviewedStep {
    let mut steps = preview.steps.iter();
    let found = steps.find(|step| title(step) == wanted);
    found.unwrap_or_else(|| panic!("no step {wanted} in {preview:#?}"))
}

/// Why the first step with a title is not visible.
fn reasons(preview: &PreviewTaskResponse, wanted: &str) -> Vec<VisibilityReason> {
    step_titled(preview, wanted).reasons().collect()
}

/// An observation of a document.
fn observation(name: &str, keys: &[&str]) -> Step {
    document_step(StepType::Observation, name).with_question(question(name, keys))
}

/// An information step of a document that is visible under a condition.
fn information(title: &str, condition: DependencyNode) -> Step {
    document_step(StepType::Information, title).depending_on(all_of(vec![condition]))
}
