//! What bounds an analysis: work and bytes, and a caller who waits for it. Work is counted and not
//! timed, so that the same guide gets the same answer everywhere.

use std::cell::Cell;

/// Whether an analysis is to stop. The analysis asks often, and then returns nothing.
pub type StopSignal<'a> = &'a dyn Fn() -> bool;

/// For an analysis that always runs to its end.
pub const NEVER: StopSignal<'static> = &|| false;

/// The work of one decision of the solver. A unit of work is about a node of a formula.
pub const DECISION_WORK: usize = 768;
/// The most work of an evaluation: 100,000 decisions.
const MAX_WORK: usize = 100_000 * DECISION_WORK;
/// The most work for hints: names that are probably meant, and conditions that contradict.
const MAX_HINT_WORK: usize = 20_000_000;

/// What is left of a limit.
pub struct Allowance(Cell<usize>);

impl Allowance {
    pub fn new(limit: usize) -> Self {
        Self(Cell::new(limit))
    }

    /// Takes some of what is left. If it is not enough, returns false, and nothing is left.
    pub fn spend(&self, amount: usize) -> bool {
        let rest = self.0.get().checked_sub(amount);
        self.0.set(rest.unwrap_or_default());
        rest.is_some()
    }

    pub fn left(&self) -> usize {
        self.0.get()
    }
}

/// What an analysis may still take, and whether anybody waits for it.
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
