//! Says once that calls are repeated, as the pauses between attempts may be long.

use std::sync::atomic::{AtomicBool, Ordering};

use tonic::{Code, Status};

use super::{CalledServer, is_connection_lost};
use crate::{config::RetrySettings, proto::code_name, terminal::print_error};

/// Whether the line was printed.
#[derive(Debug, Default)]
pub(super) struct RepetitionNotice(AtomicBool);

impl RepetitionNotice {
    /// Prints a line on standard error at the first repetition after an outage. A conflict with
    /// another write is no outage. A connection lost before any answer is repeated once only.
    pub fn print_first(&self, status: &Status, server: &CalledServer<'_>, retry: RetrySettings) {
        let CalledServer {
            address, answered, ..
        } = *server;
        let is_outage = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded)
            || answered && is_connection_lost(status);
        if is_outage && !self.0.swap(true, Ordering::Relaxed) {
            print_error(&format!(
                "a call of {address} failed ({}) and is repeated, {} times at most",
                code_name(status.code()),
                retry.retries
            ));
        }
    }
}
