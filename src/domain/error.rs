//! Errors of a call: one variant for each way in which a caller can react. The texts of
//! preconditions, etags, conflicts and outages are also the messages of their statuses.

use std::borrow::Cow;

use strum_macros::{FromRepr, IntoStaticStr};

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
    #[error("{0}")]
    Precondition(Precondition),
    #[error("{0}: its etag is not the one sent; read it again")]
    EtagMismatch(ResourceId),
    #[error(
        "the guide of task {0}: its guide_etag is not the one sent; read it again with ExportTask"
    )]
    GuideEtagMismatch(TaskId),
    /// The caller sent an etag of the guide of a task that was deleted.
    #[error("guide_etag must be empty: task {0} was deleted, and a deleted guide has none")]
    EtagOfDeletedGuide(TaskId),
    /// The work was stopped because the call is over: its deadline has passed, or its caller has
    /// gone.
    #[error("the call is over")]
    CallOver,
    /// Concurrent writes conflicted with the call, which was rolled back.
    #[error("{0}; nothing was written, retry")]
    WriteConflict(Contention),
    #[error("{resource:?} has more than {limit} bytes")]
    TooLarge {
        resource: SizedResource,
        limit: usize,
    },
    /// The server has no capacity for the call. Nothing was written.
    #[error("the server is overloaded: {0}")]
    Overloaded(Overload),
    #[error("{0}")]
    Unavailable(Outage),
    /// A bug or corrupt data. The text is one of a fixed set, never the driver's text.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What the server lacks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, IntoStaticStr, thiserror::Error)]
#[repr(u8)]
#[strum(serialize_all = "snake_case")]
pub enum Overload {
    #[error("other calls hold the memory that this one needs")]
    Memory,
    #[error("too many calls are in progress")]
    QueueFull,
    #[error("the call has waited too long for its turn")]
    QueueTimeout,
    #[error("the system has no thread left for an analysis")]
    Threads,
    #[error("too many calls wait for changes")]
    WaitsFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contention {
    #[error("concurrent writes changed the resource")]
    Changed,
    #[error("another write or session of the database held a lock for too long")]
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

/// What is limited by the maximum message size, or by the memory for all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizedResource {
    Task,
    Step,
    Guide,
    /// What an analysis reads of a guide: all texts except bodies.
    AnalyzedGuide,
    Call,
}

/// Why the database cannot serve a call. A write was rolled back, except after
/// [`Outage::OutcomeUnknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Outage {
    /// It may also have closed the connection.
    #[error("the database does not respond")]
    Unreachable,
    /// The database accepts no connections, or all connections are in use.
    #[error("no connection to the database was free in time")]
    NoConnection,
    /// A read waited too long for a lock, or a write waited too long for its turn on SQLite.
    #[error(
        "the database stayed locked by another process or session for too long, so nothing was done: try \
         again later"
    )]
    Locked,
    /// It is a standby, or set to read-only.
    #[error("the database does not currently accept writes")]
    ReadOnly,
    #[error("the database has no space for the write")]
    Full,
    #[error("the database cannot read or write its disk")]
    Disk,
    #[error(
        "the connection to the database was lost during the commit, so the write may have been done: repeat \
         a create or import with the same `request_id`; after another write, read and compare"
    )]
    OutcomeUnknown,
    /// After its `statement_timeout`, or as an administrator asked.
    #[error("the database ended a statement that took too long")]
    StatementTimeout,
}

/// How to make a task unmanaged, and then delete it.
const UNLINK: &str = "Update that observation first: set `linked` in its `feedback_config` to \
                      false, or remove the answer whose `link` is the task. The task and its step \
                      stay: delete the step, then the task";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Precondition {
    #[error("only ImportTask creates links. Import the guide with `linked`, or leave it out")]
    LinkedImportOnly { path: String },
    #[error(
        "a linked observation has a new answer: only ImportTask creates links. Import the guide with it, or \
         leave it out"
    )]
    NewLinkedValues { paths: Vec<String> },
    #[error("task {task} has steps; set `force` to delete them too")]
    TaskHasSteps { task: TaskId },
    #[error(
        "subtask steps of other tasks refer to task {task}: delete them first, or have them refer to another \
         task"
    )]
    TaskReferenced {
        task: TaskId,
        /// The first steps, at most [`Precondition::MAX_LISTED_STEPS`].
        by: Vec<StepId>,
    },
    #[error("{} manages task {task}. {UNLINK}", observation(*by))]
    TaskManaged { task: TaskId, by: Option<StepId> },
    /// The step is the wiring step of a managed task.
    #[error(
        "step {step} refers to task {task}, which an observation of its task manages. {UNLINK}"
    )]
    StepManaged { step: StepId, task: TaskId },
    /// A re-import leaves out steps without a policy for them.
    #[error("{}", absent_steps(steps.len()))]
    AbsentSteps { steps: Vec<StepId> },
    #[error("request_id {id} was already used for a different request: use a new id")]
    RequestIdReused { id: RequestId },
    /// Subtask steps of a revision refer to tasks that are gone.
    #[error("{}", missing_subtasks(steps.len()))]
    MissingSubtasks { steps: Vec<StepId> },
    /// A deleted subtask step refers to a task that is gone.
    #[error(
        "step {step} refers to task {task}, which was deleted: restore that task first, if it still has a revision"
    )]
    MissingSubtask { step: StepId, task: TaskId },
    #[error(
        "changes after the cursor are no longer kept, or the database was restored to an earlier \
         state: get a new cursor with `start` CHANGE_START_NOW, then read everything once"
    )]
    CursorExpired,
    #[error(
        "revision {number} of task {task} has the alias {}: remove it first, or set it on another revision",
        alias.as_str()
    )]
    RevisionInUse {
        task: TaskId,
        number: i64,
        alias: RevisionAlias,
    },
}

fn observation(step: Option<StepId>) -> String {
    match step {
        Some(step) => format!("observation {step}"),
        None => "an observation".to_owned(),
    }
}

fn absent_steps(count: usize) -> String {
    let (steps, them) = match count {
        1 => ("step", "it"),
        _ => ("steps", "them"),
    };
    let shown = Precondition::MAX_LISTED_STEPS;
    let cut = if count > shown {
        format!(" (the first {shown} are shown)")
    } else {
        String::new()
    };
    format!(
        "the document does not list {count} {steps} of the task{cut}; set `absent_steps` to keep \
         or delete {them}"
    )
}

fn missing_subtasks(count: usize) -> String {
    let steps = match count {
        1 => "subtask step of the revision refers to a deleted task",
        _ => "subtask steps of the revision refer to deleted tasks",
    };
    format!(
        "{count} {steps}: restore what was deleted, or set `skip_missing_subtasks` to leave the \
         steps out"
    )
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
