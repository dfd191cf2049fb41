//! The work of an external index: what it still has to read, and what it says that it holds.

use serde::{Deserialize, Serialize};
use strum_macros::FromRepr;
use uuid::Uuid;

use super::{ids::TaskId, text::BoundedText};

pub const MAX_ACKNOWLEDGED_ITEMS: usize = 500;
pub const MAX_INDEX_INFO_CHARS: usize = 4_000;

pub type IndexInfo = BoundedText<MAX_INDEX_INFO_CHARS>;

/// The kind of an item of work, with the numbers of the API, in the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromRepr)]
#[repr(i32)]
pub enum IndexKind {
    Task = 1,
    Step = 2,
}

/// The values are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexWorkState {
    /// The index has not acknowledged the task or step.
    New = 1,
    Changed = 2,
    /// The index may hold the task or step, which was deleted.
    Deleted = 3,
}

/// A task or step that the index has to read or to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexWork {
    pub guid: Uuid,
    pub kind: IndexKind,
    pub task: TaskId,
    pub state: IndexWorkState,
    /// The etag, or the mark of the deletion.
    pub etag: String,
    /// Whether the task or step was listed before. A deletion is listed only if it was, or if the
    /// index holds it.
    pub listed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexPart {
    Tasks = 0,
    Steps = 1,
    Deletions = 2,
}

impl IndexPart {
    pub const ALL: [Self; 3] = [Self::Tasks, Self::Steps, Self::Deletions];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCursor {
    pub part: IndexPart,
    pub guid: Uuid,
}

#[derive(Clone, Debug)]
pub struct Acknowledgement {
    pub guid: Uuid,
    pub etag: String,
    pub indexed: bool,
    pub index_version: i64,
    pub info: IndexInfo,
}

/// The values are those of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgeOutcome {
    Acknowledged = 1,
    Stale = 2,
    NotFound = 3,
}
