//! The scope that each rpc requires.

use prost::Message;
use prost_types::FileDescriptorSet;

use crate::{auth::Scope, proto::FILE_DESCRIPTOR_SET};

/// Every rpc of the contract as `package.Service/Method`.
pub fn rpcs() -> Vec<String> {
    // The descriptors are valid: a test decodes them.
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
    let files = set.file.into_iter();
    let files = files.filter(|file| file.package() == "expertise.v1");
    let services = files.flat_map(|file| file.service);
    let rpcs = services.flat_map(|service| {
        let name = format!("expertise.v1.{}", service.name());
        let methods = service.method.into_iter();
        methods.map(move |method| format!("{name}/{}", method.name()))
    });
    rpcs.collect()
}

/// The scope that the rpc `path` requires, such as `/package.Service/Method`; `None`
/// for rpcs of other contracts, such as health and reflection, and for names without a known
/// service or first word, which decide.
pub fn required_scope(path: &str) -> Option<Scope> {
    let (service, method) = path.strip_prefix("/expertise.v1.")?.split_once('/')?;
    match service {
        "TaskService" | "StepService" | "RevisionService" => {
            read_scope(method).or_else(|| write_scope(method, Scope::Write))
        }
        "RoleService" => read_scope(method).or_else(|| write_scope(method, Scope::Admin)),
        "TranslationService" => Some(Scope::Translate),
        "AnalysisService" | "ChangeService" => read_scope(method),
        "IndexService" => Some(Scope::Index),
        _ => None,
    }
}

/// The scope of an rpc whose name begins with a word for reading; `None` for others.
fn read_scope(method: &str) -> Option<Scope> {
    ["Get", "List", "Export", "Compare", "Preview", "Validate"]
        .iter()
        .any(|verb| method.starts_with(verb))
        .then_some(Scope::Read)
}

/// `scope` for an rpc whose name begins with a word for writing; `None` for others.
fn write_scope(method: &str, scope: Scope) -> Option<Scope> {
    ["Create", "Update", "Delete", "Import", "Restore", "Set"]
        .iter()
        .any(|verb| method.starts_with(verb))
        .then_some(scope)
}
