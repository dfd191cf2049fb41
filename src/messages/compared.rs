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

/// A guide as it is compared. `field` makes what is compared of a field from its JSON. `None` if the
/// descriptors of the contract are unusable.
pub fn compared<V>(guide: &TaskDocument, field: fn(Value) -> V) -> Option<ComparedTask<V>> {
    let task = guide.task.clone().unwrap_or_default();
    let steps = guide.steps.iter().map(|step| compared_step(step, field));
    Some(ComparedTask {
        fields: honored_fields("Task", &task, &TASK_FIELDS, field)?,
        guid: task.guid,
        steps: steps.collect::<Option<_>>()?,
    })
}

fn compared_step<V>(step: &Step, field: fn(Value) -> V) -> Option<ComparedStep<V>> {
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
    let managed = managed_documents(step)
        .map(|(value, guide)| Some((value.key.clone(), compared(guide, field)?)));
    Some(ComparedStep {
        guid: own.guid.clone(),
        fields: honored_fields("Step", &own, &STEP_FIELDS, field)?,
        managed: managed.collect::<Option<_>>()?,
    })
}

/// The fields that a document sets, those of translations one by one.
fn honored_fields<V>(
    name: &str,
    message: &impl Message,
    fields: &MaskFields,
    field: fn(Value) -> V,
) -> Option<Vec<(String, V)>> {
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
                    let path = |name| format!("{TRANSLATIONS}[\"{language}\"].{name}");
                    let texts = texts.into_iter();
                    honored.extend(texts.map(|(name, text)| (path(name), field(text))));
                }
            }
            value if fields.honored.contains(&name.as_str()) => honored.push((name, field(value))),
            _ => {}
        }
    }
    Some(honored)
}
