//! Messages of the API as JSON, in the mapping of protobuf with the field names and order of the
//! proto files, so that equal messages have equal texts.

use std::collections::{BTreeMap, HashMap};

use jsonc_parser::{ParseOptions, ast, common::Ranged, parse_to_ast};
use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, Kind, MessageDescriptor};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use serde_path_to_error::Track;

use crate::{
    messages::message_json,
    proto::v1::TaskDocument,
    terminal::{escape_formatting, sanitize},
};

/// Whole numbers up to 2^53 are exact in JSON readers, which may keep them as 64-bit floats.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A byte-order mark, with which some editors begin a file.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// What serde_json says about a `\u` escape of half of a surrogate pair.
const SURROGATE_ERRORS: [&str; 2] = [
    "lone leading surrogate in hex escape",
    "unexpected end of hex escape",
];

/// Reads a document. Unknown or repeated fields, and numbers that would be rounded, are errors.
pub(super) fn parse(text: &str) -> Result<TaskDocument, String> {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let descriptor = descriptor("TaskDocument");
    let mut json = serde_json::Deserializer::from_str(text);
    let mut track = Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let message =
        DynamicMessage::deserialize_with_options(descriptor.clone(), deserializer, &options)
            .and_then(|message| json.end().map(|()| message))
            .map_err(|error| {
                // If the text is not JSON, the path is meaningless.
                let path = match track.path().to_string().as_str() {
                    path if error.is_data() && path != "." => format!("{path}: "),
                    _ => String::new(),
                };
                let problem = error.to_string();
                let problem = SURROGATE_ERRORS.iter().fold(problem, |problem, known| {
                    problem.replace(known, "a text has half of a surrogate pair")
                });
                no_guide(&format!("{path}{problem}"))
            })?;
    let too_deep = || no_guide("it is nested too deeply");
    let root = ast(text).ok_or_else(too_deep)?;
    check(&root, &JsonShape::Message(descriptor), "").map_err(|(problem, offset)| {
        no_guide(&format!("{problem} at line {}", line_at(text, offset)))
    })?;
    message.transcode_to().map_err(|_| too_deep())
}

fn no_guide(problem: &str) -> String {
    format!("it is not a guide: {}", sanitize(problem))
}

/// A text as a tree whose values have positions; `None` if it is not JSON.
pub(super) fn ast(text: &str) -> Option<ast::Value<'_>> {
    let parsed = parse_to_ast(text, &Default::default(), &ParseOptions::default());
    parsed.ok()?.value
}

/// The line at this offset, counted from 1.
pub(super) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// Finds a name that is repeated within an object, in either spelling of a field, or a number that
/// would be rounded. Returns the problem and its offset.
fn check(value: &ast::Value<'_>, shape: &JsonShape, path: &str) -> Result<(), (String, usize)> {
    match value {
        ast::Value::Object(object) => {
            let mut names = HashMap::new();
            for property in &object.properties {
                let name = property.name.as_str();
                let (field, shape) = shape.member(name);
                if let Some(other) = names.insert(field, name) {
                    let problem = match other == name {
                        true => format!("`{name}` appears twice"),
                        false => format!("`{name}` and `{other}` are the same field"),
                    };
                    return Err((join(path, &problem, ": "), property.range.start));
                }
                check(&property.value, &shape, &join(path, name, "."))?;
            }
            Ok(())
        }
        ast::Value::Array(array) => {
            let elements = array.elements.iter().enumerate();
            elements
                .into_iter()
                .try_for_each(|(index, it)| check(it, shape, &format!("{path}[{index}]")))
        }
        ast::Value::NumberLit(number) => match shape {
            JsonShape::Value if is_rounded(number.value) => {
                let problem = format!("{} would be rounded: write it as a text", number.value);
                Err((join(path, &problem, ": "), value.start()))
            }
            _ => Ok(()),
        },
        ast::Value::StringLit(_) | ast::Value::BooleanLit(_) | ast::Value::NullKeyword(_) => Ok(()),
    }
}

fn join(path: &str, name: &str, separator: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}{separator}{name}"),
    }
}

/// Whether no float has exactly the value of a whole number.
fn is_rounded(number: &str) -> bool {
    let is_whole = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    let float = number.parse::<f64>().unwrap_or_default();
    is_whole && number.parse::<i128>().ok() != Some(float as i128)
}

