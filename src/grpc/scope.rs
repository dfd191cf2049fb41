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
        _ => None,
    }
}

fn reads(method: &str) -> Option<Scope> {
    ["Get", "List", "Export"]
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

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::grpc::SERVICES;

    #[test]
    fn every_rpc_requires_a_scope() {
        let calls = calls();
        assert!(!calls.is_empty());
        for call in calls {
            let (service, _) = call.split_once('/').expect("a service");
            assert!(SERVICES.contains(&service), "{service}");
            let scope = required_scope(&format!("/{call}"));
            assert!(scope.is_some(), "{call}");
        }
    }

    #[test]
    fn scopes_are_those_of_the_contract() {
        for (path, scope) in [
            ("/expertise.v1.TaskService/ExportTask", Some(Scope::Read)),
            ("/expertise.v1.TaskService/ImportTask", Some(Scope::Write)),
            ("/expertise.v1.RoleService/ListRoles", Some(Scope::Read)),
            ("/expertise.v1.RoleService/DeleteRole", Some(Scope::Admin)),
            (
                "/expertise.v1.TranslationService/ListTranslationWork",
                Some(Scope::Translate),
            ),
            ("/grpc.health.v1.Health/Check", None),
        ] {
            assert_eq!(required_scope(path), scope, "{path}");
        }
    }
}
