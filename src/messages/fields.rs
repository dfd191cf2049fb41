//! The fields of tasks and steps, and what becomes of each, as the contract declares it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use prost_reflect::{FieldDescriptor, MessageDescriptor};

use super::{ignored::Ignored, message_json::descriptor, wire};

/// The map of translations.
pub const TRANSLATIONS: &str = "translations";

/// The conditions, and the short form of a single one.
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
    /// It says which resource is updated, in which version.
    Identity,
}

/// The fields of a task or step.
#[derive(Debug)]
pub struct ResourceFields {
    /// By number.
    fields: BTreeMap<u32, (String, FieldUse)>,
    /// The number of [`TRANSLATIONS`].
    pub translations: u32,
    /// The fields of a translation by number.
    pub translation: BTreeMap<u32, String>,
    /// Fields of messages in the resource that are not honored: their paths, and the numbers of
    /// the fields that lead to them.
    nested: Vec<(String, Vec<u32>)>,
}

pub static TASK: LazyLock<ResourceFields> = LazyLock::new(|| ResourceFields::read("Task"));
pub static STEP: LazyLock<ResourceFields> = LazyLock::new(|| ResourceFields::read("Step"));

impl ResourceFields {
    #[allow(clippy::expect_used)] // The build script has compiled the descriptors.
    fn read(name: &str) -> Self {
        let message = descriptor(name).expect("a message of the contract");
        let fields = message.fields();
        let fields = fields.map(|it| (it.number(), (it.name().to_owned(), field_use(&it))));
        let translations = message.get_field_by_name(TRANSLATIONS);
        let translations = translations.expect("a map of translations");
        let translated = submessage(&translations).expect("a message");
        let texts = translated.fields();
        let mut nested = Vec::new();
        find_nested(&message, "", &[], &mut nested);
        Self {
            fields: fields.collect(),
            translations: translations.number(),
            translation: texts
                .map(|it| (it.number(), it.name().to_owned()))
                .collect(),
            nested,
        }
    }

    /// The name of a field, and what a caller can do with it.
    pub fn get(&self, number: u32) -> Option<(&str, FieldUse)> {
        let (name, field_use) = self.fields.get(&number)?;
        Some((name, *field_use))
    }

    /// The number of the field of this name, and what a caller can do with it.
    pub fn find(&self, name: &str) -> Option<(u32, &str, FieldUse)> {
        let mut fields = self.fields.iter();
        fields.find_map(|(number, (it, field_use))| {
            (it == name).then_some((*number, it.as_str(), *field_use))
        })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.values().map(|(name, _)| name.as_str())
    }

    /// The names of the fields that an update changes, sorted.
    pub fn honored(&self) -> Vec<&str> {
        let fields = self.fields.values();
        let honored = fields.filter(|(_, field_use)| *field_use == FieldUse::Honored);
        let mut names: Vec<&str> = honored.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    pub fn is_shorthand(&self, number: u32) -> bool {
        matches!(self.get(number), Some((SHORTHAND, _)))
    }

    /// Whether an encoded message has the field of this name.
    pub fn is_sent(&self, name: &str, message: &[u8]) -> bool {
        let found = self.find(name);
        found.is_some_and(|(number, _, _)| wire::has(message, &[number]))
    }

    /// Lists the fields of an encoded message that the system sets, and those of another use.
    pub fn list_sent(&'static self, message: &[u8], other: FieldUse, ignored: &mut Ignored) {
        ignored.add(self.sent(message, other).into_iter().map(|(name, _)| name));
    }

    /// The fields of an encoded message that the system sets, and those of another use, with the numbers
    /// that lead to them.
    fn sent(&'static self, message: &[u8], other: FieldUse) -> Vec<(&'static str, Vec<u32>)> {
        let sent = wire::fields(message).unwrap_or_default();
        let numbers: BTreeSet<u32> = sent.iter().map(|field| field.number).collect();
        let fields = numbers.into_iter().filter_map(|number| {
            let (name, field_use) = self.get(number)?;
            let is_listed = field_use == FieldUse::System || field_use == other;
            is_listed.then_some((name, vec![number]))
        });
        let nested = self.nested.iter();
        let nested = nested.filter(|(_, numbers)| wire::has(message, numbers));
        let nested = nested.map(|(path, numbers)| (path.as_str(), numbers.clone()));
        fields.chain(nested).collect()
    }

    /// The fields that an update does not honor and whose sent values are not stored: those that the
    /// system sets, those that only creates honor, and `not_honored`. `stored` encodes what is stored.
    pub fn differing(
        &'static self,
        message: &[u8],
        not_honored: &[&'static str],
        stored: impl FnOnce() -> Vec<u8>,
    ) -> Vec<&'static str> {
        let mut sent = self.sent(message, FieldUse::Creation);
        for (number, (name, _)) in &self.fields {
            if let Some(name) = not_honored.iter().find(|it| *it == name)
                && wire::has(message, &[*number])
            {
                sent.push((*name, vec![*number]));
            }
        }
        if sent.is_empty() {
            return Vec::new();
        }
        let stored = stored();
        let differs = |(_, numbers): &(&str, Vec<u32>)| {
            let (sent, stored) = (
                wire::contents(message, numbers),
                wire::contents(&stored, numbers),
            );
            match numbers.as_slice() {
                [_] => sent != stored,
                // Elements may have been removed.
                _ => sent.iter().any(|value| !stored.contains(value)),
            }
        };
        sent.retain(differs);
        sent.into_iter().map(|(name, _)| name).collect()
    }
}

fn field_use(field: &FieldDescriptor) -> FieldUse {
    const OUTPUT_ONLY: i32 = 3;
    const IMMUTABLE: i32 = 5;
    const IDENTIFIER: i32 = 8;
    match field.name() {
        // They are annotated as optional, like fields that an update changes.
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

/// Finds the fields that are not honored in the questions of a resource and of its translations.
fn find_nested(
    message: &MessageDescriptor,
    path: &str,
    numbers: &[u32],
    found: &mut Vec<(String, Vec<u32>)>,
) {
    /// The number of the value in an entry of a map.
    const MAP_VALUE: u32 = 2;
    /// Only the question of the step itself can be linked.
    const LINKED: &str = "translations.feedback_config.linked";
    for field in message.fields() {
        let path = format!("{path}{}", field.name());
        let mut numbers = [numbers, &[field.number()]].concat();
        let is_nested = numbers.len() > 1;
        if path == LINKED || (is_nested && field_use(&field) == FieldUse::System) {
            found.push((path, numbers));
        } else if matches!(field.name(), TRANSLATIONS | "feedback_config" | "values")
            && let Some(message) = submessage(&field)
        {
            if field.is_map() {
                numbers.push(MAP_VALUE);
            }
            find_nested(&message, &format!("{path}."), &numbers, found);
        }
    }
}
