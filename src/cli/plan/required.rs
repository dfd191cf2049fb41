//! Required texts that a document leaves out. An import keeps the stored text, so the
//! server does not refuse them.

use std::collections::BTreeMap;

use super::steps_by_guid;
use crate::proto::v1::{Step, StepType, Task, TaskDocument};

/// What is wrong with such a document, a line for each text; `None` if it has all of them.
/// The document has the ids of the stored guide.
pub(in crate::cli) fn missing_texts(
    document: &TaskDocument,
    stored: &TaskDocument,
) -> Option<String> {
    let mut paths = Vec::new();
    let is_named = |task: &Task| !task.name.is_empty();
    // A managed task is named by its value.
    let is_managed = |task: &Task| !task.parent_guid.is_empty();
    if !document.task.as_ref().is_some_and(is_named)
        && !stored.task.as_ref().is_some_and(is_managed)
    {
        paths.push("task.name".to_owned());
    }
    add_titles("", document, stored, &mut paths);
    let lines: Vec<String> = paths
        .iter()
        .map(|path| format!("{path}: is required"))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n  "))
}

fn add_titles(path: &str, document: &TaskDocument, stored: &TaskDocument, paths: &mut Vec<String>) {
    let stored_steps = steps_by_guid(stored);
    for (index, sent) in document.steps.iter().enumerate() {
        let Some(stored) = stored_steps.get(sent.guid.as_str()) else {
            continue;
        };
        let path = format!("{path}steps[{index}].");
        // A subtask step has the name of its task.
        if sent.title.is_empty() && stored.r#type() != StepType::Subtask {
            paths.push(format!("{path}title"));
        }
        add_managed_titles(&path, sent, stored, paths);
    }
}

fn add_managed_titles(path: &str, sent: &Step, stored: &Step, paths: &mut Vec<String>) {
    let managed = stored.feedback_config.iter();
    let managed: BTreeMap<&str, &TaskDocument> = managed
        .flat_map(|config| &config.values)
        .filter_map(|value| Some((value.key.as_str(), value.task_json.as_ref()?)))
        .collect();
    for (question, config) in sent.feedback_config.iter().enumerate() {
        for (index, value) in config.values.iter().enumerate() {
            if let (Some(sent), Some(stored)) = (&value.task_json, managed.get(value.key.as_str()))
            {
                let path = format!("{path}feedback_config[{question}].values[{index}].task_json.");
                add_titles(&path, sent, stored, paths);
            }
        }
    }
}
