//! The fields of tasks and steps, and how writes treat each, according to the proto files.

use std::{collections::BTreeMap, sync::LazyLock};

use prost::Message;
use prost_reflect::{FieldDescriptor, MessageDescriptor};

use super::{
    encoded_resource::{FieldKey, MAP_VALUE},
    message_json::descriptor,
    wire,
};

/// The map of translations.
pub const TRANSLATIONS: &str = "translations";

/// The conditions, and the short form of a single condition.
pub const DEPENDENCIES: &str = "dependencies";
pub const SHORTHAND: &str = "dependency_shorthand";

/// What a caller can do with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUse {
    /// Creates and updates honor it.
    Honored,
    /// Only creates honor it.
    Creation,
    /// The system sets it.
    System,
    /// It identifies the resource to update and its version.
    Identity,
}

/// The fields of a task or step.
#[derive(Debug)]
pub struct ResourceFields {
    /// Its own fields, and the fields in its questions that are not honored, by their paths of
    /// field numbers.
    fields: BTreeMap<Vec<u32>, (String, FieldUse)>,
    /// The number of [`TRANSLATIONS`].
    pub translations: u32,
    /// The fields of a translation by number.
    pub translation: BTreeMap<u32, String>,
    /// The number of the lock of a translation.
    pub lock: u32,
}

pub static TASK: LazyLock<ResourceFields> = LazyLock::new(|| ResourceFields::read("Task"));
pub static STEP: LazyLock<ResourceFields> = LazyLock::new(|| ResourceFields::read("Step"));

impl ResourceFields {
    #[allow(clippy::expect_used)] // The build script has compiled the descriptors.
    fn read(name: &str) -> Self {
        let message = descriptor(name).expect("a message of the API");
        let translations = message.get_field_by_name(TRANSLATIONS);
        let translations = translations.expect("a map of translations");
        let translated = submessage(&translations).expect("a message");
        let lock = translated.get_field_by_name("locked");
        let texts = translated.fields();
        let mut fields = BTreeMap::new();
        add_fields(&message, "", &[], &mut fields);
        Self {
            fields,
            translations: translations.number(),
            translation: texts
                .map(|it| (it.number(), it.name().to_owned()))
                .collect(),
            lock: lock.expect("a lock").number(),
        }
    }

    /// The name of a field, and what a caller can do with it.
    pub fn get(&self, number: u32) -> Option<(&str, FieldUse)> {
        let (name, field_use) = self.fields.get(&[number][..])?;
        Some((name, *field_use))
    }

    /// Its own fields: their numbers, names, and uses.
    pub fn own(&self) -> impl Iterator<Item = (u32, &str, FieldUse)> {
        let fields = self.fields.iter();
        fields.filter_map(|(numbers, (name, field_use))| match numbers[..] {
            [number] => Some((number, name.as_str(), *field_use)),
            _ => None,
        })
    }

    pub fn is_shorthand(&self, key: FieldKey<'_>) -> bool {
        matches!(key, (None, number) if matches!(self.get(number), Some((SHORTHAND, _))))
    }

