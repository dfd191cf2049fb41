//! The only place where an error becomes a [`Status`]: a code with its `google.rpc` details.
//!
//! *Invariant:* the text of a status comes from the domain's error or this module, and may quote a
//! short part of the request. It never contains the text of a driver or of another layer.

use tonic::{Status, metadata::MetadataValue};
use uuid::Uuid;

use crate::{
    call_context::{CallContext, DeadlineSource},
    domain::{
        Error, Missing, Outage, SizedResource,
        caller::Scope,
        external_id::TakenId,
        ids::RoleId,
        translation_work::ResourceId,
        violation::{Path, Reason, Violation, Violations},
    },
    proto::v1::ErrorReason,
};

mod decode_error;
mod failure;
mod precondition;
mod truncate;

use failure::{Failure, error_reason};
pub use failure::{known_reason_name, reason_name};

/// The status of a failed call.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Invalid(violations) => violations.into(),
            Error::NotFound { missing, field } => not_found(missing, &field),
            Error::ExternalIdTaken(taken) => external_id_taken(&taken),
            Error::Precondition(failed) => precondition::status(&failed),
            Error::EtagMismatch(_) | Error::GuideEtagMismatch(_) | Error::EtagOfDeletedGuide(_) => {
                status(ErrorReason::EtagMismatch, message)
            }
            // Usually, the caller no longer receives it.
            Error::CallOver => deadline_exceeded(Scope::Read, DeadlineSource::Caller),
            Error::WriteConflict(_) => status(ErrorReason::WriteConflict, message),
            Error::TooLarge { resource, limit } => resource_too_large(resource, limit),
            Error::Overloaded(cause) => {
                // Counted here, because an error that does not reach the caller is not a rejection. For
                // example, a checkpoint may be skipped.
                if let Some(call) = CallContext::current() {
                    call.limits.rejected_calls(cause).inc();
                }
                status(ErrorReason::Overloaded, message)
            }
            // The database cannot serve the call. `outcome` tells programs whether a write may have
            // been done.
            Error::Unavailable(outage) => {
                let failure = Failure::new(ErrorReason::StoreUnavailable, message);
                match outage {
                    Outage::OutcomeUnknown => failure.with("outcome", "unknown").into(),
                    _ => failure.into(),
                }
            }
            Error::Internal(class) => {
                // The id of the call in the log, to find all its lines.
                let id = CallContext::current().map_or_else(Uuid::now_v7, |call| call.id);
                let request_id = id.to_string();
                tracing::error!(request_id, class, "internal error");
                internal(&request_id)
            }
        }
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

/// The call's credentials lack a required scope. Unknown scope names are not repeated, because
/// responses never contain credentials.
pub fn scope_missing(scope: Scope, granted: &[Scope]) -> Status {
    let known = Scope::ALL.map(Scope::name).join(", ");
    let message = match granted {
        [] => format!(
            "the credentials lack the scope `{scope}`: they have none of {known}. Unknown scopes \
             are ignored; separate scopes with spaces"
        ),
        _ => format!("the credentials lack the scope `{scope}`"),
    };
    Failure::new(ErrorReason::ScopeMissing, message)
        .with("scope", scope)
        .into()
}

/// The deadline of a call with this scope has passed.
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
            "; a write may still have been done"
        }
    };
    status(ErrorReason::DeadlineExceeded, format!("{limit}{outcome}"))
}

/// An error of the server itself. The log lines of the call have the same id.
pub fn internal(id: &str) -> Status {
    Failure::new(ErrorReason::Internal, format!("internal error {id}"))
        .with("id", id)
        .into()
}

/// The database has not been opened yet.
pub fn store_not_open() -> Status {
    status(ErrorReason::StoreUnavailable, "the server is starting")
}

/// The request is compressed. The response names the only accepted encoding.
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

/// A request whose messages are not encoded by Protocol Buffers.
pub fn unsupported_encoding() -> Status {
    status(
        ErrorReason::Unimplemented,
        "messages must be encoded by Protocol Buffers: send the content type application/grpc or \
         application/grpc+proto",
    )
}

/// A request that is not gRPC.
pub fn not_grpc() -> Status {
    status(
        ErrorReason::Unimplemented,
        "calls are sent by POST with the content type application/grpc or application/grpc-web",
    )
}

/// A gRPC request over HTTP/1.
pub fn needs_http2() -> Status {
    status(
        ErrorReason::Unimplemented,
        "gRPC needs HTTP/2: use it, or send gRPC-Web with the content type application/grpc-web",
    )
}

/// A request that cannot be decoded. `error` is that of prost, which names messages
/// and fields but never repeats what was sent.
pub fn undecodable(error: &str) -> Status {
    Violations::from(decode_error::violation(error)).into()
}

/// A metadata entry has an invalid value.
pub fn invalid_metadata(name: &'static str, description: &str) -> Status {
    let violation = Violation::new(&Path::root(name), Reason::FieldInvalid, description);
    Violations::from(violation).into()
}

