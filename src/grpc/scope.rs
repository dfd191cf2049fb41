//! The scope that each rpc requires.

use crate::{domain::caller::Scope, messages::message_json::services};

/// Every rpc of the API as `package.Service/Method`.
pub fn rpcs() -> Vec<String> {
    let methods = services().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods
        .map(|it| format!("{}/{}", it.parent_service().full_name(), it.name()))
        .collect()
}

/// The scope that the rpc `path` requires, such as `/package.Service/Method`. The service and the
/// first word of the method decide. `None` if either is unknown, for example for health and
/// reflection.
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
