//! What an operator sees of an account.

use super::time::Timestamp;

/// How much an account has in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSummary {
    pub account: String,
    /// Tasks, managed ones included.
    pub tasks: i64,
    pub steps: i64,
    /// Bytes of tasks, steps and revisions, without indexes.
    pub bytes: i64,
    /// When a task or step was last changed or a task deleted, or a revision made; `None` if there
    /// was none of these.
    pub last_change: Option<Timestamp>,
}
