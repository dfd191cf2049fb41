//! Messages as text for snapshots: JSON with every field, in which ids are numbered and
//! etags and times are placeholders.

use std::collections::{BTreeMap, HashMap};

use prost::Message;
use prost_reflect::{DynamicMessage, SerializeOptions};
use serde_json::{Value, json};

use super::{contract::descriptor, failure::Failure};

/// The text of a snapshot.
pub fn text(message: &Value) -> String {
    let pretty = serde_json::to_string_pretty(message).expect("JSON");
    number_ids(&pretty)
}

/// A message of this name with all its fields, but for absent optional ones.
pub fn message(name: &str, message: &impl Message) -> Value {
    let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
    let options = SerializeOptions::new()
        .skip_default_fields(false)
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false);
    let json = message
        .expect("the message")
        .serialize_with_options(serde_json::value::Serializer, &options);
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
                    Value::String(text) if name == "etag" && !text.is_empty() => {
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

/// An error with its details.
pub fn failure(failure: &Failure) -> Value {
    let details = &failure.details;
    let resource = details.resource_info();
    let metadata: BTreeMap<String, String> = failure.metadata().into_iter().collect();
    let violations = details.bad_request().map(|request| {
        let shown = request.field_violations.iter();
        let shown = shown.map(|v| json!([v.field, v.reason, v.description]));
        shown.collect::<Vec<Value>>()
    });
    let preconditions = details.precondition_failure().map(|failure| {
        let shown = failure.violations.iter();
        let shown = shown.map(|v| json!([v.r#type, v.subject, v.description]));
        shown.collect::<Vec<Value>>()
    });
    json!({
        "code": format!("{:?}", failure.code),
        "message": failure.message,
        "reason": failure.reason(),
        "metadata": metadata,
        "violations": violations,
        "preconditions": preconditions,
        "resource": resource.map(|r| {
            json!([r.resource_type, r.resource_name, r.owner, r.description])
        }),
    })
}

/// Replaces each UUID by a number, in the order of their first appearance.
pub fn number_ids(text: &str) -> String {
    const LENGTH: usize = 36;
    let mut seen: Vec<&str> = Vec::new();
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let id = rest
            .get(..LENGTH)
            .filter(|part| part.contains('-') && uuid::Uuid::try_parse(part).is_ok());
        let Some(id) = id else {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let number = seen.iter().position(|s| *s == id).unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        shown.push_str(&format!("[id {}]", number + 1));
        rest = &rest[LENGTH..];
    }
    shown
}

/// Replaces ids by the order in which they appear, and removes times and etags.
#[derive(Default)]
pub struct Names(HashMap<String, usize>);

impl Names {
    /// The text without times and etags; what an id is called is kept for the next text.
    pub fn normalised(&mut self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let length = token_length(rest);
            let (token, behind) = rest.split_at(length);
            rest = behind;
            if is_id(token) {
                let next = self.0.len();
                let id = token.replace('-', "").to_lowercase();
                text.push_str(&format!("<{}>", self.0.entry(id).or_insert(next)));
            } else {
                text.push_str(token);
            }
        }
        without(&without(&text, "etag: \"", "\""), "Timestamp {", "}")
    }
}

/// The length of the hexadecimal digits and hyphens in front, or of one character.
fn token_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_hexdigit() && c != '-');
    match end.unwrap_or(text.len()) {
        0 => text.chars().next().map_or(1, char::len_utf8),
        length => length,
    }
}

/// A GUID, or 16 bytes as hexadecimal digits.
fn is_id(token: &str) -> bool {
    matches!(token.len(), 32 | 36) && token.replace('-', "").len() == 32
}

/// The text without what stands between two others.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
    }
    kept
}
