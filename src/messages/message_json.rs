//! Messages of the contract as JSON, with the field names of the contract.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{
    DescriptorError, DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions,
};
use serde_json::Value;

use crate::proto::FILE_DESCRIPTOR_SET;

static CONTRACT: LazyLock<Result<DescriptorPool, DescriptorError>> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET));

/// The message type of this name, such as `Task`; `None` if the contract has none.
pub fn descriptor(name: &str) -> Option<MessageDescriptor> {
    let contract = CONTRACT.as_ref().ok()?;
    contract.get_message_by_name(&format!("expertise.v1.{name}"))
}

/// A message of this type as JSON; `None` if it is of another type.
pub fn json(descriptor: MessageDescriptor, message: &impl Message) -> Option<Value> {
    encoded_json(descriptor, &message.encode_to_vec())
}

/// An encoded message of this type as JSON; `None` if it is of another type.
pub fn encoded_json(descriptor: MessageDescriptor, message: &[u8]) -> Option<Value> {
    let options = SerializeOptions::new().use_proto_field_name(true);
    let dynamic = DynamicMessage::decode(descriptor, message).ok()?;
    let json = serde_json::value::Serializer;
    dynamic.serialize_with_options(json, &options).ok()
}

/// A message of this type from its JSON; `None` if it is of another type.
pub fn from_json<M: Message + Default>(descriptor: MessageDescriptor, json: &Value) -> Option<M> {
    let message = DynamicMessage::deserialize(descriptor, json).ok()?;
    message.transcode_to().ok()
}
