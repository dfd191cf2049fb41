//! The contract: its calls and messages.

use std::sync::LazyLock;

use expertise::proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage,
    SerializeOptions, Value,
};

pub const PACKAGE: &str = "expertise.v1";
static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the contract"));

/// The rpcs of the contract, such as `TaskService/GetTask`.
pub fn methods() -> Vec<String> {
    let services = POOL.services().filter(|s| s.package_name() == PACKAGE);
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    let name = |method: MethodDescriptor| {
        let service = method.parent_service();
        format!("{}/{}", service.name(), method.name())
    };
    methods.map(name).collect()
}

/// The descriptor of a message of the contract, such as `Task`.
pub fn descriptor(message: &str) -> MessageDescriptor {
    let message = POOL.get_message_by_name(&format!("{PACKAGE}.{message}"));
    message.expect("a message of the contract")
}

/// The request or the response of a call such as `TaskService/GetTask`; `end` is how its name ends.
pub fn message_of(call: &str, end: &str) -> MessageDescriptor {
    let (_, rpc) = call.split_once('/').expect("a call");
    descriptor(&format!("{rpc}{end}"))
}

/// A message as JSON, its maps in the order of their keys.
pub fn json(message: &DynamicMessage) -> serde_json::Value {
    serde_json::to_value(message)
        .unwrap_or_else(|error| panic!("{}: {error}", message.descriptor().full_name()))
}

/// A message as JSON, whose fields have their names in the proto files.
pub fn proto_json(message: &DynamicMessage) -> serde_json::Value {
    let options = SerializeOptions::new().use_proto_field_name(true);
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    json.unwrap_or_else(|error| panic!("{}: {error}", message.descriptor().full_name()))
}

/// A message as a value of a field of its type.
pub fn field_value(descriptor: &MessageDescriptor, message: &impl Message) -> Value {
    let message = DynamicMessage::decode(descriptor.clone(), &*message.encode_to_vec());
    Value::Message(message.expect("a message of this type"))
}

/// The request of a call such as `TaskService/GetTask`, encoded.
pub fn request(call: &str, request: serde_json::Value) -> Vec<u8> {
    message(call, request).encode_to_vec()
}

/// The request of a call. Masks may be lists of paths, as not every path has a form in JSON.
pub fn message(call: &str, request: serde_json::Value) -> DynamicMessage {
    try_message(call, request).unwrap_or_else(|error| panic!("{call}: {error}"))
}

/// The same; an error if it is not JSON of such a request.
pub fn try_message(
    call: &str,
    mut request: serde_json::Value,
) -> Result<DynamicMessage, serde_json::Error> {
    let descriptor = message_of(call, "Request");
    let mut masks = Vec::new();
    for field in descriptor.fields() {
        let sent = request.get_mut(field.name());
        if let (Kind::Message(kind), Some(serde_json::Value::Array(paths))) = (field.kind(), sent)
            && kind.full_name() == "google.protobuf.FieldMask"
        {
            let paths = paths.iter().filter_map(serde_json::Value::as_str);
            let paths = paths.map(|path| Value::String(path.to_owned())).collect();
            let mut mask = DynamicMessage::new(kind);
            mask.set_field_by_name("paths", Value::List(paths));
            masks.push((field.clone(), mask));
            request[field.name()].take();
        }
    }
    let mut message = DynamicMessage::deserialize(descriptor, request)?;
    for (field, mask) in masks {
        message.set_field(&field, Value::Message(mask));
    }
    Ok(message)
}
