//! The only place where an error becomes a [`Status`]: a code of the contract with
//! its `google.rpc` details.
//!
//! *Invariant:* the text of a status is written here or is a short quote of the
//! request; it never has the text of a driver or of another layer.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status, metadata::MetadataValue};
use tonic_types::{ErrorDetails, StatusExt};
use uuid::Uuid;

use crate::{
    auth::Scope,
    call_context::CallContext,
    domain::{
        Contention, Error, Missing, Outage,
        external_id::TakenId,
        translation_work::ResourceId,
        violation::{Path, Reason, Violation, Violations},
    },
    proto::v1::ErrorReason,
};

mod decode_error;
mod precondition;
mod too_large;
mod truncate;

use too_large::resource_too_large;
pub use too_large::{
    elements_too_large, message_too_large, metadata_too_large, response_too_large,
};

/// The `domain` of every `ErrorInfo`.
pub const DOMAIN: &str = "expertise.v1";
/// When a caller may retry a call that an overloaded server or database refused.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Tells the retry policy of a gRPC client how many milliseconds to wait (gRFC A6).
const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// The pushback that keeps a retry policy from retrying the call.
const NO_RETRY: &str = "-1";

/// The status of a failed call.
pub fn from_error(error: Error) -> Status {
    match error {
        Error::Invalid(violations) => invalid(&violations),
        Error::TaskNotFound(Missing { id, field }) => {
            not_found(ErrorReason::TaskNotFound, "Task", id, &field)
        }
        Error::StepNotFound(Missing { id, field }) => {
            not_found(ErrorReason::StepNotFound, "Step", id, &field)
        }
        Error::NoStepOfTask(Missing { id, field }) => {
            let field = truncate::text(&field, truncate::MAX_PATH_BYTES);
            let message = format!(
                "step {id}, which {field} names, is not a step of the task: without a guid \
                 it is created, or with `match_external_ids` found by its external id"
            );
            with_resource(ErrorReason::StepNotFound, "Step", id, field, message)
        }
        Error::RoleNotFound(Missing { id, field }) => {
            not_found(ErrorReason::RoleNotFound, "Role", id.0, &field)
        }
        Error::RevisionNotFound {
            task,
            revision,
            field,
        } => {
            let message = format!("task {task} has no revision {revision}");
            let id = format!("{task}/{revision}");
            let (reason, field) = (ErrorReason::RevisionNotFound, field.to_owned());
            with_resource(reason, "TaskRevision", id, field, message)
        }
        Error::ExternalIdTaken(taken) => external_id_taken(&taken),
        Error::Precondition(failed) => precondition::status(failed),
        Error::EtagMismatch(resource) => etag_mismatch(resource),
        Error::GuideEtagMismatch(task) => etag_mismatch_of(&format!(
            "the guide of task {task}: its guide_etag is not the one sent; read it again by ExportTask"
        )),
        Error::EtagOfDeletedGuide(task) => etag_mismatch_of(&format!(
            "guide_etag must be empty: task {task} was deleted, and a deleted guide has none"
        )),
        // Usually nobody is left to receive it.
        Error::CallOver => deadline_exceeded(Scope::Read, DeadlineSource::Caller),
        Error::WriteConflict(contention) => with_reason(
            Code::Aborted,
            ErrorReason::WriteConflict,
            match contention {
                Contention::Changed => {
                    "concurrent writes changed the resource; nothing was written, retry"
                }
                Contention::Locked => {
                    "another write or session of the database held a lock for too long; nothing \
                     was written, retry"
                }
            },
        ),
        Error::TooLarge { resource, limit } => resource_too_large(resource, limit),
        Error::Overloaded => overloaded(),
        Error::Unavailable(outage) => unavailable(outage),
        Error::Internal(class) => {
            // The id of the call in the log, so that all its lines are found.
            let id = CallContext::current_id().unwrap_or_else(Uuid::now_v7);
            let request_id = id.to_string();
            tracing::error!(request_id, class, "internal error");
            internal(&request_id)
        }
    }
}

/// The call has no credentials.
pub fn credentials_missing(message: &str) -> Status {
    with_reason(
        Code::Unauthenticated,
        ErrorReason::CredentialsMissing,
        message,
    )
}

/// The call's credentials are malformed, expired or not accepted.
pub fn credentials_invalid(message: &str) -> Status {
    with_reason(
        Code::Unauthenticated,
        ErrorReason::CredentialsInvalid,
        message,
    )
}

/// The call's credentials lack the scope that it needs. Names that are no scopes are not
/// repeated, as credentials stay out of responses.
pub fn scope_missing(scope: Scope, granted: &[Scope]) -> Status {
    let known = Scope::ALL.map(Scope::name).join(", ");
    let message = match granted {
        [] => format!(
            "the credentials lack the scope `{scope}`: they have none of {known}; names are \
             separated by spaces, and unknown ones are ignored"
        ),
        _ => format!("the credentials lack the scope `{scope}`"),
    };
    build(
        Code::PermissionDenied,
        message,
        info(ErrorReason::ScopeMissing, [("scope", scope.to_string())]),
    )
}

