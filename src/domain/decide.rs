//! The decision of every write: a pure function from what is stored and requested to
//! [`Changes`](super::changes::Changes) or an error.

mod steps;
mod tasks;
mod translations;

use uuid::Uuid;

use super::{Result, ids::AccountId, time::Timestamp, violation::Violations};

pub use steps::{
    CreateStep, DeleteStep, ManagedTasks, RestoreStep, StepSlot, StepSnapshot, StepToRestore,
    UpdateStep, linked_import_only,
};
pub use tasks::{DeleteTask, TaskToDelete, UpdateTask, create_task};
pub use translations::{
    StoredTranslation, Translatable, TranslatedTexts, TranslationSnapshot, write_translations,
};

/// Applies the sent fields of an update to the stored task or step. The result is valid only if no
/// violations were added. If nothing is stored, adds the violations that do not depend on it.
pub type SentFields<Stored, New> =
    Box<dyn Fn(Option<&Stored>, &mut Violations) -> Option<Updated<New>> + Send + Sync>;

/// Fails with the violations that do not depend on what is stored.
fn check_sent_fields<Stored, New>(fields: &SentFields<Stored, New>) -> Result<()> {
    let mut violations = Violations::new();
    fields(None, &mut violations);
    Ok(violations.into_result()?)
}

/// An updated task or step, and the sent fields whose values were not applied.
pub type Updated<T> = (T, Vec<&'static str>);

/// What a decision needs in addition to the stored rows and the request.
#[derive(Clone, Debug)]
pub struct WriteContext {
    pub account: AccountId,
    /// The author of the write; empty if the credentials do not name one.
    pub subject: String,
    pub now: Timestamp,
    pub new_id: fn() -> Uuid,
    /// The maximum size of a message. A task or step that could not be returned is refused.
    pub max_message_bytes: usize,
    /// The maximum number of automatic revisions of a task.
    pub automatic_revisions: usize,
    /// Whether deleted tasks keep a history.
    pub keeps_deleted_tasks: bool,
}
