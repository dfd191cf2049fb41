//! The document of a merged guide.

use prost::Message;
use serde_json::{Map, Value};

use super::{
    fields::{ResourceFields, STEP, TASK, TRANSLATIONS},
    managed_documents::{managed_document, steps_by_guid},
    message_json,
};
use crate::{
    domain::compare::{ComparedStep, ComparedTask},
    proto::v1::{Step, TaskDocument},
};

/// The document of a guide that was merged, in the form that an import accepts. What is not merged,
/// such as types, is that of `theirs`, the stored guide, or else of `ours`. A step that is not
/// stored has no id. `None` if the descriptors of the contract are unusable.
pub fn merged_document(
    merged: &ComparedTask<Value>,
    ours: &TaskDocument,
    theirs: &TaskDocument,
) -> Option<TaskDocument> {
    let task = theirs.task.as_ref().or(ours.task.as_ref());
    let mut task = task.cloned().unwrap_or_default();
    task = with_fields("Task", &task, &merged.fields, &TASK)?;
    task.dependency_shorthand = None;
    let (ours, theirs) = (steps_by_guid(ours), steps_by_guid(theirs));
    let steps = merged.steps.iter().map(|step| {
        let [mine, stored] = [&ours, &theirs].map(|it| it.get(step.guid.as_str()).copied());
        merged_step(step, mine.cloned(), stored.cloned())
    });
    Some(TaskDocument {
        task: Some(task),
        steps: steps.collect::<Option<_>>()?,
    })
}

fn merged_step(
    merged: &ComparedStep<Value>,
    mine: Option<Step>,
    stored: Option<Step>,
) -> Option<Step> {
    let is_stored = stored.is_some();
    let (mine, stored) = (mine.unwrap_or_default(), stored.unwrap_or_default());
    let former = if is_stored { &stored } else { &mine };
    let mut step: Step = with_fields("Step", former, &merged.fields, &STEP)?;
    step.dependency_shorthand = None;
    if !is_stored {
        step.guid.clear();
    }
    let configs = step.feedback_config.iter_mut();
    for value in configs.flat_map(|config| &mut config.values) {
        let link = |step: &Step| {
            let mut values = step.feedback_config.iter().flat_map(|it| &it.values);
            let value = values.find(|other| other.key == value.key)?;
            (!value.link.is_empty()).then(|| value.link.clone())
        };
        value.link = link(&stored).or_else(|| link(&mine)).unwrap_or_default();
        let mut managed = merged.managed.iter();
        if let Some((key, task)) = managed.find(|(key, _)| *key == value.key) {
            let [mine, stored] = [&mine, &stored].map(|step| managed_document(step, key).cloned());
            let [mine, stored] = [mine, stored].map(Option::unwrap_or_default);
            value.task_json = Some(Box::new(merged_document(task, &mine, &stored)?));
        }
    }
    Some(step)
}

/// A message with these honored fields, and no others.
fn with_fields<M: Message + Default>(
    name: &str,
    message: &M,
    fields: &[(String, Value)],
    known: &ResourceFields,
) -> Option<M> {
    let descriptor = message_json::descriptor(name)?;
    let Value::Object(mut json) = message_json::json(descriptor.clone(), message)? else {
        return None;
    };
    json.retain(|name, _| !known.honored().contains(&name.as_str()));
    for (path, value) in fields {
        let translated = path.strip_prefix(TRANSLATIONS);
        let translated = translated.and_then(|path| path.strip_prefix("[\"")?.split_once("\"]."));
        let Some((language, name)) = translated else {
            json.insert(path.clone(), value.clone());
            continue;
        };
        let languages = json.entry(TRANSLATIONS).or_insert_with(empty_object);
        let texts = languages.as_object_mut()?.entry(language);
        let texts = texts.or_insert_with(empty_object).as_object_mut()?;
        texts.insert(name.to_owned(), value.clone());
    }
    message_json::from_json(descriptor, &Value::Object(json))
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}
