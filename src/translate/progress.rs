//! The results of a run, and its progress on standard error.

use std::{
    fmt,
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::ProgressBar;

use crate::{
    proto::v1::TranslationResult,
    terminal::{print_error, sanitize},
};

const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// How many items ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslateSummary {
    /// Written.
    pub written: u64,
    /// Skipped, as the language has been locked since the list was made.
    pub locked: u64,
    /// Left for the next run, as the source text has changed since.
    pub stale: u64,
    /// Skipped, as the task or step has been deleted since.
    pub not_found: u64,
    /// Not translated, or refused by the service.
    pub failed: u64,
}

impl TranslateSummary {
    /// Counts a result; `false` when the service left it unspecified.
    pub(super) fn count(&mut self, result: TranslationResult) -> bool {
        let counter = match result {
            TranslationResult::Written => &mut self.written,
            TranslationResult::SkippedLocked => &mut self.locked,
            TranslationResult::Stale => &mut self.stale,
            TranslationResult::NotFound => &mut self.not_found,
            TranslationResult::Unspecified => return false,
        };
        *counter += 1;
        true
    }
}

impl fmt::Display for TranslateSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            written,
            locked,
            stale,
            not_found,
            failed,
        } = self;
        write!(
            f,
            "written {written}, skipped as locked {locked}, stale {stale}, \
             not found {not_found}, failed {failed}"
        )
    }
}

/// An item that was not translated. It is displayed on one line, without its texts, and is safe
/// on a terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed {guid} {language}: {reason}")]
pub struct TranslateFailure {
    /// The task or step.
    pub guid: String,
    /// The language of the missing translation.
    pub language: String,
    /// Why.
    pub reason: String,
}

impl TranslateFailure {
    /// `guid` and `language` are texts of the service, and are made safe here.
    pub(super) fn new(guid: &str, language: &str, reason: String) -> Self {
        Self {
            guid: sanitize(guid),
            language: sanitize(language),
            reason,
        }
    }
}

/// Receives the progress of a run.
pub trait TranslateProgress: Send {
    /// Another page of the work list is done.
    fn page_done(&mut self, summary: &TranslateSummary);

    /// An item failed.
    fn item_failed(&mut self, failure: &TranslateFailure);
}

/// A line that is updated, on a terminal.
struct Spinner(ProgressBar);

/// A line for each page and failure.
struct Lines;

/// A spinner on a terminal, else lines.
pub fn progress_on_standard_error() -> Box<dyn TranslateProgress> {
    if io::stderr().is_terminal() {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK_INTERVAL);
        Box::new(Spinner(bar))
    } else {
        Box::new(Lines)
    }
}

impl TranslateProgress for Spinner {
    fn page_done(&mut self, summary: &TranslateSummary) {
        self.0.set_message(summary.to_string());
    }

    fn item_failed(&mut self, failure: &TranslateFailure) {
        self.0.suspend(|| print_error(&failure.to_string()));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl TranslateProgress for Lines {
    fn page_done(&mut self, summary: &TranslateSummary) {
        print_error(&format!("so far: {summary}"));
    }

    fn item_failed(&mut self, failure: &TranslateFailure) {
        print_error(&failure.to_string());
    }
}
