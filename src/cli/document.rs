//! Messages of the contract as JSON: protobuf's mapping, with the field names of the
//! contract and in its order, so that equal messages are equal texts.

mod contract_values;
mod json_error;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, Kind, MessageDescriptor};
use serde::{
    Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Value, error::Category};
use serde_path_to_error::Track;

use self::json_error::KnownNames;
use crate::{
    messages::message_json,
    proto::v1::TaskDocument,
    terminal::{escape_formatting, sanitize},
};

/// Whole numbers up to 2^53 are exact in JSON readers, which may keep them as 64-bit floats.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Why a document cannot be read or written. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not JSON, or holds what a document does not have.
    #[error("it is not a guide: {0}")]
    Malformed(MalformedDocument),
    /// The descriptors of the contract are unusable: a fault of the build.
    #[error("the descriptors of the contract are unusable: this build is broken")]
    Contract,
}

/// What is wrong with a text that is no document, and where.
#[derive(Debug)]
pub struct MalformedDocument {
    /// The path of the value, such as `steps[2].type`; empty where there is none.
    pub path: String,
    /// The line, counted from 1; 0 if it is not known.
    pub line: usize,
    /// The column, counted from 1; 0 if it is not known.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl MalformedDocument {
    /// An error of the reader, found at this path.
    fn new(path: &serde_path_to_error::Path, error: &serde_json::Error) -> Self {
        let known = KnownNames {
            values: contract_values::of_enum_at(path),
            fields: contract_values::fields_at(path),
        };
        // Where the text is not JSON, the path says nothing.
        let path = match error.classify() {
            Category::Data => path.to_string(),
            Category::Io | Category::Syntax | Category::Eof => String::new(),
        };
        Self {
            path: match path.as_str() {
                "." => String::new(),
                _ => sanitize(&path),
            },
            line: error.line(),
            column: error.column(),
            message: sanitize(&json_error::message(error, &known)),
        }
    }
}

impl fmt::Display for MalformedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// A byte-order mark in UTF-8, with which some editors begin a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a document. An unknown field is an error that names it.
pub(super) fn parse(text: &[u8]) -> Result<TaskDocument, DocumentError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let trimmed = text.trim_ascii_start();
    let first = trimmed.first();
    if first.is_none_or(|first| !b"{[\"".contains(first)) {
        let (before, _) = text.split_at(text.len() - trimmed.len());
        let line_start = before.iter().rev().take_while(|byte| **byte != b'\n');
        return Err(DocumentError::Malformed(MalformedDocument {
            path: String::new(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: line_start.count() + 1,
            message: match first {
                None => "the text is empty".to_owned(),
                Some(_) => "a document is a JSON object: it begins with `{`".to_owned(),
            },
        }));
    }
    let descriptor = descriptor("TaskDocument")?;
    let shape = JsonShape::Message(descriptor.clone());
    read_json(text, UniqueNames(&shape))?;
    let message = read_json(text, AnyMessage(descriptor))?;
    message.transcode_to().map_err(|_| {
        DocumentError::Malformed(MalformedDocument {
            path: String::new(),
            line: 0,
            column: 0,
            message: "it is nested too deeply".to_owned(),
        })
    })
}

/// Reads a text that holds one JSON value.
fn read_json<'de, S: DeserializeSeed<'de>>(
    text: &'de [u8],
    seed: S,
) -> Result<S::Value, DocumentError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut track = Track::new();
    let read = seed.deserialize(serde_path_to_error::Deserializer::new(
        &mut json, &mut track,
    ));
    read.and_then(|value| json.end().map(|()| value))
        .map_err(|error| DocumentError::Malformed(MalformedDocument::new(&track.path(), &error)))
}

/// Reads a message. An unknown field is an error.
struct AnyMessage(MessageDescriptor);

impl<'de> DeserializeSeed<'de> for AnyMessage {
    type Value = DynamicMessage;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<DynamicMessage, D::Error> {
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        DynamicMessage::deserialize_with_options(self.0, deserializer, &options)
    }
}

/// JSON of this shape in which the names within each object are unique, in either spelling of a
/// field. Without this check one of two values would be lost.
struct UniqueNames<'a>(&'a JsonShape);