/// A document as text for [`parse`].
pub(super) fn text(document: &TaskDocument) -> String {
    escape_formatting(&(message_text("TaskDocument", document) + "\n"))
}

/// A message of the API, such as a `Step`, as text.
#[allow(clippy::expect_used)]
pub(super) fn message_text(name: &str, message: &impl Message) -> String {
    let shape = JsonShape::Message(descriptor(name));
    let value = json(name, message);
    let text = serde_json::to_string_pretty(&Ordered(&value, &shape));
    text.expect("JSON can be written as text")
}

/// A message of the API as JSON.
#[allow(clippy::expect_used)]
pub(super) fn json(name: &str, message: &impl Message) -> Value {
    message_json::json(descriptor(name), message).expect("a message of the server has a JSON form")
}

pub(super) fn json_list<'m, M: Message + 'm>(
    name: &str,
    messages: impl IntoIterator<Item = &'m M>,
) -> Vec<Value> {
    messages.into_iter().map(|it| json(name, it)).collect()
}

pub(super) fn from_json<M: Message + Default>(name: &str, value: &Value) -> Option<M> {
    message_json::from_json(descriptor(name), value)
}

/// A value in a message, on one line.
pub(super) fn value_text(value: &Value) -> String {
    serde_json::to_string(&Ordered(value, &JsonShape::Value)).unwrap_or_default()
}

#[allow(clippy::expect_used)] // The build script has compiled the descriptors.
fn descriptor(name: &str) -> MessageDescriptor {
    message_json::descriptor(name).expect("a message of the API")
}

/// The kind of a value, which decides the order of its members.
#[derive(Clone)]
enum JsonShape {
    /// A message of the API, whose fields keep their order.
    Message(MessageDescriptor),
    /// A map, whose keys are sorted.
    Map(Box<JsonShape>),
    /// Any JSON, whose numbers are floats. Members of objects are sorted by name.
    Value,
    Scalar,
}

impl JsonShape {
    fn for_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Message(message) if message.is_map_entry() => {
                let value = message.map_entry_value_field().kind();
                Self::Map(Box::new(Self::for_kind(&value)))
            }
            Kind::Message(message) if message.full_name().starts_with("google.protobuf.") => {
                Self::Value
            }
            Kind::Message(message) => Self::Message(message.clone()),
            _ => Self::Scalar,
        }
    }

    /// The name of an object's member in the API, and its shape.
    fn member(&self, name: &str) -> (String, Self) {
        match self {
            Self::Message(message) => {
                let field = message.get_field_by_name(name);
                match field.or_else(|| message.get_field_by_json_name(name)) {
                    Some(field) => (field.name().to_owned(), Self::for_kind(&field.kind())),
                    None => (name.to_owned(), Self::Value),
                }
            }
            Self::Map(value) => (name.to_owned(), Self::clone(value)),
            Self::Value | Self::Scalar => (name.to_owned(), Self::Value),
        }
    }
}

struct Ordered<'a>(&'a Value, &'a JsonShape);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, shape) = self;
        match (value, shape) {
            (Value::Array(elements), shape) => {
                serializer.collect_seq(elements.iter().map(|element| Ordered(element, shape)))
            }
            (Value::Object(members), JsonShape::Message(message)) => {
                let mut object = serializer.serialize_map(None)?;
                for field in message.fields() {
                    if let Some(value) = members.get(field.name()) {
                        let shape = JsonShape::for_kind(&field.kind());
                        object.serialize_entry(field.name(), &Ordered(value, &shape))?;
                    }
                }
                object.end()
            }
            (Value::Object(members), shape) => {
                let (_, shape) = shape.member("");
                let sorted: BTreeMap<_, _> = members.iter().collect();
                let entries = sorted.into_iter();
                serializer.collect_map(entries.map(|(name, value)| (name, Ordered(value, &shape))))
            }
            (Value::Number(number), _) => match number.as_f64() {
                // JSON has one kind of number, so whole numbers are written as 20, not 20.0. Only
                // floats have a negative zero.
                Some(float)
                    if number.is_f64()
                        && float.fract() == 0.0
                        && float.abs() <= MAX_EXACT_INTEGER
                        && !(float == 0.0 && float.is_sign_negative()) =>
                {
                    serializer.serialize_i64(float as i64)
                }
                _ => number.serialize(serializer),
            },
            (Value::Null | Value::Bool(_) | Value::String(_), _) => value.serialize(serializer),
        }
    }
}
