//! Computes how much memory a message will take, before it is decoded.
//!
//! An empty element takes two bytes in a message and hundreds of bytes in memory, so the length of
//! a message alone does not bound its memory.

use std::collections::{BTreeMap, HashMap};

use bytes::Buf;
use prost::{
    Message, decode_length_delimiter,
    encoding::{DecodeContext, WireType, decode_key, skip_field},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use super::FILE_DESCRIPTOR_SET;

/// A `String`, a `Vec` or a `BTreeMap`, without what it points to.
const HEADER_BYTES: usize = 24;
/// A number, or a pointer.
const WORD_BYTES: usize = 8;
/// The capacity of a list from its first element on, and of a map from its first entry on.
const LIST_ROOM: usize = 4;
const MAP_ROOM: usize = 11;
/// prost rejects messages that nest deeper.
const MAX_DEPTH: usize = 100;

/// The sizes of the API's messages, without the texts in them.
pub struct DecodedSizes {
    /// The index of each request's message, by `/package.Service/Method`.
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

impl DecodedSizes {
    /// The sizes of the messages of the API.
    pub fn for_api() -> Self {
        // The descriptors are valid: the tests read them.
        let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
        let schema = Schema::new(&set);
        let messages = schema.messages.values();
        let mut sizes = Self {
            requests: HashMap::new(),
            document: schema.index(".expertise.v1.TaskDocument"),
            messages: messages.map(|message| schema.fields(message)).collect(),
        };
        for file in &set.file {
            for service in &file.service {
                for rpc in &service.method {
                    let (service, rpc_name) = (service.name(), rpc.name());
                    let path = format!("/{}.{service}/{rpc_name}", file.package());
                    let request = schema.index(rpc.input_type());
                    sizes.requests.extend(request.map(|index| (path, index)));
                }
            }
        }
        sizes
    }

    /// The memory that the elements of a request take, without their texts, which are as long as in
    /// the message. Counting stops above `limit`, and where the message cannot be decoded.
    pub fn request_bytes(&self, rpc: &str, message: impl Buf, limit: usize) -> usize {
        self.message_bytes(self.requests.get(rpc).copied(), message, limit)
    }

    /// The same for the elements of a document.
    pub fn document_bytes(&self, document: impl Buf) -> usize {
        self.message_bytes(self.document, document, usize::MAX)
    }

    fn message_bytes(&self, index: Option<usize>, mut message: impl Buf, limit: usize) -> usize {
        let mut counter = Counter {
            sizes: self,
            bytes: 0,
            limit,
        };
        if let Some(index) = index {
            counter.count(index, &mut message, 0, MAX_DEPTH);
        }
        counter.bytes
    }
}

/// The messages of the API and its imports by name, such as `.expertise.v1.Step`.
struct Schema<'a> {
    messages: BTreeMap<String, &'a DescriptorProto>,
}

impl<'a> Schema<'a> {
    fn new(set: &'a FileDescriptorSet) -> Self {
        let mut schema = Self {
            messages: BTreeMap::new(),
        };
        for file in &set.file {
            schema.add(&format!(".{}", file.package()), &file.message_type);
        }
        schema
    }

    fn add(&mut self, scope: &str, messages: &'a [DescriptorProto]) {
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            self.add(&name, &message.nested_type);
            self.messages.insert(name, message);
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.messages.keys().position(|known| known == name)
    }

    fn fields(&self, message: &DescriptorProto) -> Vec<Field> {
        let fields = message.field.iter();
        let fields = fields.map(|field| Field {
            number: field.number().unsigned_abs(),
            element_bytes: self.element_bytes(field),
            room_bytes: self.room_bytes(field),
            content: match field.r#type() {
                Type::Message => self
                    .index(field.type_name())
                    .map_or(Content::Scalar, Content::Message),
                Type::String | Type::Bytes => Content::Scalar,
                _ if is_list(field) => Content::Packed,
                _ => Content::Scalar,
            },
        });
        fields.collect()
    }

    /// The memory that each occurrence of a field takes outside the struct of its message. An
    /// entry of a map is a message, too: its key and its value.
    fn element_bytes(&self, field: &FieldDescriptorProto) -> usize {
        match field.r#type() {
            Type::Message if is_list(field) || is_boxed(field) => {
                self.message_bytes(field.type_name())
            }
            Type::String | Type::Bytes if is_list(field) => HEADER_BYTES,
            _ if is_list(field) => WORD_BYTES,
            _ => 0,
        }
    }

    /// The memory for further occurrences of a field that has occurred once.
    fn room_bytes(&self, field: &FieldDescriptorProto) -> usize {
        let entry = self.messages.get(field.type_name());
        let is_map =
            entry.is_some_and(|entry| entry.options.as_ref().is_some_and(|it| it.map_entry()));
        let room = match is_list(field) {
            true if is_map => MAP_ROOM,
            true => LIST_ROOM,
            false => 1,
        };
        (room - 1) * self.element_bytes(field)
    }

    /// The size of the struct of a message.
    fn message_bytes(&self, name: &str) -> usize {
        let Some(message) = self.messages.get(name) else {
            return 0;
        };
        let mut bytes = 0;
        // A oneof is as large as its largest field.
        let mut oneofs = BTreeMap::new();
        for field in &message.field {
            let own = self.field_bytes(field);
            match field.oneof_index {
                Some(oneof) if !field.proto3_optional() => {
                    let largest = oneofs.entry(oneof).or_default();
                    *largest = own.max(*largest);
                }
                _ => bytes += own,
            }
        }
        // A word stores which field of a oneof is set.
        let oneofs = oneofs.into_values().map(|largest| largest + WORD_BYTES);
        bytes + oneofs.sum::<usize>()
    }

    /// The bytes that a field takes in the struct of its message.
    fn field_bytes(&self, field: &FieldDescriptorProto) -> usize {
        match field.r#type() {
            _ if is_list(field) => HEADER_BYTES,
            Type::String | Type::Bytes => HEADER_BYTES,
            Type::Message if !is_boxed(field) => self.message_bytes(field.type_name()),
            // The flag that says whether it is set takes a word.
            Type::Int64 | Type::Double if field.proto3_optional() => 2 * WORD_BYTES,
            _ => WORD_BYTES,
        }
    }
}

/// Whether a field is a list or a map.
fn is_list(field: &FieldDescriptorProto) -> bool {
    field.label() == Label::Repeated
}

/// Whether a message holds a pointer to the field, as configured in `build.rs`. prost also boxes
/// fields that contain their own message, but the API has none.
fn is_boxed(field: &FieldDescriptorProto) -> bool {
    field.name() == "task_json"
}

/// The elements of one message, counted so far.
struct Counter<'a> {
    sizes: &'a DecodedSizes,
    bytes: usize,
    limit: usize,
}

impl Counter<'_> {
    /// Counts the elements of a message that ends where `end` bytes are left. Returns `None` if it
    /// cannot be decoded.
    fn count(
        &mut self,
        message: usize,
        buffer: &mut impl Buf,
        end: usize,
        depth: usize,
    ) -> Option<()> {
        let fields = self.sizes.messages.get(message)?;
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
