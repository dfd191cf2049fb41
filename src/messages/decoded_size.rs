//! Computes how much memory a message will take, before it is decoded.
//!
//! An empty element takes two bytes in a message and hundreds of bytes in memory, so the length of
//! a message alone does not bound its memory.

use std::{collections::HashMap, sync::LazyLock};

use bytes::Buf;
use prost::{
    decode_length_delimiter,
    encoding::{DecodeContext, WireType, decode_key, skip_field},
};
use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};
use prost_types::{Struct, Value};

use super::message_json::{all_messages, services};
use crate::proto::v1;

/// A `String`, a `Vec` or a `BTreeMap`, without what it points to.
const HEADER_BYTES: usize = 24;
/// A number, or a pointer.
const WORD_BYTES: usize = 8;
/// The capacity of a list from its first element on, and of a map from its first entry on.
const LIST_ROOM: usize = 4;
const MAP_ROOM: usize = 11;
/// prost rejects messages that nest deeper.
const MAX_DEPTH: usize = 100;

static SIZES: LazyLock<Sizes> = LazyLock::new(Sizes::of_api);

/// The memory that the elements of a request take, without their texts, which are as long as in the
/// message. The rpc is `/package.Service/Method`. Counting stops above `limit`, and where the message cannot
/// be decoded.
pub fn request_bytes(rpc: &str, message: impl Buf, limit: usize) -> usize {
    message_bytes(SIZES.requests.get(rpc), message, limit)
}

/// The same for the elements of a document.
pub fn document_bytes(document: impl Buf) -> usize {
    message_bytes(SIZES.document.as_ref(), document, usize::MAX)
}

fn message_bytes(message: Option<&usize>, mut bytes: impl Buf, limit: usize) -> usize {
    let mut counter = Counter { bytes: 0, limit };
    if let Some(message) = message {
        counter.count(*message, &mut bytes, 0, MAX_DEPTH);
    }
    counter.bytes
}

/// The sizes of the API's messages.
struct Sizes {
    /// The index of each request's message, by rpc.
    requests: HashMap<String, usize>,
    /// The index of the message of a document.
    document: Option<usize>,
    /// The fields of each message, by its index.
    messages: Vec<Vec<Field>>,
}

/// A field of a message.
#[derive(Clone, Copy)]
struct Field {
    number: u32,
    /// The memory that each occurrence takes outside the struct of its message.
    element_bytes: usize,
    /// What the first occurrence takes in addition: room for further occurrences.
    room_bytes: usize,
    content: Content,
}

#[derive(Clone, Copy)]
enum Content {
    /// A message, by its index.
    Message(usize),
    /// Numbers, which may be packed, so that each byte may be an element.
    Packed,
    /// A text or a number.
    Scalar,
}

impl Sizes {
    fn of_api() -> Self {
        let messages: Vec<MessageDescriptor> = all_messages().collect();
        let index = |name: &str| messages.iter().position(|it| it.full_name() == name);
        let mut requests = HashMap::new();
        for service in services() {
            for rpc in service.methods() {
                let path = format!("/{}/{}", service.full_name(), rpc.name());
                let request = index(rpc.input().full_name());
                requests.extend(request.map(|index| (path, index)));
            }
        }
        let field = |field: FieldDescriptor| {
            let element_bytes = element_bytes(&field);
            let room = match (field.is_map(), field.is_list()) {
                (true, _) => MAP_ROOM,
                (_, true) => LIST_ROOM,
                _ => 1,
            };
            Field {
                number: field.number(),
                element_bytes,
                room_bytes: (room - 1) * element_bytes,
                content: match field.kind() {
                    Kind::Message(message) => {
                        index(message.full_name()).map_or(Content::Scalar, Content::Message)
                    }
                    Kind::String | Kind::Bytes => Content::Scalar,
                    _ if field.is_list() => Content::Packed,
                    _ => Content::Scalar,
                },
            }
        };
        Self {
            requests,
            document: index("expertise.v1.TaskDocument"),
            messages: messages
                .iter()
                .map(|it| it.fields().map(field).collect())
                .collect(),
        }
    }
}

