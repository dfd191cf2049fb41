//! The progress of a run, on standard error.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::ProgressBar;

use super::summary::{TranslateFailure, TranslateSummary};
use crate::terminal::print_error;

const TICK_INTERVAL: Duration = Duration::from_millis(100);

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
