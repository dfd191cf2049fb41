//! How much memory a message takes when it is decoded, computed before it is.
//!
//! An empty element is two bytes of a message and hundreds of bytes of memory, so the
//! length of a message alone does not bound what it takes.

use std::collections::HashMap;

use bytes::Buf;
use prost::{
    decode_length_delimiter,
    encoding::{DecodeContext, WireType, decode_key, skip_field},
};
use prost_reflect::{
    DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, OneofDescriptor,
};

use super::FILE_DESCRIPTOR_SET;

/// A `String`, a `Vec` or a `BTreeMap`, without what it points to.
const HEADER_BYTES: usize = 24;
/// A number, or a pointer.
const WORD_BYTES: usize = 8;
/// prost refuses messages that nest deeper.
const MAX_DEPTH: usize = 100;

/// The sizes of the contract's messages, without the texts in them.
pub struct DecodedSizes {
    /// The index of each request's message, by `/package.Service/Method`.
    requests: HashMap<String, usize>,
    /// The fields of each message, by its index.
    messages: Vec<Vec<Field>>,
}

/// A field of a message.
#[derive(Clone, Copy)]
struct Field {
    number: u32,
    /// The memory that each occurrence takes outside the struct of its message.
    element_bytes: usize,
    content: Content,
}

#[derive(Clone, Copy)]
enum Content {
    /// A message, by its index.
    Message(usize),
    /// Numbers, several of which may be packed, so that each byte may be an element.
    Packed,
    /// A text or a number.
    Scalar,
}

impl DecodedSizes {
    /// Those of the contract.
    pub fn new() -> Self {
        // The descriptors are valid: the tests read them.
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
        let indexes: HashMap<String, usize> = pool
            .all_messages()
            .enumerate()
            .map(|(index, message)| (message.full_name().to_owned(), index))
            .collect();
        let index = |message: MessageDescriptor| indexes.get(message.full_name()).copied();
        let content = |field: &FieldDescriptor| match field.kind() {
            Kind::Message(message) => index(message).map_or(Content::Scalar, Content::Message),
            Kind::String | Kind::Bytes => Content::Scalar,
            _ if field.is_list() => Content::Packed,
            _ => Content::Scalar,
        };
        let fields = |message: MessageDescriptor| {
            let field = |field: FieldDescriptor| Field {
                number: field.number(),
                element_bytes: element_bytes(&field),
                content: content(&field),
            };
            message.fields().map(field).collect()
        };
        let services = pool.services();
        let rpcs = services.flat_map(|service| service.methods().collect::<Vec<_>>());
        let request = |rpc: MethodDescriptor| {
            let path = format!("/{}/{}", rpc.parent_service().full_name(), rpc.name());
            Some((path, index(rpc.input())?))
        };
        Self {
            requests: rpcs.filter_map(request).collect(),
            messages: pool.all_messages().map(fields).collect(),
        }
    }

    /// The memory that the elements of a request take, without their texts, which are as
    /// long as in the message. Counting ends above `limit`, and where the message cannot be
    /// decoded.
    pub fn of_request(&self, rpc: &str, mut message: impl Buf, limit: usize) -> usize {
        let mut counter = Counter {
            sizes: self,
            bytes: 0,
            limit,
        };
        if let Some(request) = self.requests.get(rpc) {
            counter.count(*request, &mut message, 0, MAX_DEPTH);
        }
        counter.bytes
    }
}

/// The memory that each occurrence of a field takes outside the struct of its message.
fn element_bytes(field: &FieldDescriptor) -> usize {
    match field.kind() {
        // An entry of a map is a message, too: its key and its value.
        Kind::Message(message) if field.is_list() || field.is_map() || is_boxed(field) => {
            message_bytes(&message)
        }
        Kind::String | Kind::Bytes if field.is_list() => HEADER_BYTES,
        _ if field.is_list() => WORD_BYTES,
        _ => 0,
    }
}

/// The size of the struct of a message.
fn message_bytes(message: &MessageDescriptor) -> usize {
    let is_alone = |field: &FieldDescriptor| {
        let oneof = field.containing_oneof();
        oneof.is_none_or(|oneof| oneof.is_synthetic())
    };
    let alone = message.fields().filter(is_alone);
    let alone: usize = alone.map(|field| field_bytes(&field)).sum();
    let oneofs = message.oneofs().filter(|oneof| !oneof.is_synthetic());
    alone + oneofs.map(|oneof| oneof_bytes(&oneof)).sum::<usize>()
}

/// The largest field of a oneof, and the tag that tells which one is set.
fn oneof_bytes(oneof: &OneofDescriptor) -> usize {
    let largest = oneof.fields().map(|field| field_bytes(&field)).max();
    largest.unwrap_or_default() + WORD_BYTES
}

/// The part of a field in the struct of its message.
fn field_bytes(field: &FieldDescriptor) -> usize {
    match field.kind() {
        _ if field.is_list() || field.is_map() => HEADER_BYTES,
        Kind::String | Kind::Bytes => HEADER_BYTES,
        Kind::Message(message) if !is_boxed(field) => message_bytes(&message),
        // The flag whether it is set takes a word of its own.
        Kind::Int64 | Kind::Double if field.supports_presence() => 2 * WORD_BYTES,
        _ => WORD_BYTES,
    }
}

/// Whether a message holds a pointer to the field.
fn is_boxed(field: &FieldDescriptor) -> bool {
    field.full_name() == "expertise.v1.FeedbackValue.task_json"
}

/// The elements of one message, counted so far.
struct Counter<'a> {
    sizes: &'a DecodedSizes,
    bytes: usize,
    limit: usize,
}

impl Counter<'_> {
    /// Counts the elements of a message that ends where `end` bytes are left. `None` where it
    /// cannot be decoded.
    fn count(
        &mut self,
        message: usize,
        buffer: &mut impl Buf,
        end: usize,
        depth: usize,
    ) -> Option<()> {
        let fields = self.sizes.messages.get(message)?;
        while buffer.remaining() > end && self.bytes <= self.limit {
            let (number, wire_type) = decode_key(buffer).ok()?;
            let field = fields.iter().find(|field| field.number == number);
            let content = field.map_or(Content::Scalar, |field| field.content);
            self.bytes += field.map_or(0, |field| field.element_bytes);
            match (content, wire_type) {
                (Content::Message(inner), WireType::LengthDelimited) if depth > 0 => {
                    let rest = rest_behind_field(buffer, end)?;
                    self.count(inner, buffer, rest, depth - 1)?;
                }
                (Content::Packed, WireType::LengthDelimited) => {
                    let rest = rest_behind_field(buffer, end)?;
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

/// Reads the length of a field, and returns how many bytes are left behind the field. `None`
/// if it is longer than the message, behind which `end` bytes are left.
fn rest_behind_field(buffer: &mut impl Buf, end: usize) -> Option<usize> {
    let length = decode_length_delimiter(&mut *buffer).ok()?;
    let rest = buffer.remaining().checked_sub(length)?;
    (rest >= end).then_some(rest)
}

#[cfg(test)]
mod tests;