impl<'de> DeserializeSeed<'de> for UniqueNames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(Self(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut names = HashMap::new();
        while let Some(name) = entries.next_key::<String>()? {
            let (field, shape) = self.0.member(&name);
            if let Some(other) = names.insert(field, name.clone()) {
                return Err(A::Error::custom(match other == name {
                    true => format!("`{name}` appears twice"),
                    false => format!("`{name}` and `{other}` are the same field"),
                }));
            }
            entries.next_value_seed(UniqueNames(&shape))?;
        }
        Ok(())
    }
}

/// A document as text that [`parse`] reads.
pub(super) fn text(document: &TaskDocument) -> Result<String, DocumentError> {
    let json = json("TaskDocument", document)?;
    let text = serde_json::to_string_pretty(&json).map_err(|_| DocumentError::Contract)?;
    Ok(escape_formatting(&(text + "\n")))
}

/// A message of the contract, such as a `Task`, as JSON.
pub(super) fn json(name: &str, message: &impl Message) -> Result<MessageJson, DocumentError> {
    MessageJson::of(name, message)
}

/// A message of the contract, such as a `Task`, from its JSON.
pub(super) fn from_json<M: Message + Default>(
    name: &str,
    value: &Value,
) -> Result<M, DocumentError> {
    message_json::from_json(descriptor(name)?, value).ok_or(DocumentError::Contract)
}

/// A value of a message on one line.
pub(super) fn value_text(value: &Value) -> String {
    serde_json::to_string(&Ordered(value, &JsonShape::Plain)).unwrap_or_default()
}

fn descriptor(name: &str) -> Result<MessageDescriptor, DocumentError> {
    message_json::descriptor(name).ok_or(DocumentError::Contract)
}

/// A message as JSON.
pub(super) struct MessageJson {
    value: Value,
    shape: JsonShape,
}

impl MessageJson {
    fn of(name: &str, message: &impl Message) -> Result<Self, DocumentError> {
        let descriptor = descriptor(name)?;
        let value = message_json::json(descriptor.clone(), message);
        Ok(Self {
            value: value.ok_or(DocumentError::Contract)?,
            shape: JsonShape::Message(descriptor),
        })
    }
}

impl Serialize for MessageJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Ordered(&self.value, &self.shape).serialize(serializer)
    }
}

/// What a value is, which decides the order in which it is written.
#[derive(Clone)]
enum JsonShape {
    /// A message of the contract: its fields in their order.
    Message(MessageDescriptor),
    /// A map, whose keys are ordered.
    Map(Box<JsonShape>),
    /// Anything else; the members of objects in it are ordered by name.
    Plain,
}

impl JsonShape {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Message(message) if message.is_map_entry() => {
                let value = message.map_entry_value_field().kind();
                Self::Map(Box::new(Self::of(&value)))
            }
            Kind::Message(message) if !message.full_name().starts_with("google.protobuf.") => {
                Self::Message(message.clone())
            }
            _ => Self::Plain,
        }
    }

    /// The name in the contract and the shape of an object's member.
    fn member(&self, name: &str) -> (String, Self) {
        match self {
            Self::Message(message) => {
                let field = message.get_field_by_name(name);
                match field.or_else(|| message.get_field_by_json_name(name)) {
                    Some(field) => (field.name().to_owned(), Self::of(&field.kind())),
                    None => (name.to_owned(), Self::Plain),
                }
            }
            Self::Map(value) => (name.to_owned(), Self::clone(value)),
            Self::Plain => (name.to_owned(), Self::Plain),
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
                        let shape = JsonShape::of(&field.kind());
                        object.serialize_entry(field.name(), &Ordered(value, &shape))?;
                    }
                }
                object.end()
            }
            (Value::Object(members), shape) => {
                let shape = match shape {
                    JsonShape::Map(value) => value,
                    JsonShape::Message(_) | JsonShape::Plain => &JsonShape::Plain,
                };
                let sorted: BTreeMap<_, _> = members.iter().collect();
                let entries = sorted.into_iter();
                serializer.collect_map(entries.map(|(name, value)| (name, Ordered(value, shape))))
            }
            (Value::Number(number), _) => match number.as_f64() {
                // JSON has one kind of number, so whole numbers are written as 20, not 20.0.
                Some(float)
                    if number.is_f64()
                        && float.fract() == 0.0
                        && float.abs() < MAX_EXACT_INTEGER =>
                {
                    serializer.serialize_i64(float as i64)
                }
                _ => number.serialize(serializer),
            },
            (Value::Null | Value::Bool(_) | Value::String(_), _) => value.serialize(serializer),
        }
    }
}
