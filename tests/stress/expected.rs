//! The expected state: what the service must hold after the writes of some writers,
//! each of which was acknowledged, refused or not answered.
//!
//! Each writer alone works on its workspaces, so that it knows what they hold. Every
//! acknowledged write must be there, every unanswered one whole or not at all, and
//! nothing else.

mod choose;
mod drafts;
mod errors;
mod matching;
mod observed;
mod workspace;
mod write;
mod writer;

pub(crate) use self::errors::retry_while_unavailable;
pub use self::{
    drafts::task as task_draft,
    errors::{RetryLoop, WriteError, write_error},
    observed::ObservedState,
    write::{Write, WriteResponse},
    writer::{UnansweredOutcome, Writer, verify},
};
