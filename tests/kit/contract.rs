//! The contract: its calls, and every field of their requests. [`Contract`] is what the running
//! server describes by reflection; [`methods`] and [`descriptor`] are of the library.

use std::{collections::BTreeMap, sync::LazyLock};

use expertise::proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    MethodDescriptor, ReflectMessage, Value,
};
use prost_types::FileDescriptorProto;
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

/// The calls of the contract.
pub struct Contract {
    calls: BTreeMap<String, MethodDescriptor>,
}

impl Contract {
    /// Reads the contract from the server.
    pub async fn of(client: &Client) -> Self {
        let list = MessageRequest::ListServices(String::new());
        let MessageResponse::ListServicesResponse(listed) = reflect(client, list).await else {
            panic!("no list of services");
        };
        let names = listed.service.into_iter().map(|service| service.name);
        let mut asked: Vec<_> = names.map(MessageRequest::FileContainingSymbol).collect();
        let mut files = BTreeMap::<String, FileDescriptorProto>::new();
        while let Some(request) = asked.pop() {
            let MessageResponse::FileDescriptorResponse(found) = reflect(client, request).await
            else {
                panic!("no file of the contract");
            };
            for file in found.file_descriptor_proto {
                let file = FileDescriptorProto::decode(&*file).expect("a descriptor");
                let missing = file
                    .dependency
                    .iter()
                    .filter(|name| !files.contains_key(*name));
                asked.extend(missing.cloned().map(MessageRequest::FileByFilename));
                files.insert(file.name().to_owned(), file);
            }
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(files.into_values())
            .expect("files that belong together");
        let services = pool.services().filter(|s| s.package_name() == PACKAGE);
        let calls = services.flat_map(|service| {
            let name = service.name().to_owned();
            let named = move |call: MethodDescriptor| (format!("{name}/{}", call.name()), call);
            service.methods().map(named).collect::<Vec<_>>()
        });
        Self {
            calls: calls.collect(),
        }
    }

    /// The names of the calls, such as `TaskService/GetTask`.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.keys().map(String::as_str)
    }

    /// Every path of a request to a value: scalar fields, keys of maps, and messages of
    /// `google.protobuf`.
    pub fn field_paths(&self, call: &str) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        walk(&self.calls[call].input(), &mut Vec::new(), &mut paths);
        paths
    }

    /// Decodes a request.
    pub fn request(&self, call: &str, bytes: &[u8]) -> DynamicMessage {
        DynamicMessage::decode(self.calls[call].input(), bytes).expect("a request")
    }

    /// Decodes a response.
    pub fn response(&self, call: &str, bytes: &[u8]) -> DynamicMessage {
        DynamicMessage::decode(self.calls[call].output(), bytes).expect("a response")
    }
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

/// A message of this name as JSON.
pub fn shown(name: &str, message: &impl Message) -> serde_json::Value {
    let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
    json(&message.expect("the message"))
}

/// The request of a call such as `TaskService/GetTask`.
pub fn request(call: &str, request: serde_json::Value) -> Vec<u8> {
    let message = DynamicMessage::deserialize(message_of(call, "Request"), request);
    let message = message.unwrap_or_else(|error| panic!("{call}: {error}"));
    message.encode_to_vec()
}
