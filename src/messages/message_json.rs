//! The descriptors of the API, and its messages as JSON with its field names.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{
    DescriptorError, DescriptorPool, DynamicMessage, EnumDescriptor, MessageDescriptor,
    SerializeOptions, ServiceDescriptor,
};
use serde_json::Value;

use crate::proto::FILE_DESCRIPTOR_SET;

const PACKAGE: &str = "expertise.v1";

static DESCRIPTORS: LazyLock<Result<DescriptorPool, DescriptorError>> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET));

/// The message type of this name, such as `Task`; `None` if the API has none.
pub fn descriptor(name: &str) -> Option<MessageDescriptor> {
    let descriptors = DESCRIPTORS.as_ref().ok()?;
    descriptors.get_message_by_name(&format!("{PACKAGE}.{name}"))
}

/// All message types of the API and its imports, with the entries of maps.
pub fn all_messages() -> impl Iterator<Item = MessageDescriptor> {
    let descriptors = DESCRIPTORS.as_ref().into_iter();
    descriptors.flat_map(DescriptorPool::all_messages)
}

/// The services of the API.
pub fn services() -> impl Iterator<Item = ServiceDescriptor> {
    let descriptors = DESCRIPTORS.as_ref().into_iter();
    let services = descriptors.flat_map(DescriptorPool::services);
    services.filter(|service| service.package_name() == PACKAGE)
}

/// The values of the enum of this name with their numbers, without the one that is unspecified.
pub fn enum_values(name: &str) -> Vec<(String, i32)> {
    let descriptors = DESCRIPTORS.as_ref().ok();
    let found = descriptors.and_then(|it| it.get_enum_by_name(&format!("{PACKAGE}.{name}")));
    let values = found.iter().flat_map(EnumDescriptor::values);
    values
        .filter(|value| !value.name().ends_with("_UNSPECIFIED"))
        .map(|value| (value.name().to_owned(), value.number()))
        .collect()
}

/// A message of this type as JSON; `None` if it is of another type.
pub fn json(descriptor: MessageDescriptor, message: &impl Message) -> Option<Value> {
    let options = SerializeOptions::new().use_proto_field_name(true);
    let dynamic = DynamicMessage::decode(descriptor, &*message.encode_to_vec()).ok()?;
    let json = serde_json::value::Serializer;
    dynamic.serialize_with_options(json, &options).ok()
}

/// A message of this type from its JSON; `None` if it is of another type.
pub fn from_json<M: Message + Default>(descriptor: MessageDescriptor, json: &Value) -> Option<M> {
    let message = DynamicMessage::deserialize(descriptor, json).ok()?;
    message.transcode_to().ok()
}
