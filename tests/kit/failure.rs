//! Assertions about errors: their code and details.

use std::{collections::HashMap, fmt::Debug};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

/// The result of a call.
pub trait Outcome<T> {
    /// The response; panics on an error.
    fn accepted(self) -> T;

    /// The error; panics on a response.
    fn refused(self) -> Failure;
}

impl<T: Debug> Outcome<T> for Result<T, Status> {
    #[track_caller]
    fn accepted(self) -> T {
        match self {
            Ok(response) => response,
            Err(status) => panic!("refused: {:?}", Failure::from(status)),
        }
    }

    #[track_caller]
    fn refused(self) -> Failure {
        match self {
            Ok(response) => panic!("accepted: {response:?}"),
            Err(status) => Failure::from(status),
        }
    }
}

/// The code of the errors with this reason that depend on a request.
pub fn code_of(reason: &str) -> Code {
    match reason {
        "TASK_NOT_FOUND" | "STEP_NOT_FOUND" | "ROLE_NOT_FOUND" | "REVISION_NOT_FOUND" => {
            Code::NotFound
        }
        "LINKED_IMPORT_ONLY"
        | "TASK_HAS_STEPS"
        | "TASK_REFERENCED"
        | "TASK_MANAGED"
        | "STEP_MANAGED"
        | "ABSENT_STEPS"
        | "REQUEST_ID_REUSED"
        | "REVISION_UNRESTORABLE"
        | "REVISION_IN_USE" => Code::FailedPrecondition,
        "EXTERNAL_ID_TAKEN" => Code::AlreadyExists,
        "ETAG_MISMATCH" => Code::Aborted,
        "MESSAGE_TOO_LARGE" => Code::ResourceExhausted,
        _ => Code::InvalidArgument,
    }
}

/// An error as a client sees it.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    pub details: ErrorDetails,
    /// What the client's retry policy is told: milliseconds to wait, or -1 for no retry.
    pub retry_pushback: Option<i64>,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let pushback = status.metadata().get("grpc-retry-pushback-ms");
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            details: status.get_error_details(),
            retry_pushback: pushback.map(|sent| {
                let sent = sent.to_str().expect("ASCII");
                sent.parse().expect("a number")
            }),
        }
    }
}

impl Failure {
    /// The reason of its ErrorInfo; empty when it has none.
    pub fn reason(&self) -> &str {
        self.details
            .error_info()
            .map_or("", |info| info.reason.as_str())
    }

    /// The metadata of its ErrorInfo.
    pub fn metadata(&self) -> HashMap<String, String> {
        let info = self.details.error_info();
        info.map(|info| info.metadata.clone()).unwrap_or_default()
    }

    /// The violations of its BadRequest.
    pub fn of_fields(&self) -> &[FieldViolation] {
        let request = self.details.bad_request();
        request.map_or(&[], |request| &request.field_violations)
    }

    /// The field and reason of every violation of its BadRequest.
    pub fn violations(&self) -> Vec<(&str, &str)> {
        let violations = self.of_fields().iter();
        violations.map(|it| (&*it.field, &*it.reason)).collect()
    }

    /// Asserts the code, and the reason in this service's domain.
    #[track_caller]
    pub fn is(&self, code: Code, reason: &str) -> &Self {
        assert_eq!((self.code, self.reason()), (code, reason), "{self:?}");
        let domain = self.details.error_info().map(|info| info.domain.as_str());
        assert_eq!(domain, Some("expertise.v1"), "{self:?}");
        assert!(!self.message.is_empty(), "no message: {self:?}");
        self.pushes_back_as_its_reason_says()
    }

    /// Asserts that `grpc-retry-pushback-ms` says the same as the details, or -1 where a
    /// retry of the same request is useless.
    #[track_caller]
    fn pushes_back_as_its_reason_says(&self) -> &Self {
        let retry = self.details.retry_info().and_then(|info| info.retry_delay);
        let expected = match self.reason() {
            "ETAG_MISMATCH" | "MESSAGE_TOO_LARGE" => Some(-1),
            _ => retry.map(|delay| i64::try_from(delay.as_millis()).expect("a short delay")),
        };
        assert_eq!(self.retry_pushback, expected, "{self:?}");
        self
    }
}
