//! The scope that each rpc requires.

use prost::Message;
use prost_types::FileDescriptorSet;

use crate::{auth::Scope, proto::FILE_DESCRIPTOR_SET};

/// Every rpc of the contract as `package.Service/Method`.
pub fn calls() -> Vec<String> {
    // The descriptors are valid: a test decodes them.
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
    let files = set.file.into_iter();
    let files = files.filter(|file| file.package() == "expertise.v1");
    let services = files.flat_map(|file| file.service);
    let calls = services.flat_map(|service| {
        let name = format!("expertise.v1.{}", service.name());
        let methods = service.method.into_iter();
        methods.map(move |method| format!("{name}/{}", method.name()))
    });
    calls.collect()
}

/// The scope that the rpc `path` requires, such as `/package.Service/Method`; `None`
/// for rpcs of other contracts, such as health and reflection.
pub fn required_scope(path: &str) -> Option<Scope> {
    let (service, method) = path.strip_prefix("/expertise.v1.")?.split_once('/')?;
    match service {
        "TaskService" | "StepService" => reads(method).or_else(|| writes(method, Scope::Write)),
        "RoleService" => reads(method).or_else(|| writes(method, Scope::Admin)),
        "TranslationService" => Some(Scope::Translate),
        "AnalysisService" => reads(method),
        _ => None,
    }
}

fn reads(method: &str) -> Option<Scope> {
    ["Get", "List", "Export", "Preview", "Validate"]
        .iter()
        .any(|verb| method.starts_with(verb))
        .then_some(Scope::Read)
}

fn writes(method: &str, scope: Scope) -> Option<Scope> {
    ["Create", "Update", "Delete", "Import"]
        .iter()
        .any(|verb| method.starts_with(verb))
        .then_some(scope)
}
