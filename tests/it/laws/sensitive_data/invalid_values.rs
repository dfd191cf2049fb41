//! Invalid values for the fields of a request, each with a mark.

use prost_reflect::{Kind, Value};
use prost_types::FieldMask;
use serde_json::json;

use super::marks::{KEY, TEXT};
use crate::{
    kit::{
        contract::field_value,
        sample::{self, object, value},
    },
    laws::field_paths::FieldPath,
    prelude::{arrays_deep, member},
};

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
                let masks = paths.map(|path| FieldMask { paths: vec![path] });
                masks.map(|mask| field_value(&message, &mask)).collect()
            }
            "google.protobuf.Value" => vec![
                field_value(&message, &sample::text(&format!("{TEXT}\0"))),
                field_value(&message, &arrays_deep(DEEP, TEXT)),
                field_value(&message, &value(json!({format!("{KEY}\0"): TEXT}))),
            ],
            "google.protobuf.Struct" => vec![
                field_value(&message, &object(json!({KEY: format!("{TEXT}\0")}))),
                field_value(&message, &object(json!({format!("{KEY}\0"): TEXT}))),
                field_value(&message, &member(KEY, arrays_deep(DEEP, TEXT))),
            ],
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
