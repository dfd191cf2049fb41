//! The results of a run, and the lines that it prints at its end.

use uuid::Uuid;

use super::report::{FileReport, ImportFailure};
use crate::{
    cli::{imported_guide::OutcomeCounts, out::print_error},
    config::ImportArgs,
};

#[derive(Default)]
pub(super) struct ImportCounts {
    outcomes: OutcomeCounts,
    /// Failed files that were not tried.
    not_tried: usize,
    /// Failed files that may have been imported all the same.
    undecided: usize,
    /// Failures of files that were tried.
    failures: Vec<String>,
    /// Why the remaining files are not tried.
    pub stopped: Option<&'static str>,
    /// How many files were done when Ctrl-C ended the run.
    pub interrupted_after: Option<usize>,
}

impl ImportCounts {
    pub fn add(&mut self, report: &FileReport) {
        let outcome = report.outcome();
        self.outcomes.add(outcome.ok());
        let Err(failure) = outcome else {
            return;
        };
        match failure {
            ImportFailure::NotTried(_) => {
                self.not_tried += 1;
                return;
            }
            ImportFailure::CallFailed(error) if error.caller_refused => {
                self.stopped = Some("the server refuses the calls of this caller");
            }
            // The client has already retried; other files would fail too.
            ImportFailure::CallFailed(error) if error.unreachable => {
                self.stopped = Some("the server cannot be reached");
            }
            ImportFailure::CallFailed(_)
            | ImportFailure::Unreadable(_)
            | ImportFailure::Directory
            | ImportFailure::TooLarge { .. }
            | ImportFailure::Malformed(_)
            | ImportFailure::Interrupted => {}
        }
        self.undecided += match failure {
            ImportFailure::CallFailed(error) => usize::from(error.undecided),
            ImportFailure::Interrupted => 1,
            ImportFailure::Unreadable(_)
            | ImportFailure::Directory
            | ImportFailure::TooLarge { .. }
            | ImportFailure::Malformed(_)
            | ImportFailure::NotTried(_) => 0,
        };
        self.failures.push(report.failure_text(failure));
    }

    pub fn is_success(&self) -> bool {
        self.outcomes.failed == 0 && self.interrupted_after.is_none()
    }

    /// How to import the rest of the files, if the run has not reached all of them or does
    /// not know what became of one. Without the id, files would be imported twice.
    pub fn resume_line(&self, args: &ImportArgs, run_id: Uuid) -> Option<String> {
        let resume = format!("to resume, run the same command with --request-id {run_id}");
        if let Some(done) = self.interrupted_after {
            let files = args.files.len();
            return Some(format!(
                "interrupted after {done} of {files} files: {resume}"
            ));
        }
        let stopped_early = self.stopped.is_some() && args.files.len() > 1;
        let is_incomplete = self.undecided > 0 || stopped_early;
        (is_incomplete && !args.dry_run).then_some(resume)
    }

    /// Prints the counts, and the failures again where other lines have followed them.
    pub fn print(&self, args: &ImportArgs) {
        let Self {
            outcomes,
            not_tried,
            undecided: _,
            failures,
            stopped,
            interrupted_after: _,
        } = self;
        if args.files.len() < 2 {
            return;
        }
        print_error(&outcomes.line(None, args.dry_run));
        if !args.quiet {
            failures.iter().for_each(|failure| print_error(failure));
        }
        match (stopped, not_tried) {
            (None, _) | (Some(_), 0) => {}
            (Some(reason), 1) => print_error(&format!("1 file was not tried, as {reason}")),
            (Some(reason), count) => {
                print_error(&format!("{count} files were not tried, as {reason}"));
            }
        }
    }
}
