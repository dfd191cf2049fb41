//! What an error of a call says about its write.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::kit::deadline::WAIT_TIMEOUT;

const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What is known about a write that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// It was not done, and may be done when it is repeated.
    NotDone,
    /// It was not done, because the stored state does not allow it.
    Refused,
    /// Whether it was done is not known.
    Unknown,
}

/// Classifies an error.
///
/// # Panics
/// When neither a rule nor a fault of a server or database explains it.
pub fn write_error(status: &Status) -> WriteError {
    let Some(info) = status.get_details_error_info() else {
        // The connection broke.
        return WriteError::Unknown;
    };
    match (info.reason.as_str(), status.code()) {
        ("WRITE_CONFLICT" | "OVERLOADED", _) => WriteError::NotDone,
        ("EXTERNAL_ID_TAKEN", _) => WriteError::Refused,
        ("DEADLINE_EXCEEDED", _) => WriteError::Unknown,
        ("STORE_UNAVAILABLE", _) => {
            let retry = status.get_details_retry_info();
            let delay = retry.and_then(|retry| retry.retry_delay);
            assert!(delay.is_some(), "it does not say when to retry: {status:?}");
            match info.metadata.get("outcome").map(String::as_str) {
                Some("unknown") => WriteError::Unknown,
                None => WriteError::NotDone,
                Some(_) => panic!("an unknown kind of outcome: {status:?}"),
            }
        }
        (_, Code::NotFound | Code::FailedPrecondition | Code::InvalidArgument) => {
            WriteError::Refused
        }
        _ => panic!("no fault explains this: {status:?}"),
    }
}

/// Retries a call while the service or its database is away.
pub struct RetryLoop(Instant);

impl RetryLoop {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Waits for the next attempt.
    ///
    /// # Panics
    /// When a retry cannot help, or after [`WAIT_TIMEOUT`].
    pub async fn wait(&self, status: Status) {
        let may_retry = write_error(&status) != WriteError::Refused;
        assert!(may_retry && self.0.elapsed() < WAIT_TIMEOUT, "{status:?}");
        sleep(RETRY_INTERVAL).await;
    }
}

/// Makes a call again until the service can answer it.
macro_rules! retry_while_unavailable {
    ($call:expr) => {{
        let retries = $crate::writers::RetryLoop::new();
        loop {
            match $call {
                Ok(response) => break response,
                Err(status) => retries.wait(status).await,
            }
        }
    }};
}

pub(crate) use retry_while_unavailable;
