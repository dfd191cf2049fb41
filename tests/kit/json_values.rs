//! JSON in messages that are known by their descriptors.

use prost_reflect::{DynamicMessage, Kind, MapKey, MessageDescriptor, Value};

/// A message with one field.
pub fn field(message: &MessageDescriptor, name: &str, value: Value) -> Value {
    let mut made = DynamicMessage::new(message.clone());
    made.set_field_by_name(name, value);
    Value::Message(made)
}

/// A text, of the type `google.protobuf.Value`.
pub fn text(value: &MessageDescriptor, text: &str) -> Value {
    field(value, "string_value", Value::String(text.to_owned()))
}

pub fn number(value: &MessageDescriptor, number: f64) -> Value {
    field(value, "number_value", Value::F64(number))
}

pub fn list(value: &MessageDescriptor, inner: Value) -> Value {
    let list = inner_message(value, "list_value");
    field(
        value,
        "list_value",
        field(&list, "values", Value::List(vec![inner])),
    )
}

/// Lists nested so deep around a text.
pub fn lists(value: &MessageDescriptor, depth: usize, end: &str) -> Value {
    (0..depth).fold(text(value, end), |inner, _| list(value, inner))
}

pub fn object(value: &MessageDescriptor, key: &str, inner: Value) -> Value {
    let object = inner_message(value, "struct_value");
    field(value, "struct_value", member(&object, key, inner))
}

/// An object with one member, of the type `google.protobuf.Struct`.
pub fn member(object: &MessageDescriptor, key: &str, value: Value) -> Value {
    let members = [(MapKey::String(key.to_owned()), value)].into();
    field(object, "fields", Value::Map(members))
}

/// The type of the values of an object.
pub fn value_of(object: &MessageDescriptor) -> MessageDescriptor {
    let entry = inner_message(object, "fields");
    inner_message(&entry, "value")
}

fn inner_message(message: &MessageDescriptor, name: &str) -> MessageDescriptor {
    let field = message.get_field_by_name(name).expect("a field");
    match field.kind() {
        Kind::Message(inner) => inner,
        other => panic!("{name} is {other:?}"),
    }
}
