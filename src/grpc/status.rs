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
        Contention, Error, Missing, Outage, SizedResource,
        external_id::TakenId,
        translation_work::ResourceId,
        violation::{Path, Reason, Violation, Violations},
    },
    proto::v1::ErrorReason,
};

mod decode_error;
mod precondition;
mod truncate;

/// The `domain` of every `ErrorInfo`.
pub const DOMAIN: &str = "expertise.v1";
/// When a caller may retry a call that an overloaded server or database refused.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Tells the retry policy of a gRPC client how many milliseconds to wait (gRFC A6).
const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// The pushback that keeps a retry policy from retrying the call.
const NO_RETRY: &str = "-1";

/// What the retry policy of a client is told in addition to the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    /// Nothing: the code says it all.
    ByCode,
    /// To wait for [`RETRY_DELAY`].
    Later,
    /// Not to retry: the code may mean that a retry helps, but this error comes again.
    Never,
}

/// The code of an error with this reason, and what the client is told about a retry.
fn code(reason: ErrorReason) -> (Code, Retry) {
    let code = match reason {
        ErrorReason::Unspecified
        | ErrorReason::FieldRequired
        | ErrorReason::FieldTooLong
        | ErrorReason::FieldInvalid
        | ErrorReason::FieldOutOfRange
        | ErrorReason::TooManyElements
        | ErrorReason::NestingTooDeep
        | ErrorReason::MaskPathUnknown
        | ErrorReason::ShorthandInvalid
        | ErrorReason::ShorthandConflict
        | ErrorReason::PageTokenInvalid
        | ErrorReason::CursorInvalid => Code::InvalidArgument,
        ErrorReason::TaskNotFound
        | ErrorReason::StepNotFound
        | ErrorReason::RoleNotFound
        | ErrorReason::RevisionNotFound => Code::NotFound,
        ErrorReason::ExternalIdTaken => Code::AlreadyExists,
        ErrorReason::LinkedImportOnly
        | ErrorReason::TaskHasSteps
        | ErrorReason::TaskReferenced
        | ErrorReason::TaskManaged
        | ErrorReason::StepManaged
        | ErrorReason::AbsentSteps
        | ErrorReason::RequestIdReused
        | ErrorReason::CursorExpired
        | ErrorReason::RevisionUnrestorable
        | ErrorReason::RevisionInUse => Code::FailedPrecondition,
        ErrorReason::EtagMismatch => return (Code::Aborted, Retry::Never),
        ErrorReason::WriteConflict => Code::Aborted,
        ErrorReason::CredentialsMissing | ErrorReason::CredentialsInvalid => Code::Unauthenticated,
        ErrorReason::ScopeMissing => Code::PermissionDenied,
        ErrorReason::MessageTooLarge => return (Code::ResourceExhausted, Retry::Never),
        ErrorReason::Overloaded => return (Code::ResourceExhausted, Retry::Later),
        ErrorReason::StoreUnavailable => return (Code::Unavailable, Retry::Later),
        ErrorReason::Internal => Code::Internal,
        ErrorReason::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorReason::Unimplemented => Code::Unimplemented,
    };
    (code, Retry::ByCode)
}

