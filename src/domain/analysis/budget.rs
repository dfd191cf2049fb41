//! The limits of an analysis: work, bytes, and whether the call is over. Work is counted and not
//! timed, so that the same guide gets the same result everywhere.

use std::cell::Cell;

/// Whether an analysis must stop. The analysis checks this often, and returns `None` if it must.
pub type StopSignal<'a> = &'a dyn Fn() -> bool;

/// For an analysis that is never stopped.
pub const NEVER: StopSignal<'static> = &|| false;

/// The work of one decision of the solver. A unit of work is about one node of a formula.
pub const DECISION_WORK: usize = 768;
/// The maximum work of an evaluation: 100,000 decisions.
const MAX_WORK: usize = 100_000 * DECISION_WORK;
/// The maximum work for hints: suggested names, and conditions that contradict each other.
const MAX_HINT_WORK: usize = 20_000_000;

/// What is left of a limit.
pub struct Allowance(Cell<usize>);

impl Allowance {
    pub fn new(limit: usize) -> Self {
        Self(Cell::new(limit))
    }

    /// Takes an amount. If less is left, takes all of it and returns false.
    pub fn spend(&self, amount: usize) -> bool {
        let rest = self.0.get().checked_sub(amount);
        self.0.set(rest.unwrap_or_default());
        rest.is_some()
    }

    pub fn left(&self) -> usize {
        self.0.get()
    }
}

/// What an analysis may still use, and whether it must stop.
pub struct Budget<'a> {
    pub work: Allowance,
    pub hints: Allowance,
    /// Bytes of the result.
    pub bytes: Allowance,
    stop: StopSignal<'a>,
}

impl<'a> Budget<'a> {
    pub fn new(max_bytes: usize, stop: StopSignal<'a>) -> Self {
        Self {
            work: Allowance::new(MAX_WORK),
            hints: Allowance::new(MAX_HINT_WORK),
            bytes: Allowance::new(max_bytes),
            stop,
        }
    }

    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }
}
