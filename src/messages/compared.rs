//! Documents as they are compared: with the fields that an import honors.

use std::{borrow::Cow, collections::BTreeMap};

use prost::Message;
use prost_reflect::{FieldDescriptor, MessageDescriptor};
use serde_json::Value;

use super::{
    fields::{FieldUse, ResourceFields, STEP, TASK, TRANSLATIONS},
    managed_documents::managed_documents,
    mask::MapEntry,
    message_json,
    wire::{self, WireField},
};
use crate::{
    domain::{
        compare::{ComparedStep, ComparedTask},
        sha256::Sha256,
    },
    proto::v1::{Step, StepType, TaskDocument},
};

/// What is compared of a field.
pub trait ComparedValue {
    /// Reads a field of a message as it is encoded: a list is a field several times.
    fn read(field: &FieldDescriptor, encoded: &[&[u8]]) -> Self;
}

/// Fields as JSON.
impl ComparedValue for Value {
    fn read(field: &FieldDescriptor, encoded: &[&[u8]]) -> Self {
        let message = field.parent_message().clone();
        let json = message_json::encoded_json(message, &encoded.concat());
        let value = json.and_then(|mut json| json.as_object_mut()?.remove(field.name()));
        value.unwrap_or_default()
    }
}

/// A digest of what is encoded. A field may have megabytes, and its JSON takes many times as much
/// memory.
impl ComparedValue for [u8; 32] {
    fn read(_: &FieldDescriptor, encoded: &[&[u8]]) -> Self {
        let digest = encoded.iter().fold(Sha256::default(), Sha256::with);
        digest.finish()
    }
}

/// Two guides as they are compared: without what a task that is managed in `target` takes from its
/// answer.
pub fn compared_pair<V: ComparedValue>(
    base: &TaskDocument,
    target: &TaskDocument,
) -> [ComparedTask<V>; 2] {
    let mut guides = [compared(base), compared(target)];
    let task = target.task.as_ref();
    if task.is_some_and(|task| !task.parent_guid.is_empty()) {
        for guide in &mut guides {
            let fields = &mut guide.fields;
            fields.retain(|(path, _)| !matches!(path.as_str(), "name" | "external_id"));
        }
    }
    guides
}

/// A guide as it is compared.
pub fn compared<V: ComparedValue>(guide: &TaskDocument) -> ComparedTask<V> {
    let task = guide.task.as_ref();
    ComparedTask {
        guid: task.map_or_else(String::new, |task| task.guid.clone()),
        fields: task.map_or_else(Vec::new, |task| honored(&TASK, task)),
        steps: guide.steps.iter().map(compared_step).collect(),
    }
}

fn compared_step<V: ComparedValue>(step: &Step) -> ComparedStep<V> {
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
    if step.r#type() == StepType::Subtask && !step.title.is_empty() {
        // It follows the task that the step refers to.
        own.to_mut().title.clear();
    }
    let managed = managed_documents(step);
    ComparedStep {
        guid: step.guid.clone(),
        fields: honored(&STEP, own.as_ref()),
        managed: managed
            .map(|(value, guide)| (value.key.clone(), compared(guide)))
            .collect(),
    }
}

/// The fields that a task or step sets and that an import honors, those of translations one by one.
fn honored<V: ComparedValue>(
    resource: &ResourceFields,
    message: &impl Message,
) -> Vec<(String, V)> {
    let bytes = message.encode_to_vec();
    let fields = wire::fields(&bytes).unwrap_or_default();
    let is_translation = |field: &WireField<'_>| field.number == resource.translations;
    let own = fields.iter().filter(|field| {
        let found = resource.get(field.number);
        matches!(found, Some((_, FieldUse::Honored))) && !is_translation(field)
    });
    let mut honored = values("", &resource.message, own);
    let entries = fields.iter().filter(|field| is_translation(field));
    for entry in entries.filter_map(|field| MapEntry::read(field.content)) {
        let texts = wire::fields(&entry.texts).unwrap_or_default();
        let within = format!("{TRANSLATIONS}[\"{}\"].", entry.key);
        let mut texts = values(&within, &resource.translated, texts.iter());
        texts.sort_by(|(one, _), (other, _)| one.cmp(other));
        honored.extend(texts);
    }
    honored
}

/// The values of a message's fields by their paths.
fn values<'a, V: ComparedValue>(
    within: &str,
    descriptor: &MessageDescriptor,
    fields: impl Iterator<Item = &'a WireField<'a>>,
) -> Vec<(String, V)> {
    let mut encoded: BTreeMap<u32, Vec<&[u8]>> = BTreeMap::new();
    for field in fields {
        encoded.entry(field.number).or_default().push(field.whole);
    }
    let values = encoded.into_iter().filter_map(|(number, encoded)| {
        let field = descriptor.get_field(number)?;
        let path = format!("{within}{}", field.name());
        Some((path, V::read(&field, &encoded)))
    });
    values.collect()
}
