//! What an error says of the call.

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// What is known of a write that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not done.
    Nothing,
    /// It was done or was not.
    Unknown,
}

/// Reads an error of a call while the database is away.
///
/// # Panics
/// When it is none that a caller may see then: UNAVAILABLE, which says when to
/// repeat the call, ABORTED and DEADLINE_EXCEEDED, all of them with a reason.
pub fn of(status: &Status) -> Verdict {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("no reason: {status:?}"));
    match (status.code(), info.reason.as_str()) {
        (Code::Unavailable, "STORE_UNAVAILABLE") => {
            let retry = status.get_details_retry_info();
            let delay = retry.and_then(|retry| retry.retry_delay);
            assert!(delay.is_some(), "not when to repeat it: {status:?}");
            match info.metadata.get("outcome").map(String::as_str) {
                Some("unknown") => Verdict::Unknown,
                None => Verdict::Nothing,
                Some(_) => panic!("an outcome of no name: {status:?}"),
            }
        }
        (Code::Aborted, "WRITE_CONFLICT") => Verdict::Nothing,
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED") => Verdict::Unknown,
        _ => panic!("no outage excuses this: {status:?}"),
    }
}
