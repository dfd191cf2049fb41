//! What a server answered instead of doing what it was asked, for people and for
//! scripts.

use std::{error::Error, fmt};

use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{is_unsent, may_be_done, shuts_out, trouble};
use crate::plain::plain;

/// Why a call did not do what it was asked. A display is a line that says what to
/// do, and one more, indented, for each [`Complaint`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The canonical code, such as `INVALID_ARGUMENT`.
    pub code: &'static str,
    /// The reason of the contract, such as `FIELD_REQUIRED`; empty when no answer
    /// came.
    pub reason: String,
    /// What happened, in a line.
    pub message: String,
    /// What is wrong with the request or stands in its way, as much as an answer
    /// has room for.
    pub violations: Vec<Complaint>,
    /// How much more there is.
    pub unlisted: usize,
    /// Whether a write may have been done all the same.
    pub undecided: bool,
    /// Whether no call of this caller will succeed.
    #[serde(skip)]
    pub for_good: bool,
    /// Whether the server could not be reached.
    #[serde(skip)]
    pub unreachable: bool,
}

/// One thing that is wrong with a request, or stands in its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The path of the field, or what stands in the way.
    pub field: String,
    /// What is wrong.
    pub description: String,
    /// The reason of the contract.
    pub reason: String,
}

const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";

impl Refusal {
    /// Reads an answer of this server to a caller who named an account, or else
    /// sent a token; the server may have answered other calls before.
    pub(crate) fn of(status: &Status, server: &str, account: bool, answered: bool) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let reason = info.map(|info| info.reason.clone()).unwrap_or_default();
        let violations = complaints(&details);
        let total = info.and_then(|info| info.metadata.get("violations_total"));
        let total = total
            .and_then(|total| total.parse().ok())
            .unwrap_or(0_usize);
        let said = match status.source() {
            Some(error) if reason.is_empty() => trouble::words(server, error, answered),
            // What tonic says of a time-out of ours.
            None if reason.is_empty() && status.code() == Code::Cancelled => trouble::late(server),
            None if reason.is_empty() => trouble::strange(server, &plain(status.message())),
            Some(_) | None => plain(status.message()),
        };
        let message = match (advice(&reason, account), said) {
            (Some(Advice::Instead(words)), _) => words.to_owned(),
            (Some(Advice::Besides(words)), said) => format!("{said}: {words}"),
            (None, said) => said,
        };
        Self {
            code: name(status.code()),
            message,
            undecided: may_be_done(status),
            for_good: shuts_out(status),
            unreachable: is_unsent(status),
            reason,
            unlisted: total.saturating_sub(violations.len()),
            violations,
        }
    }
}

impl Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            reason,
            message,
            violations,
            unlisted,
            undecided: _,
            for_good: _,
            unreachable: _,
        } = self;
        if *code == INVALID_ARGUMENT && !violations.is_empty() {
            match violations.len() + unlisted {
                1 => f.write_str("the server refuses it:")?,
                count => write!(f, "the server refuses it for {count} reasons:")?,
            }
            for complaint in violations {
                write!(f, "\n  {complaint}")?;
            }
            return match unlisted {
                0 => Ok(()),
                count => write!(f, "\n  and {count} more"),
            };
        }
        f.write_str(message)?;
        if !reason.is_empty() {
            write!(f, " ({reason})")?;
        }
        // What stands in the way; the message says why.
        for complaint in violations {
            write!(f, "\n  {}", complaint.field)?;
        }
        Ok(())
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            description,
            reason,
        } = self;
        write!(f, "{field}: {description} ({reason})")
    }
}

fn complaints(details: &ErrorDetails) -> Vec<Complaint> {
    let request = details.bad_request().map(|bad| &bad.field_violations);
    let request = request.into_iter().flatten().map(|it| Complaint {
        field: plain(&it.field),
        description: plain(&it.description),
        reason: plain(&it.reason),
    });
    let state = details.precondition_failure().map(|it| &it.violations);
    let state = state.into_iter().flatten().map(|it| Complaint {
        field: plain(&it.subject),
        description: plain(&it.description),
        reason: plain(&it.r#type),
    });
    request.chain(state).collect()
}

/// What a person at this command line can do.
enum Advice {
    /// Said in place of the server's words, which are for those who write clients.
    Instead(&'static str),
    /// Said after them.
    Besides(&'static str),
}

fn advice(reason: &str, account: bool) -> Option<Advice> {
    use Advice::{Besides, Instead};
    match (reason, account) {
        ("CREDENTIALS_MISSING", true) => Some(Instead(
            "the server asks for a token: set EXPERTISE_TOKEN in place of an account",
        )),
        ("CREDENTIALS_MISSING", false) => Some(Instead(
            "the server asks for an account: name one with --account in place of a token",
        )),
        ("ABSENT_STEPS", _) => Some(Besides("--absent-steps keep or --absent-steps delete")),
        ("SCOPE_MISSING", _) => Some(Besides("get a token that has it")),
        ("TASK_NOT_FOUND", _) => Some(Besides("`expertise list` lists the tasks of the account")),
        ("OVERLOADED" | "STORE_UNAVAILABLE" | "WRITE_CONFLICT", _) => {
            Some(Besides("try again later"))
        }
        ("MESSAGE_TOO_LARGE", _) => Some(Besides("EXPERTISE_MAX_MESSAGE_BYTES of the server")),
        _ => None,
    }
}

/// The name as the protocol spells it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => INVALID_ARGUMENT,
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
