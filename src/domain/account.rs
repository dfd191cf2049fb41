//! The summary of an account for operators.

use super::time::Timestamp;

/// How much data an account has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: String,
    /// The number of tasks, including managed tasks.
    pub tasks: i64,
    pub steps: i64,
    /// Bytes of tasks, steps and revisions, without indexes.
    pub bytes: i64,
    /// When a task or step was last changed, a task was deleted, or a revision was created; `None`
    /// if none of these happened.
    pub last_change: Option<Timestamp>,
}
