//! Every field of the requests of the contract.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value};

use crate::kit::contract::{PACKAGE, message_of};

/// How often [`walk`] enters messages of one type on a path: documents hold steps that hold
/// documents.
const DEPTH: usize = 2;

/// Every path of a request to a value: scalar fields, keys of maps, and messages of
/// `google.protobuf`.
pub fn field_paths(call: &str) -> Vec<FieldPath> {
    let mut paths = Vec::new();
    walk(&message_of(call, "Request"), &mut Vec::new(), &mut paths);
    paths
}

/// A path of fields in a request, or the key of a map.
#[derive(Clone, Debug)]
pub struct FieldPath {
    fields: Vec<FieldDescriptor>,
    /// Whether it is the key of the map, not its values.
    is_key: bool,
}

impl FieldPath {
    /// The names of its fields, such as `step.feedback_config.values.link`; a key is
    /// `step.translations[key]`.
    pub fn path(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(FieldDescriptor::name).collect();
        names.join(".") + self.suffix()
    }

    /// The path in an error, where it names the first element: `task.translations["de"].name`.
    pub fn indexed(&self) -> String {
        let (last, outer) = self.fields.split_last().expect("a field");
        let outer = outer.iter().map(|field| {
            let index = match field {
                field if field.is_map() => "[\"de\"]",
                field if field.is_list() => "[0]",
                _ => "",
            };
            format!("{}{index}.", field.name())
        });
        outer.collect::<String>() + last.name()
    }

    /// Its last message and field, such as `FeedbackValue.link`.
    pub fn field(&self) -> String {
        let field = self.last();
        let message = field.parent_message();
        format!("{}.{}{}", message.name(), field.name(), self.suffix())
    }

    /// The kind of its value.
    pub fn kind(&self) -> Kind {
        match self.last().kind() {
            Kind::Message(entry) if self.is_key => entry.map_entry_key_field().kind(),
            Kind::Message(entry) if self.last().is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.is_key { "[key]" } else { "" }
    }

    fn last(&self) -> &FieldDescriptor {
        self.fields.last().expect("a field")
    }

    /// Sets the value. It descends into the first element of lists and maps, and adds
    /// one where they are empty.
    pub fn set(&self, message: &mut DynamicMessage, value: Value) {
        self.set_below(message, 0, value);
    }

    fn set_below(&self, message: &mut DynamicMessage, depth: usize, value: Value) {
        let field = &self.fields[depth];
        let last = depth + 1 == self.fields.len();
        let held = message.get_field_mut(field);
        if last && self.is_key {
            let Value::Map(entries) = held else {
                panic!("{} is no map", self.path());
            };
            let text = value.as_str().expect("a key is text").to_owned();
            let first = entries.drain().next();
            let content = first.map_or_else(|| element(field), |(_, content)| content);
            entries.insert(MapKey::String(text), content);
        } else if last {
            *held = if field.is_list() {
                Value::List(vec![value])
            } else if field.is_map() {
                Value::Map([(MapKey::String("key".to_owned()), value)].into())
            } else {
                value
            };
        } else {
            self.set_below(inner(held, field), depth + 1, value);
        }
    }
}

/// The message in a value; the first one of a list or map.
fn inner<'a>(held: &'a mut Value, field: &FieldDescriptor) -> &'a mut DynamicMessage {
    let held = match held {
        Value::List(list) => {
            if list.is_empty() {
                list.push(element(field));
            }
            &mut list[0]
        }
        Value::Map(entries) => {
            if entries.is_empty() {
                entries.insert(MapKey::String("de".to_owned()), element(field));
            }
            entries.values_mut().next().expect("an entry")
        }
        held => held,
    };
    match held {
        Value::Message(message) => message,
        other => panic!("{} holds {other:?}", field.full_name()),
    }
}

/// An empty element of a list or value of a map.
fn element(field: &FieldDescriptor) -> Value {
    let content = match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    };
    match content {
        Kind::Message(message) => Value::Message(DynamicMessage::new(message)),
        kind => Value::default_value(&kind),
    }
}

fn walk(
    message: &MessageDescriptor,
    fields: &mut Vec<FieldDescriptor>,
    paths: &mut Vec<FieldPath>,
) {
    for field in message.fields() {
        fields.push(field.clone());
        let path = |is_key| FieldPath {
            fields: fields.clone(),
            is_key,
        };
        let content = match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                paths.push(path(true));
                entry.map_entry_value_field().kind()
            }
            kind => kind,
        };
        match content {
            Kind::Message(inner) if inner.package_name() == PACKAGE => {
                let outer = fields
                    .iter()
                    .filter(|field| *field.parent_message() == inner);
                if outer.count() < DEPTH {
                    walk(&inner, fields, paths);
                }
            }
            _ => paths.push(path(false)),
        }
        fields.pop();
    }
}
