//! Invalid values for the fields of a request, each with a mark.

use prost_reflect::{DynamicMessage, Kind, MapKey, MessageDescriptor, ReflectMessage, Value};

use super::marks::{KEY, TEXT};
use crate::kit::contract::FieldPath;

/// Longer than any text but a body may be.
const LONG: usize = 1_500;
/// Deeper than JSON may be.
const DEEP: usize = 40;

/// Values for a field; none where it holds no text. One is enough in nested documents,
/// which are read like the outer ones.
pub fn values(place: &FieldPath) -> Vec<Value> {
    let mut values = all_values(place);
    if place.path().contains("task_json") {
        values = values.into_iter().skip(1).take(1).collect();
    }
    values
}

/// Whether a field has the name of a revision. Errors show it, as they show an id.
fn names_revision(place: &FieldPath) -> bool {
    ["alias", "base", "revision", "target"].contains(&place.path().as_str())
}

fn all_values(place: &FieldPath) -> Vec<Value> {
    let text = |text: String| Value::String(text);
    match place.kind() {
        Kind::String if place.path().ends_with("[key]") || names_revision(place) => vec![
            text(KEY.to_owned()),
            text(format!("{KEY}\0")),
            text(format!("de-{KEY}-{KEY}-{KEY}")),
            text(KEY.repeat(LONG)),
        ],
        Kind::String => vec![
            text(TEXT.to_owned()),
            text(format!("{TEXT}\0")),
            text(format!("  {TEXT}\n")),
            text(TEXT.repeat(LONG)),
            text(format!("components.1204.{TEXT} is {TEXT}")),
            text(format!("components.{TEXT}.on = \"{TEXT}")),
            text(format!("01a1fdaf-d221-7557-a852-{TEXT}")),
        ],
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.FieldMask" => {
                let paths = [
                    TEXT.to_owned(),
                    format!("{TEXT}.{TEXT}"),
                    format!("translations.{KEY}.{TEXT}"),
                    format!("translations.`{TEXT}"),
                    format!("name,{TEXT}"),
                    TEXT.repeat(LONG),
                ];
                let paths = paths.into_iter();
                paths.map(|path| mask(&message, path)).collect()
            }
            "google.protobuf.Value" => vec![
                json_text(&message, &format!("{TEXT}\0")),
                (0..DEEP).fold(json_text(&message, TEXT), |inner, _| {
                    json_list(&message, inner)
                }),
                json_object(&message, &format!("{KEY}\0"), TEXT),
            ],
            "google.protobuf.Struct" => {
                let values = message.get_field_by_name("fields").expect("its members");
                let Kind::Message(entry) = values.kind() else {
                    panic!("members are a map");
                };
                let Kind::Message(value) = entry.map_entry_value_field().kind() else {
                    panic!("members are values");
                };
                let deep =
                    (0..DEEP).fold(json_text(&value, TEXT), |inner, _| json_list(&value, inner));
                vec![
                    members(&message, KEY, json_text(&value, &format!("{TEXT}\0"))),
                    members(&message, &format!("{KEY}\0"), json_text(&value, TEXT)),
                    members(&message, KEY, deep),
                ]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The same message with a mark that ends in invalid UTF-8.
pub fn broken(mut message: Vec<u8>) -> Option<Vec<u8>> {
    let mut windows = message.windows(TEXT.len());
    let at = windows.position(|window| window == TEXT.as_bytes())?;
    message[at + TEXT.len() - 1] = 0xff;
    Some(message)
}

fn field(message: &MessageDescriptor, name: &str, value: Value) -> Value {
    let mut made = DynamicMessage::new(message.clone());
    made.set_field_by_name(name, value);
    Value::Message(made)
}

fn mask(message: &MessageDescriptor, path: String) -> Value {
    field(message, "paths", Value::List(vec![Value::String(path)]))
}

fn json_text(value: &MessageDescriptor, text: &str) -> Value {
    field(value, "string_value", Value::String(text.to_owned()))
}

fn json_list(value: &MessageDescriptor, inner: Value) -> Value {
    let list = inner_message(value, "list_value");
    field(
        value,
        "list_value",
        field(&list, "values", Value::List(vec![inner])),
    )
}

fn json_object(value: &MessageDescriptor, key: &str, text: &str) -> Value {
    let object = inner_message(value, "struct_value");
    let made = members(&object, key, json_text(value, text));
    field(value, "struct_value", made)
}

fn members(object: &MessageDescriptor, key: &str, value: Value) -> Value {
    let members = [(MapKey::String(key.to_owned()), value)].into();
    field(object, "fields", Value::Map(members))
}

fn inner_message(message: &MessageDescriptor, name: &str) -> MessageDescriptor {
    let empty = DynamicMessage::new(message.clone());
    let field = empty.descriptor().get_field_by_name(name).expect("a field");
    match field.kind() {
        Kind::Message(inner) => inner,
        other => panic!("{name} is {other:?}"),
    }
}
