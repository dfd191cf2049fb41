//! Errors of a call: one variant for each reaction of a caller.

use std::{borrow::Cow, fmt};

use super::{
    external_id::{ExternalId, TakenId},
    history::{RevisionAlias, RevisionName},
    ids::{RequestId, RoleId, StepId, TaskId},
    translation_work::ResourceId,
    violation::{Path, Reason, Violation, Violations},
};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the request is invalid")]
    Invalid(Violations),
    #[error("not found")]
    NotFound {
        missing: Missing,
        /// The path of the request's field that names it, such as `step.subtask_id`.
        field: Cow<'static, str>,
    },
    #[error("the external id is taken")]
    ExternalIdTaken(TakenId),
    #[error("the state of the resource forbids it")]
    Precondition(Precondition),
    #[error("the resource has changed")]
    EtagMismatch(ResourceId),
    #[error("the guide has changed")]
    GuideEtagMismatch(TaskId),
    /// The caller sent an etag of the guide of a task that was deleted.
    #[error("a deleted guide has no etag")]
    EtagOfDeletedGuide(TaskId),
    /// The work was stopped, as the call is over: its deadline has passed, or its caller has gone.
    #[error("the call is over")]
    CallOver,
    /// Concurrent writes conflicted with the call, which was rolled back.
    #[error("conflict with concurrent writes")]
    WriteConflict(Contention),
    #[error("the {resource} has more than {limit} bytes")]
    TooLarge {
        resource: SizedResource,
        limit: usize,
    },
    /// What the call needs does not fit into memory beside other calls. Nothing was written.
    #[error("the server is overloaded")]
    Overloaded,
    #[error("the database is unavailable: {0:?}")]
    Unavailable(Outage),
    /// An error of the service itself. The text is a fixed class, never driver text.
    #[error("internal error: {0}")]
    Internal(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    Changed,
    /// Others held a lock that it needs.
    Locked,
}

/// A resource that the account does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Task(TaskId),
    TaskWithExternalId(ExternalId),
    Step(StepId),
    /// The account may have the step, but the task does not.
    StepOfTask(StepId),
    Role(RoleId),
    Revision(TaskId, RevisionName),
}

/// What is limited by the largest message, or by the memory of all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizedResource {
    Task,
    Step,
    Guide,
    /// What an analysis reads of a guide: all texts except bodies.
    AnalyzedGuide,
    Call,
}

impl fmt::Display for SizedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task => "task",
            Self::Step => "step",
            Self::Guide => "guide",
            Self::AnalyzedGuide => "guide without bodies",
            Self::Call => "call",
        })
    }
}

/// Why the database cannot serve a call. A write was rolled back, except after
/// [`Outage::OutcomeUnknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// It does not answer, or closed the connection.
    Unreachable,
    /// There was no connection in time: it accepts none, or all are in use.
    NoConnection,
    /// A read waited too long for a lock, or a write for its turn on SQLite.
    Locked,
    /// It is a standby, or set to read-only.
    ReadOnly,
    Full,
    Disk,
    /// The connection was lost at COMMIT, so the write may or may not be committed.
    OutcomeUnknown,
    /// It cancelled a statement, after its `statement_timeout` or as an administrator asked.
    StatementTimeout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    LinkedImportOnly {
        paths: Vec<String>,
        /// Whether they are new values of a question that is linked already.
        new_values: bool,
    },
    TaskHasSteps {
        task: TaskId,
    },
    TaskReferenced {
        task: TaskId,
        /// The first of the steps, at most [`Precondition::MAX_LISTED_STEPS`].
        by: Vec<StepId>,
    },
    TaskManaged {
        task: TaskId,
        by: Option<StepId>,
    },
    /// The step is the wiring step of a managed task.
    StepManaged {
        step: StepId,
        task: TaskId,
    },
    /// A re-import leaves out steps without a policy for them.
    AbsentSteps {
        steps: Vec<StepId>,
    },
    RequestIdReused {
        id: RequestId,
    },
    /// Subtask steps of a revision refer to tasks that are gone.
    MissingSubtasks {
        steps: Vec<StepId>,
    },
    /// A deleted subtask step refers to a task that is gone.
    MissingSubtask {
        step: StepId,
        task: TaskId,
    },
    /// Changes behind a cursor are no longer kept, or the database is not what it was.
    CursorExpired,
    RevisionInUse {
        task: TaskId,
        number: i64,
        alias: RevisionAlias,
    },
}

impl Precondition {
    pub const MAX_LISTED_STEPS: usize = 20;
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
    pub fn not_found(missing: Missing, field: impl Into<Cow<'static, str>>) -> Self {
        let field = field.into();
        Self::NotFound { missing, field }
    }

    pub fn task_not_found(id: TaskId, field: impl Into<Cow<'static, str>>) -> Self {
        Self::not_found(Missing::Task(id), field)
    }

    pub fn step_not_found(id: StepId, field: impl Into<Cow<'static, str>>) -> Self {
        Self::not_found(Missing::Step(id), field)
    }

    pub fn invalid(path: &Path<'_>, reason: Reason, description: impl Into<String>) -> Self {
        Self::Invalid(Violation::new(path, reason, description).into())
    }
}
