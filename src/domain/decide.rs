//! The decision of every write: a pure function from what is stored and requested to
//! [`Changes`](super::changes::Changes) or an error.

mod steps;
mod tasks;
mod translations;

use uuid::Uuid;

use super::{ids::AccountId, time::Timestamp};

pub use steps::{
    CreateStep, DeleteStep, ManagedTasks, NewStepSnapshot, StepSnapshot, StepToDelete, UpdateStep,
};
pub use tasks::{DeleteTask, TaskToDelete, TaskToUpdate, UpdateTask, create_task};
pub use translations::{
    StepTranslationSnapshot, StoredTranslation, TaskTranslationSnapshot, TranslationSnapshot,
    write_translations,
};

/// What a decision needs beside the stored rows and the request.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// The account that writes.
    pub account: AccountId,
    /// Who writes; empty if the credentials do not say.
    pub subject: String,
    /// The time of the write.
    pub now: Timestamp,
    /// Generates ids.
    pub new_id: fn() -> Uuid,
    /// The largest message, in bytes. A task or step that could not be returned is refused.
    pub max_message_bytes: usize,
    /// Most revisions of a task that are made without a request.
    pub automatic_revisions: usize,
    /// Whether deleted tasks keep a history.
    pub keeps_deleted_tasks: bool,
}
