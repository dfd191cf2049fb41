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

/// Counts the results of a run, and shows them.
pub(super) struct TranslateProgress {
    pub summary: TranslateSummary,
    /// A line that is updated, on a terminal. Elsewhere each page has a line.
    spinner: Option<ProgressBar>,
}

impl TranslateProgress {
    pub fn new() -> Self {
        let spinner = io::stderr().is_terminal().then(ProgressBar::new_spinner);
        if let Some(spinner) = &spinner {
            spinner.enable_steady_tick(TICK_INTERVAL);
        }
        Self {
            summary: TranslateSummary::default(),
            spinner,
        }
    }

    /// Counts a result; `false` when the service left it unspecified.
    pub fn count(&mut self, result: TranslationResult) -> bool {
        let summary = &mut self.summary;
        let counter = match result {
            TranslationResult::Written => &mut summary.written,
            TranslationResult::SkippedLocked => &mut summary.locked,
            TranslationResult::Stale => &mut summary.stale,
            TranslationResult::NotFound => &mut summary.not_found,
            TranslationResult::Unspecified => return false,
        };
        *counter += 1;
        true
    }

    /// Counts an item that was not translated. `reason` has none of its texts, and is safe on a
    /// terminal.
    pub fn fail(&mut self, guid: &str, language: &str, reason: &str) {
        self.summary.failed += 1;
        let line = format!("failed {} {}: {reason}", sanitize(guid), sanitize(language));
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| print_error(&line)),
            None => print_error(&line),
        }
    }

    /// Another page of the work list is done.
    pub fn end_page(&self) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(self.summary.to_string()),
            None => print_error(&format!("so far: {}", self.summary)),
        }
    }
}

impl Drop for TranslateProgress {
    fn drop(&mut self) {
        self.spinner.iter().for_each(ProgressBar::finish_and_clear);
    }
}
