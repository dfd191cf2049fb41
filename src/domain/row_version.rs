//! Versions of tasks and steps.

use super::{decide::WriteContext, time::Timestamp};

/// The version of a task or step. Every update creates the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowVersion {
    /// A number that the task or step never had before.
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

    /// The first version after a deletion. Its number is the current time in microseconds, which is
    /// larger than any number of writes, plus a random part, because the clock may be set back.
    pub fn after_deletion(created: Timestamp, context: &WriteContext) -> Self {
        Self {
            version: context.now.0.saturating_add(random_part(context)),
            created,
            ..Self::first(context.now)
        }
    }

    /// The version after an update. The random part keeps it from repeating a version that a dry run
    /// returned, or that existed before a deletion.
    pub fn next(self, context: &WriteContext) -> Self {
        Self {
            version: self.version.saturating_add(1 + random_part(context)),
            dirty: true,
            modified: context.now,
            ..self
        }
    }
}

/// At most 32 bits, so that a row has room for billions of updates.
fn random_part(context: &WriteContext) -> i64 {
    let random = (context.new_id)().as_u128() & u128::from(u32::MAX);
    i64::try_from(random).unwrap_or_default()
}