/// The server works on as many calls as it can.
pub fn overloaded() -> Status {
    retry_later(
        Code::ResourceExhausted,
        "the server is overloaded",
        info(ErrorReason::Overloaded, []),
    )
}

/// Who limits the time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineSource {
    /// The caller, by `grpc-timeout`.
    Caller,
    /// The server, by its setting.
    Server,
}

/// The deadline of a call that needs this scope passed.
pub fn deadline_exceeded(scope: Scope, source: DeadlineSource) -> Status {
    let limit = match source {
        DeadlineSource::Caller => "the deadline has passed",
        DeadlineSource::Server => {
            "the time limit of the server, EXPERTISE_REQUEST_TIMEOUT, has passed"
        }
    };
    let outcome = match scope {
        Scope::Read => "",
        Scope::Write | Scope::Translate | Scope::Admin | Scope::Index => {
            "; a write may have been done all the same"
        }
    };
    with_reason(
        Code::DeadlineExceeded,
        ErrorReason::DeadlineExceeded,
        &format!("{limit}{outcome}"),
    )
}

/// The database cannot serve the call. If a write may have been done all the same, the
/// metadata say so to programs: `outcome` is `unknown`.
pub fn unavailable(outage: Outage) -> Status {
    let message = match outage {
        Outage::Unreachable => "the database does not answer",
        Outage::NoConnection => "no connection to the database was free in time",
        Outage::Locked => {
            "the database stayed locked by another process or session for too long, so nothing was \
             done: try again later"
        }
        Outage::ReadOnly => "the database accepts no writes at present",
        Outage::Full => "the database has no space for the write",
        Outage::Disk => "the database cannot read or write its disk",
        Outage::OutcomeUnknown => {
            "the connection to the database was lost during the commit, so the write may have \
             been done: repeat a create or import with the same `request_id`; after another \
             write, read and compare"
        }
        Outage::StatementTimeout => "the database ended a statement that took too long",
    };
    let outcome = (outage == Outage::OutcomeUnknown).then(|| ("outcome", "unknown".to_owned()));
    let details = info(ErrorReason::StoreUnavailable, outcome);
    retry_later(Code::Unavailable, message, details)
}

/// An error of the server itself. The lines of the log about the call have the same id.
pub fn internal(id: &str) -> Status {
    build(
        Code::Internal,
        format!("internal error {id}"),
        info(ErrorReason::Internal, [("id", id.to_owned())]),
    )
}

/// The database has not been opened yet.
pub fn store_not_open() -> Status {
    let details = info(ErrorReason::StoreUnavailable, None);
    retry_later(Code::Unavailable, "the server is starting", details)
}

/// The request is compressed. The response names the only encoding that is accepted.
pub fn compressed() -> Status {
    let mut status = build(
        Code::Unimplemented,
        "the request is compressed: send it uncompressed".to_owned(),
        info(ErrorReason::Unimplemented, []),
    );
    let accepted = MetadataValue::from_static("identity");
    status
        .metadata_mut()
        .insert("grpc-accept-encoding", accepted);
    status
}

/// The server does not have the rpc `path`, such as `/package.Service/Method`.
pub fn unimplemented(path: &str) -> Status {
    let path = truncate::text(path, truncate::MAX_PATH_BYTES);
    build(
        Code::Unimplemented,
        format!("{path} is not implemented"),
        info(ErrorReason::Unimplemented, []),
    )
}

/// A request whose messages are encoded in another way than by Protocol Buffers.
pub fn unsupported_encoding() -> Status {
    build(
        Code::Unimplemented,
        "messages must be encoded by Protocol Buffers: send the content type application/grpc or \
         application/grpc+proto"
            .to_owned(),
        info(ErrorReason::Unimplemented, []),
    )
}

/// A request that cannot be decoded. `error` is that of prost, which names messages
/// and fields but never repeats what was sent.
pub fn undecodable(error: &str) -> Status {
    invalid(&decode_error::violation(error).into())
}

/// Metadata of a call with a wrong value; `name` is that of the entry.
pub fn invalid_metadata(name: &'static str, description: &str) -> Status {
    let violation = Violation::new(&Path::root(name), Reason::FieldInvalid, description);
    invalid(&violation.into())
}

/// A page token that was altered or is of another listing.
pub fn page_token_violation() -> Violation {
    Violation::new(
        &Path::root("page_token"),
        Reason::PageTokenInvalid,
        "is not a token of this listing; start again from the first page",
    )
}

/// A request with violations. Shows as many as fit the trailers, and says how many
/// there are.
fn invalid(violations: &Violations) -> Status {
    let first = violations.kept().first();
    let reason = first.map_or(Reason::FieldInvalid, |violation| violation.reason);
    let shown = truncate::violations(violations.kept());
    let metadata = violation_counts(shown.len(), violations.total());
    let message = first.map_or_else(
        || "the request is invalid".to_owned(),
        |first| truncate::message(first, violations.total(), shown.len()),
    );
    let mut details = ErrorDetails::with_error_info(reason.name(), DOMAIN, metadata);
    details.set_bad_request(shown);
    build(Code::InvalidArgument, message, details)
}

