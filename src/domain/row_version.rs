//! Revisions of tasks and steps.

use super::time::Timestamp;

/// The version of a task or step. Every update creates the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowVersion {
    /// The version, from 1.
    pub version: i64,
    /// Whether it was changed after the external index read it.
    pub dirty: bool,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time of its last update.
    pub modified: Timestamp,
}

impl RowVersion {
    /// The version of a new task or step.
    pub fn first(now: Timestamp) -> Self {
        Self {
            version: 1,
            dirty: true,
            created: now,
            modified: now,
        }
    }

    /// The version after an update.
    pub fn next(self, now: Timestamp) -> Self {
        Self {
            version: self.version + 1,
            dirty: true,
            modified: now,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_within_the_same_instant_has_a_higher_version() {
        let now = Timestamp(7);
        let first = RowVersion::first(now);
        let second = first.next(now);
        assert!(second.version > first.version);
        assert!(second.next(now).version > second.version);
    }
}
