//! The only place where something that went wrong becomes a [`Status`]: a code
//! of the contract with its `google.rpc` details.
//!
//! *Invariant:* what a status says was written here or is a clip of the
//! request; no text of a driver or of another layer gets through.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, PreconditionViolation, StatusExt};
use uuid::Uuid;

use crate::{
    auth::Scope,
    domain::{
        Error, Outage, Precondition,
        violation::{Path, Reason, Violation, Violations},
    },
    proto::v1::ErrorReason,
};

mod cut;
mod wire;

/// The `domain` of every `ErrorInfo`.
pub const DOMAIN: &str = "expertise.v1";
/// When a caller may try again that met a database or server at its limit.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a caller is told of a failed call.
pub fn from_error(error: Error) -> Status {
    match error {
        Error::Invalid(violations) => invalid(&violations),
        Error::TaskNotFound(id) => not_found(ErrorReason::TaskNotFound, "Task", id),
        Error::StepNotFound(id) => not_found(ErrorReason::StepNotFound, "Step", id),
        Error::RoleNotFound(id) => not_found(ErrorReason::RoleNotFound, "Role", id.0),
        Error::Precondition(precondition) => failed_precondition(precondition),
        Error::EtagMismatch => plain(
            Code::Aborted,
            ErrorReason::EtagMismatch,
            "the resource has changed: its etag is not the one sent",
        ),
        Error::WriteConflict => plain(
            Code::Aborted,
            ErrorReason::WriteConflict,
            "lost against concurrent writes; nothing was changed, retry",
        ),
        Error::TooLarge { limit } => message_too_large(limit),
        Error::Unavailable(outage) => unavailable(outage),
        Error::Internal(class) => {
            let id = Uuid::now_v7().to_string();
            tracing::error!(id, class, "internal fault");
            internal(&id)
        }
    }
}

/// The call carries no credentials.
pub fn credentials_missing(message: &str) -> Status {
    plain(
        Code::Unauthenticated,
        ErrorReason::CredentialsMissing,
        message,
    )
}

/// The call's credentials are malformed, expired or not accepted.
pub fn credentials_invalid(message: &str) -> Status {
    plain(
        Code::Unauthenticated,
        ErrorReason::CredentialsInvalid,
        message,
    )
}

/// The call's credentials lack the scope that it needs.
pub fn scope_missing(scope: Scope) -> Status {
    build(
        Code::PermissionDenied,
        format!("the credentials lack the scope `{scope}`"),
        info(ErrorReason::ScopeMissing, [("scope", scope.to_string())]),
    )
}

/// A message passes what the server accepts or returns; `limit` is in bytes.
pub fn message_too_large(limit: usize) -> Status {
    too_large("the message would pass", limit)
}

/// A call's metadata pass what the server accepts; `limit` is in bytes.
pub fn metadata_too_large(limit: usize) -> Status {
    too_large("the metadata, without credentials, pass", limit)
}

fn too_large(what: &str, limit: usize) -> Status {
    build(
        Code::ResourceExhausted,
        format!("{what} {limit} bytes"),
        info(
            ErrorReason::MessageTooLarge,
            [("limit_bytes", limit.to_string())],
        ),
    )
}

/// The server has too much work at hand.
pub fn overloaded() -> Status {
    retry_later(
        Code::ResourceExhausted,
        "the server has too much work at hand",
        info(ErrorReason::Overloaded, []),
    )
}

/// The call's deadline or the server's own time limit passed.
pub fn deadline_exceeded() -> Status {
    plain(
        Code::DeadlineExceeded,
        ErrorReason::DeadlineExceeded,
        "the time for the call has passed; a write may still have been done",
    )
}

/// The database cannot serve the call. Whether a write may have been done all the
/// same is for programs in the metadata: `outcome` is `unknown`.
pub fn unavailable(outage: Outage) -> Status {
    let message = match outage {
        Outage::Away => "the database does not answer",
        Outage::Busy => "the database gave no connection in time",
        Outage::ReadOnly => "the database takes no writes at present",
        Outage::Full => "the database has no room for the write",
        Outage::Disk => "the database cannot read or write its disk",
        Outage::Undecided => {
            "the database went away while the write was stored, which may have been done; \
             repeat it with the same `request_id`"
        }
    };
    let reason = ErrorReason::StoreUnavailable;
    let details = match outage {
        Outage::Undecided => info(reason, [("outcome", "unknown".to_owned())]),
        Outage::Away | Outage::Busy | Outage::ReadOnly | Outage::Full | Outage::Disk => {
            info(reason, [])
        }
    };
    retry_later(Code::Unavailable, message, details)
}

/// A fault of the server; `id` names the line of the log that says more.
pub fn internal(id: &str) -> Status {
    build(
        Code::Internal,
        format!("internal fault {id}"),
        info(ErrorReason::Internal, [("id", id.to_owned())]),
    )
}

/// The server does not have the call, named as `/package.Service/Method`.
pub fn unimplemented(path: &str) -> Status {
    let path = cut::text(path, cut::PATH_BYTES);
    build(
        Code::Unimplemented,
        format!("{path} is not implemented"),
        info(ErrorReason::Unimplemented, []),
    )
}

