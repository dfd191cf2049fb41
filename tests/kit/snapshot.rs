//! Messages as text for snapshots: JSON with every field, in which ids are numbered and
//! etags and times are placeholders.

use std::collections::HashMap;

use prost::Message;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::{Value, json};

use super::contract::descriptor;

/// A message with this name and all its fields, except absent optional ones.
pub fn message(name: &str, message: &impl Message) -> Value {
    let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
    shown(&message.expect("the message"))
}

/// The same, for a message that knows its fields.
pub fn shown(message: &DynamicMessage) -> Value {
    let options = SerializeOptions::new()
        .skip_default_fields(false)
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false);
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    let mut json = json.expect("JSON");
    replace_etags_and_times(&mut json);
    json
}

fn replace_etags_and_times(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(replace_etags_and_times),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name.ends_with("etag") && !text.is_empty() => {
                        *value = json!("[etag]");
                    }
                    Value::String(_) if name.ends_with("_ts") => *value = json!("[time]"),
                    value => replace_etags_and_times(value),
                }
            }
        }
        _ => {}
    }
}

/// Replaces each UUID by a number, in the order of their first appearance.
pub fn number_ids(text: &str) -> String {
    let mut numbers = HashMap::new();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // Hexadecimal digits and hyphens, or one other character.
        let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != '-');
        let length = match end.unwrap_or(rest.len()) {
            0 => rest.chars().next().map_or(1, char::len_utf8),
            length => length,
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if token.len() == 36 && uuid::Uuid::try_parse(token).is_ok() {
            let next = numbers.len() + 1;
            let number = numbers.entry(token).or_insert(next);
            shown.push_str(&format!("[id {number}]"));
        } else {
            shown.push_str(token);
        }
    }
    shown
}
