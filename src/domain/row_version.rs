//! Revisions of tasks and steps.

use super::time::Timestamp;

/// The version of a task or step. Every update creates the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowVersion {
    pub version: i64,
    /// Whether it was changed after the external index read it.
    pub dirty: bool,
    pub created: Timestamp,
    pub modified: Timestamp,
}

impl RowVersion {
    pub fn first(now: Timestamp) -> Self {
        Self {
            version: 1,
            dirty: true,
            created: now,
            modified: now,
        }
    }

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
