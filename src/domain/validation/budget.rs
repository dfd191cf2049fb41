//! Work limits of a validation. Counted, not timed, so results are deterministic.

use std::cell::Cell;

use crate::domain::analysis::StopSignal;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Findings that are made, those that the caller suppresses included.
    Findings,
    /// Bytes of findings.
    FindingBytes,
    /// Candidates and pairs of characters that are compared to suggest names.
    Suggestions,
    /// Values and targets that are looked up to find the classes of values.
    Lookups,
    /// Decisions of the solver.
    Decisions,
    /// Nodes and operands of formulas that the solver is given.
    Nodes,
    /// Classes of values that are looked at to find conflicts.
    Conflicts,
}

/// The most of each work.
const LIMITS: [(Work, usize); 7] = [
    (Work::Findings, 300_000),
    (Work::FindingBytes, 32 * 1024 * 1024),
    (Work::Suggestions, 20_000_000),
    (Work::Lookups, 3_000_000),
    (Work::Decisions, 100_000),
    (Work::Nodes, 10_000_000),
    (Work::Conflicts, 20_000_000),
];

/// The work that is left, and whether anybody still waits for it.
#[derive(Debug)]
pub struct Budget<'a> {
    left: [(Work, Cell<usize>); 7],
    stop: StopSignal<'a>,
}

impl<'a> Budget<'a> {
    pub fn new(stop: StopSignal<'a>) -> Self {
        Self {
            left: LIMITS.map(|(work, limit)| (work, Cell::new(limit))),
            stop,
        }
    }

    /// Takes some of what is left. If it is not enough, returns false, and nothing is left.
    pub fn spend(&self, work: Work, amount: usize) -> bool {
        let left = self.left_of(work);
        let rest = left.get().checked_sub(amount);
        left.set(rest.unwrap_or_default());
        rest.is_some()
    }

    pub fn is_spent(&self, work: Work) -> bool {
        self.left_of(work).get() == 0
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_given()
    }

    #[cfg(test)]
    pub fn with(self, work: Work, left: usize) -> Self {
        self.left_of(work).set(left);
        self
    }

    #[cfg(test)]
    pub fn left(&self, work: Work) -> usize {
        self.left_of(work).get()
    }

    #[expect(clippy::expect_used, reason = "every kind of work has a limit")]
    fn left_of(&self, work: Work) -> &Cell<usize> {
        let mut left = self.left.iter();
        let (_, left) = left.find(|(one, _)| *one == work).expect("a limit");
        left
    }
}
