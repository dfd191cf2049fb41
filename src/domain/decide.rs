//! The decision of every write: what is stored and what is asked for become
//! [`Changes`](super::changes::Changes) or an error.

mod steps;
mod tasks;
mod translations;

use uuid::Uuid;

use super::{ids::AccountId, time::Timestamp};

pub use steps::{CreateStep, DeleteStep, ManagedTasks, NewStepSnapshot, StepSnapshot, UpdateStep};
pub use tasks::{DeleteTask, TaskToDelete, UpdateTask, create_task};
pub use translations::{
    StepTranslationSnapshot, StoredOverlay, TaskTranslationSnapshot, TranslationSnapshot,
    write_translations,
};

/// What a decision needs beside what is stored and what is asked for.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// Whose write it is.
    pub account: AccountId,
    /// The time stamp of everything it makes.
    pub now: Timestamp,
    /// Makes ids.
    pub new_id: fn() -> Uuid,
    /// The largest message, in bytes: what could not be returned is not stored.
    pub max_message_bytes: usize,
}