/// The metadata of an error that does not list all of its violations.
fn violation_counts(shown: usize, total: usize) -> HashMap<String, String> {
    if shown >= total {
        return HashMap::new();
    }
    HashMap::from([
        ("violations_total".to_owned(), total.to_string()),
        ("violations_shown".to_owned(), shown.to_string()),
    ])
}

/// A resource of another account and one that does not exist have the same status. The
/// message names the field, unless it has no dot: then it is the request's own id.
fn not_found(reason: ErrorReason, kind: &str, id: impl ToString, field: &str) -> Status {
    let id = id.to_string();
    let field = truncate::text(field, truncate::MAX_PATH_BYTES);
    let mut message = format!("{} {id} not found", kind.to_lowercase());
    if field.contains('.') {
        message.push_str(&format!(", which {field} names"));
    }
    if field == "document.task.guid" {
        message.push_str(": leave document.task.guid out to create a task");
    }
    with_resource(reason, kind, id, field, message)
}

fn with_resource(
    reason: ErrorReason,
    kind: &str,
    id: impl ToString,
    field: String,
    message: String,
) -> Status {
    let mut details = info(reason, [("field", field)]);
    details.set_resource_info(format!("{DOMAIN}.{kind}"), id.to_string(), "", &message);
    build(Code::NotFound, message, details)
}

/// Another task or step has an external id.
fn external_id_taken(TakenId { owner, field }: &TakenId) -> Status {
    let (kind, id) = match owner {
        ResourceId::Task(id) => ("Task", id.to_string()),
        ResourceId::Step(id) => ("Step", id.to_string()),
    };
    let description = format!(
        "{} {id} has this external id, which is unique: change or clear it there, or use another one",
        kind.to_lowercase()
    );
    let violation = Violation {
        path: field.to_string(),
        reason: Reason::ExternalIdTaken,
        description,
    };
    let message = truncate::message(&violation, 1, 1);
    let mut details = info(ErrorReason::ExternalIdTaken, []);
    details.set_resource_info(format!("{DOMAIN}.{kind}"), id, "", &message);
    details.set_bad_request(truncate::violations(&[violation]));
    build(Code::AlreadyExists, message, details)
}

fn etag_mismatch(resource: ResourceId) -> Status {
    let resource = match resource {
        ResourceId::Task(id) => format!("task {id}"),
        ResourceId::Step(id) => format!("step {id}"),
    };
    etag_mismatch_of(&format!(
        "{resource}: its etag is not the one sent; read it again"
    ))
}

fn etag_mismatch_of(message: &str) -> Status {
    without_retry(with_reason(
        Code::Aborted,
        ErrorReason::EtagMismatch,
        message,
    ))
}

fn retry_later(code: Code, message: &str, mut details: ErrorDetails) -> Status {
    details.set_retry_info(Some(RETRY_DELAY));
    build(code, message.to_owned(), details)
}

fn with_reason(code: Code, reason: ErrorReason, message: &str) -> Status {
    build(code, message.to_owned(), info(reason, []))
}

/// A status whose RetryInfo is also sent to the client's retry policy.
fn build(code: Code, message: String, details: ErrorDetails) -> Status {
    let retry = details.retry_info().and_then(|retry| retry.retry_delay);
    let mut status = Status::with_error_details(code, message, details);
    if let Some(delay) = retry {
        let milliseconds = MetadataValue::from(delay.as_millis() as u64);
        status.metadata_mut().insert(RETRY_PUSHBACK, milliseconds);
    }
    status
}

/// Keeps a retry policy from repeating the call: its code may mean that a retry helps, but
/// this error comes again.
fn without_retry(mut status: Status) -> Status {
    let no_retry = MetadataValue::from_static(NO_RETRY);
    status.metadata_mut().insert(RETRY_PUSHBACK, no_retry);
    status
}

fn info(
    reason: ErrorReason,
    metadata: impl IntoIterator<Item = (&'static str, String)>,
) -> ErrorDetails {
    let metadata = metadata.into_iter();
    let metadata: HashMap<_, _> = metadata
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    ErrorDetails::with_error_info(reason_name(reason), DOMAIN, metadata)
}

/// The name of a reason if the contract has it, else an empty text.
pub fn known_reason_name(text: &str) -> &'static str {
    ErrorReason::from_str_name(&format!("ERROR_REASON_{text}")).map_or("", reason_name)
}

/// The name of a reason in an `ErrorInfo`.
pub fn reason_name(reason: ErrorReason) -> &'static str {
    let full = reason.as_str_name();
    full.strip_prefix("ERROR_REASON_").unwrap_or(full)
}

#[cfg(test)]
mod tests;