/// The memory that each occurrence of a field takes outside the struct of its message. An entry of a map is
/// a message, too: its key and its value.
fn element_bytes(field: &FieldDescriptor) -> usize {
    let is_repeated = field.cardinality() == Cardinality::Repeated;
    match field.kind() {
        // A pointer, as configured in `build.rs`.
        Kind::Message(message) if is_repeated || field.name() == "task_json" => {
            struct_bytes(&message)
        }
        Kind::String | Kind::Bytes if is_repeated => HEADER_BYTES,
        _ if is_repeated => WORD_BYTES,
        _ => 0,
    }
}

/// The size of a message's struct. Messages that requests repeat rarely count as a step, the largest.
fn struct_bytes(message: &MessageDescriptor) -> usize {
    if message.is_map_entry() {
        let value = message.map_entry_value_field().kind();
        return HEADER_BYTES + value.as_message().map_or(HEADER_BYTES, struct_bytes);
    }
    match message.name() {
        "AutomaticTranslation" => size_of::<v1::AutomaticTranslation>(),
        "Condition" => size_of::<v1::Condition>(),
        "DependencyNode" => size_of::<v1::DependencyNode>(),
        "FeedbackConfig" => size_of::<v1::FeedbackConfig>(),
        "FeedbackValue" => size_of::<v1::FeedbackValue>(),
        "StepTranslation" => size_of::<v1::StepTranslation>(),
        "Struct" => size_of::<Struct>(),
        "TaskDocument" => size_of::<v1::TaskDocument>(),
        "TaskTranslation" => size_of::<v1::TaskTranslation>(),
        "Value" => size_of::<Value>(),
        _ => size_of::<v1::Step>(),
    }
}

/// The elements of one message, counted so far.
struct Counter {
    bytes: usize,
    limit: usize,
}

impl Counter {
    /// Counts the elements of a message that ends where `end` bytes are left. Returns `None` if it
    /// cannot be decoded.
    fn count(
        &mut self,
        message: usize,
        buffer: &mut impl Buf,
        end: usize,
        depth: usize,
    ) -> Option<()> {
        let fields = SIZES.messages.get(message)?;
        // Which fields have occurred, by position.
        let mut seen = 0_u64;
        while buffer.remaining() > end && self.bytes <= self.limit {
            let (number, wire_type) = decode_key(buffer).ok()?;
            let place = fields.iter().position(|field| field.number == number);
            let field = place.and_then(|place| fields.get(place));
            let content = field.map_or(Content::Scalar, |field| field.content);
            self.bytes += field.map_or(0, |field| field.element_bytes);
            let bit = place
                .and_then(|place| 1_u64.checked_shl(place as u32))
                .unwrap_or_default();
            if seen & bit == 0 && bit != 0 {
                seen |= bit;
                self.bytes += field.map_or(0, |field| field.room_bytes);
            }
            match (content, wire_type) {
                (Content::Message(inner), WireType::LengthDelimited) if depth > 0 => {
                    let rest = rest_after_field(buffer, end)?;
                    self.count(inner, buffer, rest, depth - 1)?;
                }
                (Content::Packed, WireType::LengthDelimited) => {
                    let rest = rest_after_field(buffer, end)?;
                    let length = buffer.remaining() - rest;
                    self.bytes += length * WORD_BYTES;
                    buffer.advance(length);
                }
                _ => skip_field(wire_type, number, buffer, DecodeContext::default()).ok()?,
            }
        }
        Some(())
    }
}

/// Reads the length of a field, and returns how many bytes are left after the field. Returns `None`
/// if the field is longer than the message, after which `end` bytes are left.
fn rest_after_field(buffer: &mut impl Buf, end: usize) -> Option<usize> {
    let length = decode_length_delimiter(&mut *buffer).ok()?;
    let rest = buffer.remaining().checked_sub(length)?;
    (rest >= end).then_some(rest)
}

#[cfg(test)]
mod tests;