/// The status of a failed call.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => invalid(&violations),
            Error::TaskNotFound(Missing { id, field }) => {
                not_found(ErrorReason::TaskNotFound, "Task", id, &field)
            }
            Error::NoTaskWithExternalId(Missing { id, field }) => {
                let field = truncate::text(&field, truncate::MAX_PATH_BYTES);
                let message = format!("no task has the external id that {field} names");
                let id = id.into_string();
                with_resource(ErrorReason::TaskNotFound, "Task", id, field, message)
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
            Error::EtagMismatch(resource) => {
                let (kind, id) = kind_and_id(resource);
                let kind = kind.to_lowercase();
                let message = format!("{kind} {id}: its etag is not the one sent; read it again");
                status(ErrorReason::EtagMismatch, message)
            }
            Error::GuideEtagMismatch(task) => status(
                ErrorReason::EtagMismatch,
                format!(
                    "the guide of task {task}: its guide_etag is not the one sent; read it again by \
                 ExportTask"
                ),
            ),
            Error::EtagOfDeletedGuide(task) => status(
                ErrorReason::EtagMismatch,
                format!(
                    "guide_etag must be empty: task {task} was deleted, and a deleted guide has none"
                ),
            ),
            // Usually nobody is left to receive it.
            Error::CallOver => deadline_exceeded(Scope::Read, DeadlineSource::Caller),
            Error::WriteConflict(contention) => status(
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
}

impl From<Violations> for Status {
    fn from(violations: Violations) -> Self {
        invalid(&violations)
    }
}

/// The call has no credentials.
pub fn credentials_missing(message: &str) -> Status {
    status(ErrorReason::CredentialsMissing, message)
}

/// The call's credentials are malformed, expired or not accepted.
pub fn credentials_invalid(message: &str) -> Status {
    status(ErrorReason::CredentialsInvalid, message)
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
    let metadata = [("scope", scope.to_string())];
    with_metadata(ErrorReason::ScopeMissing, message, metadata)
}

/// The server works on as many calls as it can.
pub fn overloaded() -> Status {
    status(ErrorReason::Overloaded, "the server is overloaded")
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
    status(ErrorReason::DeadlineExceeded, format!("{limit}{outcome}"))
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
    with_metadata(ErrorReason::StoreUnavailable, message, outcome)
}

/// An error of the server itself. The lines of the log about the call have the same id.
pub fn internal(id: &str) -> Status {
    let message = format!("internal error {id}");
    with_metadata(ErrorReason::Internal, message, [("id", id.to_owned())])
}

/// The database has not been opened yet.
pub fn store_not_open() -> Status {
    status(ErrorReason::StoreUnavailable, "the server is starting")
}

/// The request is compressed. The response names the only encoding that is accepted.
pub fn compressed() -> Status {
    let message = "the request is compressed: send it uncompressed";
    let mut status = status(ErrorReason::Unimplemented, message);
    let accepted = MetadataValue::from_static("identity");
    let metadata = status.metadata_mut();
    metadata.insert("grpc-accept-encoding", accepted);
    status
}

/// The server does not have the rpc `path`, such as `/package.Service/Method`.
pub fn unimplemented(path: &str) -> Status {
    let path = truncate::text(path, truncate::MAX_PATH_BYTES);
    status(
        ErrorReason::Unimplemented,
        format!("{path} is not implemented"),
    )
}

/// A request whose messages are encoded in another way than by Protocol Buffers.
pub fn unsupported_encoding() -> Status {
    status(
        ErrorReason::Unimplemented,
        "messages must be encoded by Protocol Buffers: send the content type application/grpc or \
         application/grpc+proto",
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

/// A request is larger than the server accepts; `limit` is in bytes.
pub fn message_too_large(limit: usize) -> Status {
    too_large("the request is larger than", limit, "")
}

/// The elements of a request take more memory than the server allows; `limit` is in bytes.
pub fn elements_too_large(limit: usize) -> Status {
    let what = "the request has so many elements that they take more than";
    too_large(what, limit, " of memory")
}

/// A response is larger than the server returns; `limit` is in bytes.
pub fn response_too_large(limit: usize) -> Status {
    too_large("the response would be larger than", limit, "")
}

/// A call's metadata are larger than the server accepts; `limit` is in bytes.
pub fn metadata_too_large(limit: usize) -> Status {
    let what = "the metadata, without credentials, are larger than";
    too_large(what, limit, "")
}

/// A resource exceeds its limit of so many bytes.
fn resource_too_large(resource: SizedResource, limit: usize) -> Status {
    let returned = format!(
        "the {resource} would be too large to return: its texts and elements take more than"
    );
    let (what, remedy) = match resource {
        SizedResource::Task | SizedResource::Step => (returned.as_str(), ""),
        SizedResource::Guide => (
            returned.as_str(),
            ": list its steps page by page with ListSteps",
        ),
        SizedResource::AnalyzedGuide => (
            "what is read of the guide, all but bodies, is larger than",
            ": split it into several guides, or raise EXPERTISE_MAX_MESSAGE_BYTES of the server \
             (EXPERTISE_MAX_INFLIGHT_BYTES must be five times as large)",
        ),
        SizedResource::Call => (
            "the guides that the call reads and writes take more memory than",
            ": raise EXPERTISE_MAX_INFLIGHT_BYTES of the server, or split the guide",
        ),
    };
    too_large(what, limit, remedy)
}

/// Something exceeds a limit in bytes. `remedy` is what the caller can do.
fn too_large(what: &str, limit: usize, remedy: &str) -> Status {
    let metadata = [("limit_bytes", limit.to_string())];
    let message = format!("{what} {limit} bytes{remedy}");
    with_metadata(ErrorReason::MessageTooLarge, message, metadata)
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
    let mut details = ErrorDetails::new();
    details.set_bad_request(shown);
    build(reason.into(), message, metadata, details)
}

/// The metadata of an error that does not list all of its violations.
fn violation_counts(shown: usize, total: usize) -> Vec<(&'static str, String)> {
    if shown >= total {
        return Vec::new();
    }
    vec![
        ("violations_total", total.to_string()),
        ("violations_shown", shown.to_string()),
    ]
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
    let mut details = ErrorDetails::new();
    details.set_resource_info(format!("{DOMAIN}.{kind}"), id.to_string(), "", &message);
    build(reason, message, [("field", field)], details)
}

/// Another task or step has an external id.
fn external_id_taken(TakenId { owner, field }: &TakenId) -> Status {
    let is_import = field.starts_with("document");
    let match_ids = if is_import {
        ". To change what has the id, set `match_external_ids`"
    } else {
        ""
    };
    let (kind, id) = kind_and_id(*owner);
    let description = format!(
        "{} {id} has this external id, which is unique: change or clear it there, or use another \
         one{match_ids}",
        kind.to_lowercase()
    );
    let violation = Violation {
        path: field.to_string(),
        reason: Reason::ExternalIdTaken,
        description,
    };
    let message = truncate::message(&violation, 1, 1);
    let mut details = ErrorDetails::new();
    details.set_resource_info(format!("{DOMAIN}.{kind}"), id, "", &message);
    details.set_bad_request(truncate::violations(&[violation]));
    build(ErrorReason::ExternalIdTaken, message, [], details)
}

fn kind_and_id(resource: ResourceId) -> (&'static str, String) {
    match resource {
        ResourceId::Task(id) => ("Task", id.to_string()),
        ResourceId::Step(id) => ("Step", id.to_string()),
    }
}

fn status(reason: ErrorReason, message: impl Into<String>) -> Status {
    with_metadata(reason, message, [])
}

fn with_metadata(
    reason: ErrorReason,
    message: impl Into<String>,
    metadata: impl IntoIterator<Item = (&'static str, String)>,
) -> Status {
    build(reason, message, metadata, ErrorDetails::new())
}

/// The status of an error with these details, its reason and what it tells about a retry.
fn build(
    reason: ErrorReason,
    message: impl Into<String>,
    metadata: impl IntoIterator<Item = (&'static str, String)>,
    mut details: ErrorDetails,
) -> Status {
    let metadata = metadata.into_iter();
    let metadata: HashMap<_, _> = metadata.map(|(key, it)| (key.to_owned(), it)).collect();
    details.set_error_info(reason_name(reason), DOMAIN, metadata);
    let (code, retry) = code(reason);
    if retry == Retry::Later {
        details.set_retry_info(Some(RETRY_DELAY));
    }
    let mut status = Status::with_error_details(code, message, details);
    let pushback = match retry {
        Retry::ByCode => return status,
        Retry::Later => MetadataValue::from(RETRY_DELAY.as_millis() as u64),
        Retry::Never => MetadataValue::from_static(NO_RETRY),
    };
    status.metadata_mut().insert(RETRY_PUSHBACK, pushback);
    status
}

impl From<Reason> for ErrorReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::FieldRequired => Self::FieldRequired,
            Reason::FieldTooLong => Self::FieldTooLong,
            Reason::FieldInvalid => Self::FieldInvalid,
            Reason::FieldOutOfRange => Self::FieldOutOfRange,
            Reason::TooManyElements => Self::TooManyElements,
            Reason::NestingTooDeep => Self::NestingTooDeep,
            Reason::MaskPathUnknown => Self::MaskPathUnknown,
            Reason::ShorthandInvalid => Self::ShorthandInvalid,
            Reason::ShorthandConflict => Self::ShorthandConflict,
            Reason::PageTokenInvalid => Self::PageTokenInvalid,
            Reason::CursorInvalid => Self::CursorInvalid,
            Reason::ExternalIdTaken => Self::ExternalIdTaken,
        }
    }
}

/// The name of a reason if the contract has it, else an empty text.
pub fn known_reason_name(text: &str) -> &'static str {
    let reason = ErrorReason::from_str_name(&format!("ERROR_REASON_{text}"));
    reason.map_or("", reason_name)
}

/// The name of a reason in an `ErrorInfo`.
pub fn reason_name(reason: ErrorReason) -> &'static str {
    let full = reason.as_str_name();
    full.strip_prefix("ERROR_REASON_").unwrap_or(full)
}

#[cfg(test)]
mod tests;
