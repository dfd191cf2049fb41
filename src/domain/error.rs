//! How a call can fail, one variant for each thing that a caller does about it.

use super::{
    ids::{RequestId, RoleId, StepId, TaskId},
    violation::{Path, Reason, Violation, Violations},
};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How a call can fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong; the caller mends it.
    #[error("the request is invalid")]
    Invalid(Violations),
    /// The account has no such task.
    #[error("task not found")]
    TaskNotFound(TaskId),
    /// The account has no such step.
    #[error("step not found")]
    StepNotFound(StepId),
    /// The account has no such role.
    #[error("role not found")]
    RoleNotFound(RoleId),
    /// The state of things forbids it; the caller changes that first.
    #[error("the state of the resource forbids it")]
    Precondition(Precondition),
    /// The resource changed since the caller read it.
    #[error("the resource has changed")]
    EtagMismatch,
    /// Lost against concurrent writes and rolled back whole.
    #[error("lost against concurrent writes")]
    WriteConflict,
    /// The resource as written could not be returned.
    #[error("the resource would pass {limit} bytes")]
    TooLarge {
        /// The largest message, in bytes.
        limit: usize,
    },
    /// The database cannot serve the call at present.
    #[error("the database is unavailable: {0:?}")]
    Unavailable(Outage),
    /// An error of the service itself. The text is a fixed class, never driver text.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What keeps the database from serving. All but [`Outage::Undecided`] leave
/// nothing of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It does not answer, or ended the connection.
    Away,
    /// It gave no connection in time: it takes none, or all were in use.
    Busy,
    /// It takes no writes: a standby, or a database set to be read-only.
    ReadOnly,
    /// There is no room for what was to be written.
    Full,
    /// Its disk cannot be read or written.
    Disk,
    /// The connection was lost at COMMIT: the write was done or was not.
    Undecided,
}

/// What the state of things forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Links are made by an import only.
    LinkedImportOnly {
        /// Where the request asks for one.
        path: String,
    },
    /// The task still has steps.
    TaskHasSteps {
        /// The task.
        task: TaskId,
    },
    /// Subtask steps of other tasks refer to the task.
    TaskReferenced {
        /// The task.
        task: TaskId,
        /// The first of the steps, at most [`Precondition::REFERRING_STEPS_MAX`].
        by: Vec<StepId>,
    },
    /// An observation manages the task.
    TaskManaged {
        /// The task.
        task: TaskId,
    },
    /// The step wires a managed task.
    StepManaged {
        /// The step.
        step: StepId,
    },
    /// A re-import leaves out steps and does not say what becomes of them.
    AbsentSteps {
        /// The steps.
        steps: Vec<StepId>,
    },
    /// The id was used before with another payload.
    RequestIdReused {
        /// The id.
        id: RequestId,
    },
}

impl Precondition {
    /// How many referring steps an answer names.
    pub const REFERRING_STEPS_MAX: usize = 20;
}

impl From<Violations> for Error {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

impl From<Precondition> for Error {
    fn from(precondition: Precondition) -> Self {
        Self::Precondition(precondition)
    }
}

impl Error {
    /// A single violation.
    pub fn invalid(path: &Path<'_>, reason: Reason, description: impl Into<String>) -> Self {
        Self::Invalid(Violation::new(path, reason, description).into())
    }
}
