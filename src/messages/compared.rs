//! Documents as they are compared: with the fields that an import honors.

use std::{borrow::Cow, collections::BTreeMap};

use prost::Message;
use serde_json::Value;

use super::{
    decode::{step::STEP_FIELDS, task::TASK_FIELDS},
    managed_documents::managed_documents,
    mask::{MaskFields, TRANSLATIONS},
    message_json, wire,
};
use crate::{
    domain::{
        compare::{ComparedStep, ComparedTask},
        sha256::Sha256,
    },
    proto::v1::{Step, StepType, TaskDocument},
};

/// What is compared of a field.
pub trait ComparedFields {
    type Value;

    /// The fields that a task or step sets and that an import honors, those of translations one by
    /// one. `name` is that of the message. `None` if the descriptors of the contract are unusable.
    fn of(
        name: &str,
        message: &impl Message,
        fields: &MaskFields,
    ) -> Option<Vec<(String, Self::Value)>>;
}

/// Fields are compared as JSON.
pub struct JsonFields;

/// Fields are compared by digests of what is encoded. A field may have megabytes, and its JSON takes
/// many times as much memory.
pub struct FieldDigests;

/// Two guides as they are compared: without what a task that is managed in `target` takes from its
/// answer. `None` if the descriptors of the contract are unusable.
pub fn compared_pair<F: ComparedFields>(
    base: &TaskDocument,
    target: &TaskDocument,
) -> Option<[ComparedTask<F::Value>; 2]> {
    let mut guides = [compared::<F>(base)?, compared::<F>(target)?];
    let task = target.task.as_ref();
    if task.is_some_and(|task| !task.parent_guid.is_empty()) {
        for guide in &mut guides {
            let fields = &mut guide.fields;
            fields.retain(|(path, _)| !matches!(path.as_str(), "name" | "external_id"));
        }
    }
    Some(guides)
}

/// A guide as it is compared. `None` if the descriptors of the contract are unusable.
pub fn compared<F: ComparedFields>(guide: &TaskDocument) -> Option<ComparedTask<F::Value>> {
    let task = guide.task.clone().unwrap_or_default();
    let steps = guide.steps.iter().map(compared_step::<F>);
    Some(ComparedTask {
        fields: F::of("Task", &task, &TASK_FIELDS)?,
        guid: task.guid,
        steps: steps.collect::<Option<_>>()?,
    })
}

fn compared_step<F: ComparedFields>(step: &Step) -> Option<ComparedStep<F::Value>> {
    let mut own = Cow::Borrowed(step);
    let configs = step.feedback_config.iter();
    let mut values = configs.flat_map(|config| &config.values);
    if values.any(|value| value.task_json.is_some() || !value.link.is_empty()) {
        let configs = own.to_mut().feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            value.task_json = None;
            value.link.clear();
        }
    }
    if step.r#type() == StepType::Subtask {
        // It follows the task that the step refers to.
        own.to_mut().title.clear();
    }
    let managed = managed_documents(step)
        .map(|(value, guide)| Some((value.key.clone(), compared::<F>(guide)?)));
    Some(ComparedStep {
        guid: step.guid.clone(),
        fields: F::of("Step", own.as_ref(), &STEP_FIELDS)?,
        managed: managed.collect::<Option<_>>()?,
    })
}

impl ComparedFields for FieldDigests {
    type Value = [u8; 32];

    fn of(
        name: &str,
        message: &impl Message,
        honored: &MaskFields,
    ) -> Option<Vec<(String, [u8; 32])>> {
        let descriptor = message_json::descriptor(name)?;
        let bytes = message.encode_to_vec();
        // A list is a field several times.
        let mut digests: BTreeMap<String, Sha256> = BTreeMap::new();
        for part in wire::fields(&bytes)? {
            let field = descriptor.get_field(part.number)?;
            if field.name() == TRANSLATIONS {
                // An entry of a map: the language is 1, its texts are 2.
                let entry = wire::fields(part.content)?;
                let content = |number| entry.iter().find(|it| it.number == number);
                let language = content(1).map_or(&[][..], |it| it.content);
                let language = str::from_utf8(language).ok()?;
                let kind = field.kind();
                let texts = kind.as_message()?.map_entry_value_field().kind();
                let texts = texts.as_message()?;
                for text in wire::fields(content(2).map_or(&[][..], |it| it.content))? {
                    let path = translation_path(language, texts.get_field(text.number)?.name());
                    digests.entry(path).or_default().update(text.whole);
                }
            } else if honored.honored.contains(&field.name()) {
                let path = field.name().to_owned();
                digests.entry(path).or_default().update(part.whole);
            }
        }
        let digests = digests.into_iter();
        Some(digests.map(|(path, it)| (path, it.finish())).collect())
    }
}

impl ComparedFields for JsonFields {
    type Value = Value;

    fn of(name: &str, message: &impl Message, fields: &MaskFields) -> Option<Vec<(String, Value)>> {
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
                        let texts = texts.into_iter();
                        honored.extend(
                            texts.map(|(name, text)| (translation_path(&language, &name), text)),
                        );
                    }
                }
                value if fields.honored.contains(&name.as_str()) => honored.push((name, value)),
                _ => {}
            }
        }
        Some(honored)
    }
}

fn translation_path(language: &str, field: &str) -> String {
    format!("{TRANSLATIONS}[\"{language}\"].{field}")
}
