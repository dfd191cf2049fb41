//! The contract: its calls, and every field of their requests.

use std::sync::LazyLock;

use expertise::proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    MethodDescriptor, ReflectMessage, SerializeOptions, Value,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use super::client::Client;

const PACKAGE: &str = "expertise.v1";
/// How often [`walk`] enters messages of one type on a path: documents hold steps that hold
/// documents.
const DEPTH: usize = 2;

/// The response to one reflection request.
pub async fn reflect(client: &Client, request: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let mut reflection = ServerReflectionClient::new(client.channel());
    let stream = tokio_stream::once(request);
    let answers = reflection.server_reflection_info(stream).await;
    let answer = answers.expect("reflection").into_inner().message().await;
    let answer = answer.expect("reflection").expect("an answer");
    answer.message_response.expect("an answer")
}

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

/// Every path of a request to a value: scalar fields, keys of maps, and messages of
/// `google.protobuf`.
pub fn field_paths(call: &str) -> Vec<FieldPath> {
    let mut paths = Vec::new();
    walk(&message_of(call, "Request"), &mut Vec::new(), &mut paths);
    paths
}

/// A path of fields in a request, or the key of a map.
#[derive(Clone, Debug)]
pub struct FieldPath {
    fields: Vec<FieldDescriptor>,
    /// Whether it is the key of the map, not its values.
    is_key: bool,
}

impl FieldPath {
    /// The names of its fields, such as `step.feedback_config.values.link`; a key is
    /// `step.translations[key]`.
    pub fn path(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(FieldDescriptor::name).collect();
        names.join(".") + self.suffix()
    }

    /// The path in an error, where it names the first element: `task.translations["de"].name`.
    pub fn indexed(&self) -> String {
        let (last, outer) = self.fields.split_last().expect("a field");
        let outer = outer.iter().map(|field| {
            let index = match field {
                field if field.is_map() => "[\"de\"]",
                field if field.is_list() => "[0]",
                _ => "",
            };
            format!("{}{index}.", field.name())
        });
        outer.collect::<String>() + last.name()
    }

    /// Its last message and field, such as `FeedbackValue.link`.
    pub fn field(&self) -> String {
        let field = self.last();
        let message = field.parent_message();
        format!("{}.{}{}", message.name(), field.name(), self.suffix())
    }

    /// The kind of its value.
    pub fn kind(&self) -> Kind {
        match self.last().kind() {
            Kind::Message(entry) if self.is_key => entry.map_entry_key_field().kind(),
            Kind::Message(entry) if self.last().is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        }
    }

    fn suffix(&self) -> &'static str {
        if self.is_key { "[key]" } else { "" }
    }

    fn last(&self) -> &FieldDescriptor {
        self.fields.last().expect("a field")
    }

    /// Sets the value. It descends into the first element of lists and maps, and adds
    /// one where they are empty.
    pub fn set(&self, message: &mut DynamicMessage, value: Value) {
        self.set_below(message, 0, value);
    }

    fn set_below(&self, message: &mut DynamicMessage, depth: usize, value: Value) {
        let field = &self.fields[depth];
        let last = depth + 1 == self.fields.len();
        let held = message.get_field_mut(field);
        if last && self.is_key {
            let Value::Map(entries) = held else {
                panic!("{} is no map", self.path());
            };
            let text = value.as_str().expect("a key is text").to_owned();
            let first = entries.drain().next();
            let content = first.map_or_else(|| element(field), |(_, content)| content);
            entries.insert(MapKey::String(text), content);
        } else if last {
            *held = if field.is_list() {
                Value::List(vec![value])
            } else if field.is_map() {
                Value::Map([(MapKey::String("key".to_owned()), value)].into())
            } else {
                value
            };
        } else {
            self.set_below(inner(held, field), depth + 1, value);
        }
    }
}

/// The message in a value; the first one of a list or map.
fn inner<'a>(held: &'a mut Value, field: &FieldDescriptor) -> &'a mut DynamicMessage {
    let held = match held {
        Value::List(list) => {
            if list.is_empty() {
                list.push(element(field));
            }
            &mut list[0]
        }
        Value::Map(entries) => {
            if entries.is_empty() {
                entries.insert(MapKey::String("de".to_owned()), element(field));
            }
            entries.values_mut().next().expect("an entry")
        }
        held => held,
    };
    match held {
        Value::Message(message) => message,
        other => panic!("{} holds {other:?}", field.full_name()),
    }
}

/// An empty element of a list or value of a map.
fn element(field: &FieldDescriptor) -> Value {
    let content = match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    };
    match content {
        Kind::Message(message) => Value::Message(DynamicMessage::new(message)),
        kind => Value::default_value(&kind),
    }
}

fn walk(
    message: &MessageDescriptor,
    fields: &mut Vec<FieldDescriptor>,
    paths: &mut Vec<FieldPath>,
) {
    for field in message.fields() {
        fields.push(field.clone());
        let path = |is_key| FieldPath {
            fields: fields.clone(),
            is_key,
        };
        let content = match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                paths.push(path(true));
                entry.map_entry_value_field().kind()
            }
            kind => kind,
        };
        match content {
            Kind::Message(inner) if inner.package_name() == PACKAGE => {
                let outer = fields
                    .iter()
                    .filter(|field| *field.parent_message() == inner);
                if outer.count() < DEPTH {
                    walk(&inner, fields, paths);
                }
            }
            _ => paths.push(path(false)),
        }
        fields.pop();
    }
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

/// A message of this name as JSON.
pub fn shown(name: &str, message: &impl Message) -> serde_json::Value {
    let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
    json(&message.expect("the message"))
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

/// The request of a call in the form that responses have.
pub fn canonical(call: &str, request: serde_json::Value) -> serde_json::Value {
    proto_json(&message(call, request))
}
