//! Tells the user once that calls are repeated, as the pauses between attempts may be long.

use std::sync::atomic::{AtomicBool, Ordering};

use tonic::{Code, Status};

use super::{CalledServer, is_connection_lost};
use crate::{config::RetrySettings, proto::code_name, terminal::print_error};

/// Whether the notice has been printed.
#[derive(Debug, Default)]
pub(super) struct RepetitionNotice(AtomicBool);

impl RepetitionNotice {
    /// Prints a line on standard error when a call is first repeated after an outage. A write
    /// conflict is no outage. The loss of a connection before any answer is not reported: the
    /// call is repeated only once after it.
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
