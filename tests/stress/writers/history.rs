//! How calls went.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tonic::{Code, Status};
use tonic_types::StatusExt;

/// How a call went.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    started: Instant,
    ended: Instant,
    error: Option<Code>,
    /// The connection did not break.
    is_answered: bool,
}

impl Call {
    /// One that ends now.
    pub fn new(started: Instant, error: Option<&Status>) -> Self {
        Self {
            started,
            ended: Instant::now(),
            error: error.map(Status::code),
            is_answered: error.is_none_or(|it| it.get_details_error_info().is_some()),
        }
    }
}

/// How all calls of a load went.
#[derive(Debug, Default)]
pub struct CallHistory {
    pub calls: Vec<Call>,
    /// Writes that were not answered, and were found done.
    pub done: usize,
    /// Writes that were not answered, and were found not done.
    pub not_done: usize,
}

impl CallHistory {
    /// With the calls of another client.
    pub fn and(mut self, other: Self) -> Self {
        self.calls.extend(other.calls);
        self.done += other.done;
        self.not_done += other.not_done;
        self
    }

    /// Prints how the calls went, and asserts that the server sent each error itself, with one of
    /// these codes.
    #[track_caller]
    pub fn has_no_errors_but(&self, name: &str, codes: &[Code]) {
        for call in &self.calls {
            let expected = call.error.is_none_or(|code| codes.contains(&code));
            assert!(expected && call.is_answered, "{call:?}");
        }
        self.print(name);
    }

    pub fn print(&self, name: &str) {
        let mut answers = BTreeMap::new();
        for call in &self.calls {
            let code = call.error.unwrap_or(Code::Ok);
            *answers.entry(format!("{code:?}")).or_insert(0) += 1;
        }
        let Self { done, not_done, .. } = self;
        println!("{name}: {answers:?}; not answered: {done} done, {not_done} not done");
    }

    /// The longest that a call took.
    pub fn longest(&self) -> Duration {
        let times = self.calls.iter().map(|call| call.ended - call.started);
        times.max().unwrap_or_default()
    }

    /// How long after the database was `back` the first call succeeded. Calls from before the
    /// outage, which began at `gone`, do not count.
    pub fn first_success(&self, gone: Instant, back: Instant) -> Duration {
        let succeeded = self.calls.iter().filter(|call| call.error.is_none());
        let after = succeeded.filter(|call| call.started > gone || call.ended > back);
        let first = after.map(|call| call.ended).min().expect("a success");
        first.saturating_duration_since(back)
    }

    /// How long after the database was `back` the last failed call began, of those that
    /// began before `end`.
    pub fn last_failure(&self, back: Instant, end: Instant) -> Duration {
        let failed = self.calls.iter().filter(|call| call.error.is_some());
        let began = failed.map(|call| call.started).filter(|at| *at < end);
        let last = began.max().unwrap_or(back);
        last.saturating_duration_since(back)
    }
}
