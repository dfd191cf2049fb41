//! Documents in a form that is equal for equal imports.

use std::collections::BTreeMap;

use expertise::proto::v1::*;

use crate::kit::sample::{StepSetters, TaskSetters, With};

/// The document with the ids of its tasks replaced by their paths, and without ids of
/// steps, versions, times and other fields that the system sets. Two imports of one
/// document are equal in this form.
pub fn canonical(mut document: TaskDocument) -> TaskDocument {
    let mut paths = BTreeMap::new();
    collect_paths(&document, "document", &mut paths);
    replace_ids(&mut document, &paths);
    document
}

/// The document and all that are nested in it, outermost first.
pub fn documents_in(document: &TaskDocument) -> Vec<&TaskDocument> {
    let mut found = vec![document];
    let values = document.steps.iter().flat_map(|step| &step.feedback_config);
    for value in values.flat_map(|config| &config.values) {
        if let Some(inner) = &value.task_json {
            found.extend(documents_in(inner));
        }
    }
    found
}

/// Collects the paths of the document's task and of the tasks that its answers manage, by id.
fn collect_paths(document: &TaskDocument, path: &str, paths: &mut BTreeMap<String, String>) {
    let own = document.task.iter().map(|task| &task.guid);
    let by_steps = document.steps.iter().map(|step| &step.task);
    for id in own.chain(by_steps).filter(|id| !id.is_empty()) {
        paths.insert(id.clone(), path.to_owned());
    }
    for (index, step) in document.steps.iter().enumerate() {
        let values = step
            .feedback_config
            .iter()
            .flat_map(|config| &config.values);
        for value in values {
            let path = format!("{path}/{index}/{}", value.key);
            if !value.link.is_empty() {
                paths.insert(value.link.clone(), path.clone());
            }
            if let Some(inner) = &value.task_json {
                collect_paths(inner, &path, paths);
            }
        }
    }
}

fn replace_ids(document: &mut TaskDocument, paths: &BTreeMap<String, String>) {
    if let Some(task) = &mut document.task {
        replace_id(&mut task.parent_guid, paths);
        *task = without_system_fields_of_task(std::mem::take(task))
            .with_guid("")
            .with(|it| it.steps = Vec::new());
    }
    for step in &mut document.steps {
        replace_id(&mut step.subtask_id, paths);
        replace_id(&mut step.link, paths);
        let values = step.feedback_config.iter_mut();
        for value in values.flat_map(|config| &mut config.values) {
            replace_id(&mut value.link, paths);
            if let Some(inner) = &mut value.task_json {
                replace_ids(inner, paths);
            }
        }
        *step = without_system_fields_of_step(std::mem::take(step))
            .with_guid("")
            .in_task("");
    }
}

fn replace_id(id: &mut String, paths: &BTreeMap<String, String>) {
    if let Some(path) = paths.get(id) {
        id.clone_from(path);
    }
}

/// The task without its version, times, owner and `dirty_record`.
pub fn without_system_fields_of_task(task: Task) -> Task {
    Task {
        etag: String::new(),
        account_id: String::new(),
        dirty_record: false,
        created_ts: None,
        modified_ts: None,
        ..task
    }
}

/// The step without its version, times, owner and `dirty_record`.
pub fn without_system_fields_of_step(step: Step) -> Step {
    Step {
        etag: String::new(),
        account_id: String::new(),
        dirty_record: false,
        created_ts: None,
        modified_ts: None,
        ..step
    }
}
