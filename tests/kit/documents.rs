//! Documents in a form that is equal for equal imports.

use std::collections::BTreeMap;

use expertise::proto::v1::*;

/// The document with the ids of its tasks replaced by their paths, and without ids of
/// steps, versions, times and other fields that the system sets. Two imports of one
/// document are equal in this form.
pub fn canonical(mut document: TaskDocument) -> TaskDocument {
    let mut names = BTreeMap::new();
    name_tasks(&document, "document", &mut names);
    replace_ids(&mut document, &names);
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

fn name_tasks(document: &TaskDocument, place: &str, names: &mut BTreeMap<String, String>) {
    let own = document.task.iter().map(|task| &task.guid);
    let by_steps = document.steps.iter().map(|step| &step.task);
    for id in own.chain(by_steps).filter(|id| !id.is_empty()) {
        names.insert(id.clone(), place.to_owned());
    }
    for (index, step) in document.steps.iter().enumerate() {
        let values = step
            .feedback_config
            .iter()
            .flat_map(|config| &config.values);
        for value in values {
            let place = format!("{place}/{index}/{}", value.key);
            if !value.link.is_empty() {
                names.insert(value.link.clone(), place.clone());
            }
            if let Some(inner) = &value.task_json {
                name_tasks(inner, &place, names);
            }
        }
    }
}

fn replace_ids(document: &mut TaskDocument, names: &BTreeMap<String, String>) {
    if let Some(task) = &mut document.task {
        name(&mut task.parent_guid, names);
        *task = Task {
            guid: String::new(),
            steps: Vec::new(),
            ..without_system_fields_of_task(std::mem::take(task))
        };
    }
    for step in &mut document.steps {
        name(&mut step.subtask_id, names);
        name(&mut step.link, names);
        let values = step.feedback_config.iter_mut();
        for value in values.flat_map(|config| &mut config.values) {
            name(&mut value.link, names);
            if let Some(inner) = &mut value.task_json {
                replace_ids(inner, names);
            }
        }
        *step = Step {
            guid: String::new(),
            task: String::new(),
            ..without_system_fields_of_step(std::mem::take(step))
        };
    }
}

fn name(id: &mut String, names: &BTreeMap<String, String>) {
    if let Some(name) = names.get(id) {
        id.clone_from(name);
    }
}

/// The task without its version, its times and its owner.
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

/// The step without its version, its times and its owner.
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
