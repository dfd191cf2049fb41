//! An error with its `google.rpc` details. Its reason determines its code and whether a retry may
//! help.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status, metadata::MetadataValue};
use tonic_types::{ErrorDetails, StatusExt};

use crate::proto::v1::ErrorReason;

/// The prefix of reasons in the proto file, which an `ErrorInfo` omits.
const REASON_PREFIX: &str = "ERROR_REASON_";
/// The `domain` of every `ErrorInfo`.
pub const DOMAIN: &str = "expertise.v1";
/// How long a caller should wait before it retries a call that was refused because of overload.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Tells the retry policy of gRPC clients how many milliseconds to wait (gRFC A6).
const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";
/// The pushback that keeps a retry policy from retrying the call.
const NO_RETRY: &str = "-1";

/// An error with its details, which becomes a [`Status`].
pub struct Failure {
    reason: ErrorReason,
    message: String,
    metadata: HashMap<String, String>,
    pub details: ErrorDetails,
}

impl Failure {
    pub fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            metadata: HashMap::new(),
            details: ErrorDetails::new(),
        }
    }

    /// Adds an entry to the metadata of its `ErrorInfo`.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.metadata.insert(key.to_owned(), value.to_string());
        self
    }

    /// Adds how many violations are shown, if not all are.
    pub fn with_counts(self, shown: usize, total: usize) -> Self {
        match shown < total {
            true => self
                .with("violations_total", total)
                .with("violations_shown", shown),
            false => self,
        }
    }

    /// Adds the resource that the error is about.
    pub fn about(mut self, kind: &str, id: impl ToString) -> Self {
        let kind = format!("{DOMAIN}.{kind}");
        let details = &mut self.details;
        details.set_resource_info(kind, id.to_string(), "", &self.message);
        self
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let Failure {
            reason,
            message,
            metadata,
            mut details,
        } = failure;
        details.set_error_info(reason_name(reason), DOMAIN, metadata);
        let pushback = match reason {
            ErrorReason::Overloaded | ErrorReason::StoreUnavailable => {
                details.set_retry_info(Some(RETRY_DELAY));
                Some(MetadataValue::from(RETRY_DELAY.as_millis() as u64))
            }
            // A retry may help with other errors that have these codes, but never with these
            // errors.
            ErrorReason::EtagMismatch | ErrorReason::MessageTooLarge => {
                Some(MetadataValue::from_static(NO_RETRY))
            }
            _ => None,
        };
        let mut status = Self::with_error_details(code(reason), message, details);
        if let Some(pushback) = pushback {
            status.metadata_mut().insert(RETRY_PUSHBACK, pushback);
        }
        status
    }
}

/// The code of an error with this reason.
fn code(reason: ErrorReason) -> Code {
    match reason {
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
        ErrorReason::EtagMismatch | ErrorReason::WriteConflict => Code::Aborted,
        ErrorReason::CredentialsMissing | ErrorReason::CredentialsInvalid => Code::Unauthenticated,
        ErrorReason::ScopeMissing => Code::PermissionDenied,
        ErrorReason::MessageTooLarge | ErrorReason::Overloaded => Code::ResourceExhausted,
        ErrorReason::StoreUnavailable => Code::Unavailable,
        ErrorReason::Internal => Code::Internal,
        ErrorReason::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorReason::Unimplemented => Code::Unimplemented,
    }
}

/// The reason of this name in the API.
pub fn error_reason(name: &str) -> Option<ErrorReason> {
    ErrorReason::from_str_name(&format!("{REASON_PREFIX}{name}"))
}

/// The name of a reason, or an empty text if the API does not have it.
pub fn known_reason_name(text: &str) -> &'static str {
    error_reason(text).map_or("", reason_name)
}

/// The name of a reason in an `ErrorInfo`.
pub fn reason_name(reason: ErrorReason) -> &'static str {
    let full = reason.as_str_name();
    full.strip_prefix(REASON_PREFIX).unwrap_or(full)
}
