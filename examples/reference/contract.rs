//! The contract as its descriptors have it.

use anyhow::{Context, ensure};
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, ServiceDescriptor, Value,
};

const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/documented.bin"));
const PACKAGE: &str = "expertise.v1";
/// In the order in which a reader meets them.
const SERVICES: [&str; 4] = [
    "TaskService",
    "StepService",
    "RoleService",
    "TranslationService",
];

/// The enum whose values are the reasons of errors.
pub const ERROR_REASON: &str = "ErrorReason";

/// What the page is about.
pub struct Contract {
    pub files: Vec<FileDescriptor>,
    pub services: Vec<ServiceDescriptor>,
    /// Those that are no request and no response of their own.
    pub messages: Vec<MessageDescriptor>,
    /// All but the reasons.
    pub enums: Vec<EnumDescriptor>,
    pub reasons: EnumDescriptor,
}

impl Contract {
    pub fn read() -> anyhow::Result<Self> {
        let pool = DescriptorPool::decode(DESCRIPTORS)?;
        let ours = |file: &FileDescriptor| is_ours(file.package_name());
        let files: Vec<_> = pool.files().filter(ours).collect();

        let mut services: Vec<_> = files.iter().flat_map(FileDescriptor::services).collect();
        let place =
            |service: &ServiceDescriptor| SERVICES.iter().position(|s| *s == service.name());
        ensure!(
            services.iter().all(|service| place(service).is_some()),
            "a service that has no place on the page"
        );
        services.sort_by_key(place);

        let calls: Vec<_> = services
            .iter()
            .flat_map(ServiceDescriptor::methods)
            .collect();
        let of_a_call = |message: &MessageDescriptor| {
            calls
                .iter()
                .any(|call| call.input() == *message || call.output() == *message)
        };
        let messages = files.iter().flat_map(FileDescriptor::messages);
        let messages = messages.filter(|message| !of_a_call(message)).collect();

        let enums = files.iter().flat_map(FileDescriptor::enums);
        let (reasons, enums): (Vec<_>, Vec<_>) = enums.partition(|e| e.name() == ERROR_REASON);
        let reasons = reasons.into_iter().next().context("no reasons")?;
        Ok(Self {
            files,
            services,
            messages,
            enums,
            reasons,
        })
    }
}

/// Whether what is in this package stands on the page.
pub fn is_ours(package: &str) -> bool {
    package == PACKAGE
}

/// The verb and path of a call's HTTP annotation.
pub fn http(call: &MethodDescriptor) -> Option<(String, String)> {
    let options = call.options();
    let Value::Message(rule) = annotation(&options, "google.api.http")?.1 else {
        return None;
    };
    let verb = rule
        .fields()
        .find(|(field, _)| field.containing_oneof().is_some());
    let (verb, path) = verb?;
    Some((verb.name().to_owned(), path.as_str()?.to_owned()))
}

/// What Google's annotation says of a field, in words; without `OPTIONAL`, which
/// most are.
pub fn behaviours(field: &FieldDescriptor) -> Vec<String> {
    let options = field.options();
    let Some((Kind::Enum(behaviour), Value::List(set))) =
        annotation(&options, "google.api.field_behavior")
    else {
        return Vec::new();
    };
    let names = set.iter().filter_map(|value| value.as_enum_number());
    let names = names.filter_map(|number| behaviour.get_value(number));
    let names = names.map(|value| value.name().to_lowercase().replace('_', " "));
    names.filter(|name| name != "optional").collect()
}

fn annotation<'a>(options: &'a DynamicMessage, name: &str) -> Option<(Kind, &'a Value)> {
    let mut set = options.extensions();
    let (extension, value) = set.find(|(extension, _)| extension.full_name() == name)?;
    Some((extension.kind(), value))
}