/// A page token that was altered or belongs to another listing.
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

/// The metadata of a call is larger than the server accepts; `limit` is in bytes.
pub fn metadata_too_large(limit: usize) -> Status {
    let what = "the metadata, without credentials, is larger than";
    too_large(what, limit, "")
}

/// A resource exceeds its limit in bytes.
fn resource_too_large(resource: SizedResource, limit: usize) -> Status {
    let (what, remedy) = match resource {
        SizedResource::Task => (
            "the task would be too large to return: its texts and elements take more than",
            "",
        ),
        SizedResource::Step => (
            "the step would be too large to return: its texts and elements take more than",
            "",
        ),
        SizedResource::Guide => (
            "the guide would be too large to return: its texts and elements take more than",
            ": list its steps page by page with ListSteps",
        ),
        SizedResource::AnalyzedGuide => (
            "the guide without its bodies is larger than",
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

/// Something exceeds a limit in bytes. `remedy` says what the caller can do.
fn too_large(what: &str, limit: usize, remedy: &str) -> Status {
    let message = format!("{what} {limit} bytes{remedy}");
    Failure::new(ErrorReason::MessageTooLarge, message)
        .with("limit_bytes", limit)
        .into()
}

/// A request with violations. Lists as many as fit into the trailers, and their total number.
impl From<Violations> for Status {
    fn from(violations: Violations) -> Self {
        let (total, shown) = (violations.total(), truncate::violations(violations.kept()));
        let (reason, message) = match violations.kept().first() {
            Some(first) => (
                error_reason(first.reason.into()),
                truncate::message(first, total, shown.len()),
            ),
            None => (None, "the request is invalid".to_owned()),
        };
        let reason = reason.unwrap_or(ErrorReason::FieldInvalid);
        let mut failure = Failure::new(reason, message).with_counts(shown.len(), total);
        failure.details.set_bad_request(shown);
        failure.into()
    }
}

/// The status is the same for a missing resource and a resource of another account. The message
/// names the field, unless it is the request's own id, which has no dot.
fn not_found(missing: Missing, field: &str) -> Status {
    let field = truncate::text(field, truncate::MAX_PATH_BYTES);
    let named = match field.contains('.') {
        true => format!("not found, which {field} names"),
        false => "not found".to_owned(),
    };
    let (reason, kind, id, message) = match missing {
        Missing::Task(id) => {
            let mut message = format!("task {id} {named}");
            if field == "document.task.guid" {
                message.push_str(": leave document.task.guid out to create a task");
            }
            (ErrorReason::TaskNotFound, "Task", id.to_string(), message)
        }
        Missing::TaskWithExternalId(id) => {
            let message = format!("no task has the external id that {field} names");
            (ErrorReason::TaskNotFound, "Task", id.into_string(), message)
        }
        Missing::Step(id) => {
            let message = format!("step {id} {named}");
            (ErrorReason::StepNotFound, "Step", id.to_string(), message)
        }
        Missing::StepOfTask(id) => {
            let message = format!(
                "step {id}, which {field} names, is not a step of the task: without a guid it is \
                 created, or with `match_external_ids` found by its external id"
            );
            (ErrorReason::StepNotFound, "Step", id.to_string(), message)
        }
        Missing::Role(RoleId(id)) => {
            let message = format!("role {id} {named}");
            (ErrorReason::RoleNotFound, "Role", id.to_string(), message)
        }
        Missing::Revision(task, revision) => {
            let revision = truncate::text(&revision.to_string(), truncate::MAX_PATH_BYTES);
            let message = format!("task {task} has no revision {revision}");
            let id = format!("{task}/{revision}");
            (ErrorReason::RevisionNotFound, "TaskRevision", id, message)
        }
    };
    Failure::new(reason, message)
        .about(kind, id)
        .with("field", field)
        .into()
}

/// Another task or step has an external id.
fn external_id_taken(taken: &TakenId) -> Status {
    let TakenId { owner, field, .. } = taken;
    let (kind, id) = match owner {
        ResourceId::Task(id) => ("Task", id.to_string()),
        ResourceId::Step(id) => ("Step", id.to_string()),
    };
    // Short, so that it is not truncated.
    let description = match taken.is_matchable {
        true => format!(
            "{owner} has this external id: set `match_external_ids` to change that {}, or use another id",
            kind.to_lowercase()
        ),
        false => format!(
            "{owner} has this external id, which is unique: change or clear it there, or use another one"
        ),
    };
    let violation = Violation {
        path: field.to_string(),
        reason: Reason::ExternalIdTaken,
        description,
    };
    let message = truncate::message(&violation, 1, 1);
    let mut failure = Failure::new(ErrorReason::ExternalIdTaken, message).about(kind, id);
    let shown = truncate::violations(&[violation]);
    failure.details.set_bad_request(shown);
    failure.into()
}

fn status(reason: ErrorReason, message: impl Into<String>) -> Status {
    Failure::new(reason, message).into()
}

#[cfg(test)]
mod tests;
