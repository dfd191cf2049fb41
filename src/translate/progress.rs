//! What a run shows while it goes on, on standard error.

use std::io::{self, IsTerminal};

use indicatif::ProgressBar;

use super::summary::{Failure, Summary};
use crate::plain::complain;

/// Sees what a run does.
pub trait Progress: Send {
    /// Another page of the work list is done.
    fn page(&mut self, summary: &Summary);

    /// An item failed.
    fn failure(&mut self, failure: &Failure);
}

/// A line that changes, for people who watch.
pub struct Bar(ProgressBar);

/// A line for each page and failure.
pub struct Lines;

/// What suits standard error.
pub fn of_standard_error() -> Box<dyn Progress> {
    if io::stderr().is_terminal() {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
        Box::new(Bar(bar))
    } else {
        Box::new(Lines)
    }
}

impl Progress for Bar {
    fn page(&mut self, summary: &Summary) {
        self.0.set_message(summary.to_string());
    }

    fn failure(&mut self, failure: &Failure) {
        self.0.suspend(|| complain(&failure.to_string()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Lines {
    fn page(&mut self, summary: &Summary) {
        complain(&format!("so far: {summary}"));
    }

    fn failure(&mut self, failure: &Failure) {
        complain(&failure.to_string());
    }
}
