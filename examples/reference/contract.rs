//! Reads the API from its descriptors.

use anyhow::{Context, ensure};
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, ServiceDescriptor, Value,
};

const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/documented.bin"));
const PACKAGE: &str = "expertise.v1";
/// The services in their order on the page.
const SERVICES: [&str; 8] = [
    "TaskService",
    "StepService",
    "RoleService",
    "TranslationService",
    "AnalysisService",
    "RevisionService",
    "ChangeService",
    "IndexService",
];

/// The enum whose values are the reasons of errors.
pub const ERROR_REASON: &str = "ErrorReason";

/// The contents of the page.
pub struct Contract {
    pub files: Vec<FileDescriptor>,
    pub services: Vec<ServiceDescriptor>,
    /// The messages except the requests and responses of rpcs.
    pub messages: Vec<MessageDescriptor>,
    /// The enums except the reasons.
    pub enums: Vec<EnumDescriptor>,
    pub reasons: EnumDescriptor,
}

impl Contract {
    pub fn read() -> anyhow::Result<Self> {
        let pool = DescriptorPool::decode(DESCRIPTORS)?;
        let in_contract = |file: &FileDescriptor| is_in_contract(file.package_name());
        let files: Vec<_> = pool.files().filter(in_contract).collect();

        let mut services: Vec<_> = files.iter().flat_map(FileDescriptor::services).collect();
        let position =
            |service: &ServiceDescriptor| SERVICES.iter().position(|s| *s == service.name());
        ensure!(
            services.iter().all(|service| position(service).is_some()),
            "SERVICES does not list every service"
        );
        services.sort_by_key(position);

        let rpcs: Vec<_> = services
            .iter()
            .flat_map(ServiceDescriptor::methods)
            .collect();
        let is_of_rpc = |message: &MessageDescriptor| {
            rpcs.iter()
                .any(|rpc| rpc.input() == *message || rpc.output() == *message)
        };
        let messages = files.iter().flat_map(FileDescriptor::messages);
        let messages = messages.filter(|message| !is_of_rpc(message)).collect();

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

/// Whether this is the package of the API.
pub fn is_in_contract(package: &str) -> bool {
    package == PACKAGE
}

/// The verb, path and body of an rpc's HTTP annotation.
pub fn http(rpc: &MethodDescriptor) -> Option<(String, String, String)> {
    let options = rpc.options();
    let Value::Message(rule) = annotation(&options, "google.api.http")?.1 else {
        return None;
    };
    let verb = rule
        .fields()
        .find(|(field, _)| field.containing_oneof().is_some());
    let (verb, path) = verb?;
    let body = rule.get_field_by_name("body")?;
    let [path, body] = [path.as_str()?, body.as_str()?].map(str::to_owned);
    Some((verb.name().to_owned(), path, body))
}

/// The `google.api.field_behavior` of a field in words, without the frequent `OPTIONAL`.
pub fn behaviors(field: &FieldDescriptor) -> Vec<String> {
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
