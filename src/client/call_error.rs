//! Why a call failed, for people and for scripts.

use std::{error::Error, fmt};

use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{connect_error, is_caller_refused, is_transient, is_unsent, may_have_taken_effect};
use crate::{proto::code_name, terminal::sanitize};

/// Why a call failed. It is displayed as one line that says what to do, and an indented line for
/// each [`CallViolation`].
#[derive(Clone, Debug, Serialize)]
pub struct CallError {
    /// The canonical code, such as `INVALID_ARGUMENT`.
    pub code: &'static str,
    /// The reason, such as `FIELD_REQUIRED`; empty if the server did not respond.
    pub reason: String,
    pub message: String,
    /// The field of the request that names a missing resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// As many as the response has room for.
    pub violations: Vec<CallViolation>,
    /// The number of violations that did not fit into the response.
    pub unlisted: usize,
    /// Whether a write may have taken effect although the call failed.
    pub undecided: bool,
    /// Whether the server refuses every call of this rpc by this caller.
    #[serde(skip)]
    pub caller_refused: bool,
    /// Whether the same call may succeed later.
    #[serde(skip)]
    pub transient: bool,
    /// Whether the server could not be reached.
    #[serde(skip)]
    pub unreachable: bool,
}

/// A problem with a request or with the state that it needs.
#[derive(Clone, Debug, Serialize)]
pub struct CallViolation {
    /// The path of the field, or the subject of the state.
    pub field: String,
    /// The position of the field in the text that was sent; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub description: String,
    pub reason: String,
}

/// The server that was called, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledServer<'a> {
    pub address: &'a str,
    /// Whether the caller names an account instead of sending a token.
    pub names_account: bool,
    /// Whether the server has responded to this or an earlier call.
    pub answered: bool,
}

const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";

impl CallError {
    /// Reads the status of a failed call.
    pub(crate) fn new(status: &Status, server: &CalledServer<'_>) -> Self {
        let address = server.address;
        let details = status.get_error_details();
        let info = details.error_info();
        let reason = info.map(|info| sanitize(&info.reason)).unwrap_or_default();
        let field = info.and_then(|info| info.metadata.get("field"));
        let violations = violations(&details);
        let total = info.and_then(|info| info.metadata.get("violations_total")?.parse().ok());
        let total: usize = total.unwrap_or_default();
        let text = sanitize(status.message());
        let text = match status.source() {
            _ if !reason.is_empty() => text,
            Some(error) => connect_error::message(address, error, server.answered),
            // A server or proxy canceled the call, probably because of a timeout there. A timeout
            // of this client has a source, and is handled above.
            None if status.code() == Code::Cancelled => connect_error::timed_out(address),
            None => connect_error::unexpected_answer(address, &text),
        };
        Self {
            code: code_name(status.code()),
            field: field.map(|field| sanitize(field).into_boxed_str()),
            message: message_with_advice(text, &reason, server.names_account),
            undecided: may_have_taken_effect(status),
            caller_refused: is_caller_refused(status),
            transient: is_transient(status),
            unreachable: is_unsent(status),
            reason,
            unlisted: total.saturating_sub(violations.len()),
            violations,
        }
    }
}

impl Error for CallError {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            message,
            violations,
            unlisted,
            ..
        } = self;
        if self.code == INVALID_ARGUMENT && !violations.is_empty() {
            match violations.len() + unlisted {
                1 => f.write_str("the server refuses it:")?,
                count => write!(f, "the server refuses it for {count} reasons:")?,
            }
            for violation in violations {
                write!(f, "\n  {violation}")?;
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
        for CallViolation { field, place, .. } in violations {
            if !place.is_empty() {
                write!(f, "\n  {field} {place}")?;
            } else if !has_word(message, field) {
                write!(f, "\n  {field}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for CallViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            place,
            description,
            reason,
        } = self;
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{field}: {description} ({reason})")
    }
}

/// Whether a text names a field or an id.
fn has_word(text: &str, word: &str) -> bool {
    let is_between = |c: char| !c.is_alphanumeric() && !"_-.[]/".contains(c);
    let mut words = text.split(is_between);
    words.any(|it| it.trim_end_matches('.') == word)
}

fn violations(details: &ErrorDetails) -> Vec<CallViolation> {
    let violation = |field: &str, description: &str, reason: &str| CallViolation {
        field: sanitize(field),
        place: String::new(),
        description: sanitize(description),
        reason: sanitize(reason),
    };
    let request = details.bad_request().map(|bad| &bad.field_violations);
    let request = request.into_iter().flatten();
    let state = details.precondition_failure().map(|it| &it.violations);
    let state = state.into_iter().flatten();
    request
        .map(|it| violation(&it.field, &it.description, &it.reason))
        .chain(state.map(|it| violation(&it.subject, &it.description, &it.r#type)))
        .collect()
}

/// A message that says what a user of the command line can do.
fn message_with_advice(message: String, reason: &str, names_account: bool) -> String {
    let advice = match reason {
        // The server's message is written for programs.
        "CREDENTIALS_MISSING" if names_account => {
            return "the server requires a token: set EXPERTISE_TOKEN instead of an account"
                .to_owned();
        }
        "CREDENTIALS_MISSING" => {
            return "the server requires an account: set --account instead of a token".to_owned();
        }
        // It names the field of the API, which is a flag here.
        "ABSENT_STEPS" => return message.replace("`absent_steps`", "--absent-steps"),
        "SCOPE_MISSING" => "use a token that has it",
        "TASK_NOT_FOUND" => "`expertise list` lists the tasks of the account",
        "REVISION_NOT_FOUND" => "`expertise history` lists its revisions and aliases",
        "OVERLOADED" | "STORE_UNAVAILABLE" | "WRITE_CONFLICT"
            if !message.contains("try again later") =>
        {
            "try again later"
        }
        // The server's message gives the remedy.
        "MESSAGE_TOO_LARGE" if message.contains("EXPERTISE_MAX_MESSAGE_BYTES") => return message,
        "MESSAGE_TOO_LARGE" => {
            "raise EXPERTISE_MAX_MESSAGE_BYTES of the server, or send less at once"
        }
        _ => return message,
    };
    format!("{message}: {advice}")
}
