//! What a run has done, and what it says at its end.

use super::report::{FileReport, ImportFailure, ImportKind};
use crate::{cli::out::print_error, config::ImportArgs};

#[derive(Default)]
pub(super) struct ImportCounts {
    created: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
    /// Failures of files that were tried.
    failures: Vec<String>,
    /// Why the remaining files are not tried.
    pub stopped: Option<&'static str>,
    /// How many files were done when Ctrl-C ended the run.
    pub interrupted_after: Option<usize>,
}

impl ImportCounts {
    pub fn add(&mut self, report: &FileReport) {
        let failure = match report.kind() {
            Ok(kind) => {
                *match kind {
                    ImportKind::Created => &mut self.created,
                    ImportKind::Updated => &mut self.updated,
                    ImportKind::Unchanged => &mut self.unchanged,
                } += 1;
                return;
            }
            Err(failure) => failure,
        };
        self.failed += 1;
        match failure {
            ImportFailure::NotTried(_) => return,
            ImportFailure::Refused(error) if error.caller_refused => {
                self.stopped = Some("the server refuses the calls of this caller");
            }
            // The client has already retried; other files would fail too.
            ImportFailure::Refused(error) if error.unreachable => {
                self.stopped = Some("the server cannot be reached");
            }
            ImportFailure::Refused(_)
            | ImportFailure::Unreadable(_)
            | ImportFailure::TooLarge { .. }
            | ImportFailure::Malformed(_)
            | ImportFailure::Interrupted => {}
        }
        self.failures.push(report.failure_text(failure));
    }

    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.interrupted_after.is_none()
    }

    /// Prints the counts, and the failures again where other lines have followed them.
    pub fn print(&self, import: &ImportArgs) {
        let Self {
            created,
            updated,
            unchanged,
            failed,
            failures,
            stopped: _,
            interrupted_after: _,
        } = self;
        if import.files.len() < 2 {
            return;
        }
        let to_be = if import.dry_run { "to be " } else { "" };
        print_error(&format!(
            "{created} {to_be}created, {updated} {to_be}updated, {unchanged} unchanged, {failed} \
             failed"
        ));
        if !import.quiet {
            failures.iter().for_each(|failure| print_error(failure));
        }
    }
}