    /// The number of the field with this name, and what a caller can do with it.
    pub fn find(&self, name: &str) -> Option<(u32, &str, FieldUse)> {
        self.own().find(|(_, it, _)| *it == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.own().map(|(_, name, _)| name)
    }

    /// The names of the fields that an update changes, sorted.
    pub fn honored(&self) -> Vec<&str> {
        let honored = self.own().filter(|(_, _, it)| *it == FieldUse::Honored);
        let mut names: Vec<&str> = honored.map(|(_, name, _)| name).collect();
        names.sort_unstable();
        names
    }

    /// Whether an encoded message has the field of this name.
    pub fn is_sent(&self, name: &str, message: &[u8]) -> bool {
        let fields = wire::fields(message).unwrap_or_default();
        let found = self.find(name);
        found.is_some_and(|(number, _, _)| fields.iter().any(|field| field.number == number))
    }

    /// The paths of the sent fields that a create does not honor.
    pub fn ignored_by_create(&'static self, message: &impl Message) -> Vec<&'static str> {
        let message = message.encode_to_vec();
        let fields = wire::fields(&message).unwrap_or_default();
        let listed = self.fields.iter().filter(|(numbers, (_, field_use))| {
            let is_ignored = matches!(field_use, FieldUse::System | FieldUse::Identity);
            is_ignored && !wire::find(&fields, numbers).is_empty()
        });
        listed.map(|(_, (path, _))| path.as_str()).collect()
    }

    /// The listed fields whose sent values differ from the stored ones.
    pub fn differing(
        &'static self,
        message: &[u8],
        is_listed: impl Fn(&str, FieldUse) -> bool,
        stored: &[u8],
    ) -> Vec<&'static str> {
        let message = wire::fields(message).unwrap_or_default();
        let sent: Vec<_> = self
            .fields
            .iter()
            .filter(|(_, (path, field_use))| is_listed(path, *field_use))
            .map(|(numbers, (path, _))| (path, numbers, wire::find(&message, numbers)))
            .filter(|(_, _, values)| !values.is_empty())
            .collect();
        if sent.is_empty() {
            return Vec::new();
        }
        let stored = wire::fields(stored).unwrap_or_default();
        let differs = |numbers: &[u32], sent: &[&[u8]]| {
            let stored = wire::find(&stored, numbers);
            match numbers {
                [_] => sent != stored,
                // Elements may have been removed.
                _ => sent.iter().any(|value| !stored.contains(value)),
            }
        };
        let differing = sent
            .iter()
            .filter(|(_, numbers, sent)| differs(numbers, sent));
        differing.map(|(path, _, _)| path.as_str()).collect()
    }
}

fn field_use(field: &FieldDescriptor) -> FieldUse {
    const OUTPUT_ONLY: i32 = 3;
    const IMMUTABLE: i32 = 5;
    const IDENTIFIER: i32 = 8;
    match field.name() {
        // These are annotated as optional, like fields that an update changes.
        "etag" => return FieldUse::Identity,
        SHORTHAND => return FieldUse::Creation,
        _ => {}
    }
    let options = field.options();
    let mut options = options.extensions();
    let behaviors = options.find(|(it, _)| it.full_name() == "google.api.field_behavior");
    let behaviors = behaviors.and_then(|(_, value)| value.as_list());
    let behaviors = behaviors.into_iter().flatten();
    let uses = behaviors.filter_map(|it| match it.as_enum_number()? {
        IDENTIFIER => Some(FieldUse::Identity),
        OUTPUT_ONLY => Some(FieldUse::System),
        IMMUTABLE => Some(FieldUse::Creation),
        _ => None,
    });
    uses.last().unwrap_or(FieldUse::Honored)
}

/// The type of a field's messages; for a map, that of its values.
fn submessage(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let message = field.kind().as_message()?.clone();
    if !message.is_map_entry() {
        return Some(message);
    }
    message.map_entry_value_field().kind().as_message().cloned()
}

/// Adds the fields of a resource, and the fields that are not honored in its questions and their
/// translations.
fn add_fields(
    message: &MessageDescriptor,
    path: &str,
    numbers: &[u32],
    fields: &mut BTreeMap<Vec<u32>, (String, FieldUse)>,
) {
    /// Only the question of the step itself can be linked.
    const LINKED: &str = "translations.feedback_config.linked";
    for field in message.fields() {
        let path = format!("{path}{}", field.name());
        let mut numbers = [numbers, &[field.number()]].concat();
        let field_use = match path.as_str() {
            LINKED => FieldUse::System,
            _ => field_use(&field),
        };
        if numbers.len() == 1 || field_use == FieldUse::System {
            fields.insert(numbers.clone(), (path.clone(), field_use));
        }
        if matches!(field.name(), TRANSLATIONS | "feedback_config" | "values")
            && let Some(message) = submessage(&field)
        {
            if field.is_map() {
                numbers.push(MAP_VALUE);
            }
            add_fields(&message, &format!("{path}."), &numbers, fields);
        }
    }
}
