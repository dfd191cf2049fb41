//! The work of an external index: what it has still to read, and what it says it holds.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ids::TaskId, text::BoundedText};

/// Most items of an acknowledgement.
pub const MAX_ACKNOWLEDGED_ITEMS: usize = 500;
/// Longest text of an index about a task, in code points.
pub const MAX_INDEX_INFO_CHARS: usize = 4_000;

/// The text of an index about a task.
pub type IndexInfo = BoundedText<MAX_INDEX_INFO_CHARS>;

/// What a piece of work is about, with the numbers of the contract, in the order of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexKind {
    /// A task.
    Task = 1,
    /// A step.
    Step = 2,
}

impl IndexKind {
    /// The kind of a number.
    pub fn from_number(number: i32) -> Option<Self> {
        [Self::Task, Self::Step]
            .into_iter()
            .find(|kind| kind.number() == number)
    }

    /// The number.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// Why there is work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexWorkState {
    /// The index does not hold it.
    New,
    /// It changed since the index read it.
    Changed,
    /// The index holds it, and it is gone.
    Deleted,
}

/// A task or step that the index has to read or to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexWork {
    /// The id of the task or step.
    pub guid: Uuid,
    /// Which of the two it is.
    pub kind: IndexKind,
    /// The task, or the task of the step.
    pub task: TaskId,
    /// Why there is work.
    pub state: IndexWorkState,
    /// The etag, or the mark of the deletion.
    pub etag: String,
}

/// The parts of the listing of work, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexPart {
    /// Tasks.
    Tasks = 0,
    /// Steps.
    Steps = 1,
    /// Deleted tasks and steps.
    Deletions = 2,
}

impl IndexPart {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Tasks, Self::Steps, Self::Deletions];
}

/// Where a page of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCursor {
    /// The part of the listing.
    pub part: IndexPart,
    /// The last id of it.
    pub guid: Uuid,
}

/// What the index says of a task or step.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    /// The id of the task or step.
    pub guid: Uuid,
    /// The etag of the state that was indexed.
    pub etag: String,
    /// Whether the index holds it now.
    pub indexed: bool,
    /// The version that the index gave it.
    pub index_version: i64,
    /// What it says about it.
    pub info: IndexInfo,
}

/// The result of one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgeOutcome {
    /// It is no work any more.
    Acknowledged,
    /// It was written since.
    Stale,
    /// It is not there.
    NotFound,
}