/// A request that cannot be decoded. Takes what prost displays of its error,
/// which names messages and fields but never repeats what was sent.
pub fn undecodable(error: &str) -> Status {
    invalid(&wire::violation(error).into())
}

/// A page token that was altered or is not for this listing.
pub fn page_token_invalid() -> Status {
    invalid(&page_token_violation().into())
}

/// What [`page_token_invalid`] reports, to be gathered with other violations.
pub fn page_token_violation() -> Violation {
    Violation::new(
        &Path::root("page_token"),
        Reason::PageTokenInvalid,
        "is not a token of this listing; start again from the first page",
    )
}

/// A request with violations. Shows as many as fit the trailers and says so
/// when there are more.
fn invalid(violations: &Violations) -> Status {
    let first = violations.kept().first();
    let reason = first.map_or(Reason::FieldInvalid, |violation| violation.reason);
    let shown = cut::violations(violations.kept());
    let mut metadata = HashMap::new();
    if shown.len() < violations.total() {
        metadata.insert(
            "violations_total".to_owned(),
            violations.total().to_string(),
        );
        metadata.insert("violations_shown".to_owned(), shown.len().to_string());
    }
    let message = first.map_or_else(
        || "the request is invalid".to_owned(),
        |first| cut::message(first, violations.total(), shown.len()),
    );
    let mut details = ErrorDetails::with_error_info(reason.name(), DOMAIN, metadata);
    details.set_bad_request(shown);
    build(Code::InvalidArgument, message, details)
}

/// The same words whether the resource is another account's or nobody's.
fn not_found(reason: ErrorReason, kind: &str, id: impl ToString) -> Status {
    let id = id.to_string();
    let message = format!("{} {id} not found", kind.to_lowercase());
    let mut details = info(reason, []);
    details.set_resource_info(format!("{DOMAIN}.{kind}"), id, "", &message);
    build(Code::NotFound, message, details)
}

fn failed_precondition(precondition: Precondition) -> Status {
    let (reason, subjects, message) = match precondition {
        Precondition::LinkedImportOnly { path } => (
            ErrorReason::LinkedImportOnly,
            vec![path],
            "links are made by ImportTask only".to_owned(),
        ),
        Precondition::TaskHasSteps { task } => (
            ErrorReason::TaskHasSteps,
            vec![task.to_string()],
            format!("task {task} still has steps; set `force` to delete them too"),
        ),
        Precondition::TaskReferenced { task, by } => (
            ErrorReason::TaskReferenced,
            by.iter().map(ToString::to_string).collect(),
            format!("subtask steps of other tasks refer to task {task}"),
        ),
        Precondition::TaskManaged { task } => (
            ErrorReason::TaskManaged,
            vec![task.to_string()],
            format!("an observation manages task {task}; unlink it there first"),
        ),
        Precondition::StepManaged { step } => (
            ErrorReason::StepManaged,
            vec![step.to_string()],
            format!("step {step} wires a managed task; unlink it at the observation first"),
        ),
        Precondition::AbsentSteps { steps } => (
            ErrorReason::AbsentSteps,
            steps
                .iter()
                .take(Precondition::NAMED)
                .map(ToString::to_string)
                .collect(),
            format!(
                "the document leaves out {} steps of the task; `absent_steps` says whether to keep or delete them",
                steps.len()
            ),
        ),
        Precondition::RequestIdReused { id } => (
            ErrorReason::RequestIdReused,
            vec!["request_id".to_owned()],
            format!("request_id {id} was used before with another payload"),
        ),
    };
    let violations: Vec<_> = subjects
        .into_iter()
        .map(|subject| PreconditionViolation::new(name(reason), subject, &message))
        .collect();
    let mut details = info(reason, []);
    details.set_precondition_failure(violations);
    build(Code::FailedPrecondition, message, details)
}

fn retry_later(code: Code, message: &str, mut details: ErrorDetails) -> Status {
    details.set_retry_info(Some(RETRY_AFTER));
    build(code, message.to_owned(), details)
}

fn plain(code: Code, reason: ErrorReason, message: &str) -> Status {
    build(code, message.to_owned(), info(reason, []))
}

fn build(code: Code, message: String, details: ErrorDetails) -> Status {
    Status::with_error_details(code, message, details)
}

fn info<const N: usize>(reason: ErrorReason, metadata: [(&str, String); N]) -> ErrorDetails {
    let metadata: HashMap<_, _> = metadata
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    ErrorDetails::with_error_info(name(reason), DOMAIN, metadata)
}

/// A reason of the contract, by the name that errors carry; empty for what is none.
pub fn reason(named: &str) -> &'static str {
    ErrorReason::from_str_name(&format!("ERROR_REASON_{named}")).map_or("", name)
}

/// The name of a reason as errors carry it.
fn name(reason: ErrorReason) -> &'static str {
    let full = reason.as_str_name();
    full.strip_prefix("ERROR_REASON_").unwrap_or(full)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
