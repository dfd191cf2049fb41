//! Documents as they are compared: with the fields that an import honors.

use prost::Message;
use serde_json::Value;

use super::{
    decode::{step::STEP_FIELDS, task::TASK_FIELDS},
    managed_documents::managed_documents,
    mask::{MaskFields, TRANSLATIONS},
    message_json,
};
use crate::{
    domain::compare::{ComparedStep, ComparedTask},
    proto::v1::{Step, StepType, TaskDocument},
};

/// A guide as it is compared, with fields in JSON. `None` if the descriptors of the contract are
/// unusable.
pub fn compared(guide: &TaskDocument) -> Option<ComparedTask<Value>> {
    let task = guide.task.clone().unwrap_or_default();
    let steps = guide.steps.iter().map(compared_step);
    Some(ComparedTask {
        fields: honored_fields("Task", &task, &TASK_FIELDS)?,
        guid: task.guid,
        steps: steps.collect::<Option<_>>()?,
    })
}

fn compared_step(step: &Step) -> Option<ComparedStep<Value>> {
    let mut own = step.clone();
    let configs = own.feedback_config.iter_mut();
    for value in configs.flat_map(|config| &mut config.values) {
        value.task_json = None;
        value.link.clear();
    }
    if own.r#type() == StepType::Subtask {
        // It follows the task that the step refers to.
        own.title.clear();
    }
    let managed =
        managed_documents(step).map(|(value, guide)| Some((value.key.clone(), compared(guide)?)));
    Some(ComparedStep {
        guid: own.guid.clone(),
        fields: honored_fields("Step", &own, &STEP_FIELDS)?,
        managed: managed.collect::<Option<_>>()?,
    })
}

/// The fields that a document sets, those of translations one by one.
fn honored_fields(
    name: &str,
    message: &impl Message,
    fields: &MaskFields,
) -> Option<Vec<(String, Value)>> {
    let descriptor = message_json::descriptor(name)?;
    let json = message_json::json(descriptor.clone(), message)?;
    let mut honored = Vec::new();
    for (name, value) in message_json::fields(&descriptor, json) {
        match value {
            Value::Object(languages) if name == TRANSLATIONS => {
                for (language, texts) in languages {
                    let Value::Object(texts) = texts else {
                        continue;
                    };
                    let path = |field| format!("{TRANSLATIONS}[\"{language}\"].{field}");
                    honored.extend(texts.into_iter().map(|(field, text)| (path(field), text)));
                }
            }
            value if fields.honored.contains(&name.as_str()) => honored.push((name, value)),
            _ => {}
        }
    }
    Some(honored)
}
