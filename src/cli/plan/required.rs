//! Required fields that a document leaves out. An import keeps the stored ones, so the
//! server does not refuse it.

use super::{managed_by_key, steps_by_guid};
use crate::proto::v1::{Step, StepType, Task, TaskDocument};

/// An error line for each missing field; `shown` formats its path. The document has the ids of
/// the stored guide.
pub(in crate::cli) fn missing_fields_error(
    document: &TaskDocument,
    stored: &TaskDocument,
    shown: impl Fn(String) -> String,
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
    add_steps("", document, stored, &mut paths);
    let lines = paths
        .into_iter()
        .map(|it| format!("{}: is required", shown(it)));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n  "))
}

fn add_steps(path: &str, document: &TaskDocument, stored: &TaskDocument, paths: &mut Vec<String>) {
    let by_guid = steps_by_guid(stored);
    for (index, sent) in document.steps.iter().enumerate() {
        let Some(stored) = by_guid.get(sent.guid.as_str()) else {
            continue;
        };
        let path = format!("{path}steps[{index}].");
        let of_type = |step_type| stored.r#type() == step_type;
        let missing = [
            // A subtask step has the name of its task.
            (
                "title",
                sent.title.is_empty() && !of_type(StepType::Subtask),
            ),
            (
                "feedback_config",
                sent.feedback_config.is_empty() && of_type(StepType::Observation),
            ),
            // A wiring step refers to its managed task, whatever is sent.
            (
                "subtask_id",
                sent.subtask_id.is_empty() && of_type(StepType::Subtask) && stored.link.is_empty(),
            ),
        ];
        let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
        paths.extend(missing.map(|(field, _)| format!("{path}{field}")));
        add_managed_steps(&path, sent, stored, paths);
    }
}

fn add_managed_steps(path: &str, sent: &Step, stored: &Step, paths: &mut Vec<String>) {
    let managed = managed_by_key(stored);
    for (question, config) in sent.feedback_config.iter().enumerate() {
        for (index, value) in config.values.iter().enumerate() {
            if let (Some(sent), Some(stored)) = (&value.task_json, managed.get(value.key.as_str()))
            {
                let path = format!("{path}feedback_config[{question}].values[{index}].task_json.");
                add_steps(&path, sent, stored, paths);
            }
        }
    }
}
