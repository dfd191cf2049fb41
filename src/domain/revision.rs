//! Which state a stored task or step is in.

use super::time::Timestamp;

/// The state of a stored task or step. Every write of it makes the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Counts the states, from 1.
    pub version: i64,
    /// Whether it was written since the external index read it.
    pub dirty: bool,
    /// When the first state was written.
    pub created: Timestamp,
    /// When this state was written.
    pub modified: Timestamp,
}

impl Revision {
    /// The first state.
    pub fn first(now: Timestamp) -> Self {
        Self {
            version: 1,
            dirty: true,
            created: now,
            modified: now,
        }
    }

    /// The state that a write makes of this one.
    pub fn next(self, now: Timestamp) -> Self {
        Self {
            version: self.version + 1,
            dirty: true,
            modified: now,
            ..self
        }
    }
}
