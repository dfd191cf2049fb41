//! The history of guides: revisions, which keep earlier states of a guide.

use std::{collections::BTreeMap, fmt};

use strum_macros::FromRepr;

use super::{
    decide::WriteContext,
    etag::GuideEtag,
    ids::{ProductId, StepId, TaskId},
    import::{Document, TaskTree},
    text::{BoundedText, Name},
    time::Timestamp,
    translation::Language,
    translation_work::SourceDigest,
};

mod edits;

pub use edits::{
    HistoryChange, HistoryEdit, HistoryState, NewRevision, NewestRevision, RevisionAliases,
    RevisionContent, check_requested_count, revision_aliases, set_alias,
};

pub const MAX_REQUESTED_REVISIONS: usize = 1_000;
pub const MAX_REVISION_ALIASES: usize = 20;
pub const MAX_NOTE_CHARS: usize = 1_000;

/// A note by the author of a revision.
pub type Note = BoundedText<MAX_NOTE_CHARS>;

/// The name of a revision of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevisionAlias(String);

impl RevisionAlias {
    pub const MAX: usize = 64;

    /// Accepts 1 to 64 characters of `a-z 0-9 . _ -` that begin with a letter.
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        let valid = text.len() <= Self::MAX
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(is_valid);
        valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a caller names a revision of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevisionName {
    Number(i64),
    /// A number that no revision has, because it is larger than a revision's number can be.
    LargerNumber(String),
    Alias(RevisionAlias),
}

impl RevisionName {
    /// Parses decimal digits or an alias.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if is_number {
            let number = text.parse().map(Self::Number);
            Some(number.unwrap_or_else(|_| Self::LargerNumber(text.to_owned())))
        } else {
            RevisionAlias::parse(text).map(Self::Alias)
        }
    }
}

impl fmt::Display for RevisionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::LargerNumber(digits) => f.write_str(digits),
            Self::Alias(alias) => f.write_str(alias.as_str()),
        }
    }
}

/// Why a revision was made, with the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i32)]
pub enum RevisionCause {
    /// A caller asked for it.
    Requested = 1,
    /// An import changed the guide afterwards.
    BeforeImport = 2,
    /// A restore changed the guide afterwards.
    BeforeRestore = 3,
    /// The task was deleted afterwards.
    BeforeDelete = 4,
    Published = 5,
    /// A change of the guide followed, and the newest revision was old.
    Checkpoint = 6,
}

/// A revision without its guide.
#[derive(Clone, Debug)]
pub struct TaskRevision {
    pub task: TaskId,
    pub number: i64,
    pub cause: RevisionCause,
    pub note: Note,
    /// The author; empty if the credentials do not name one.
    pub subject: String,
    pub created: Timestamp,
    pub task_name: Name,
    pub product: ProductId,
    /// The number of steps of the task, without the steps of managed tasks.
    pub step_count: i64,
    /// The bytes of the stored guide.
    pub size: i64,
    /// The aliases that name it, sorted.
    pub aliases: Vec<RevisionAlias>,
    pub guide_etag: GuideEtag,
}

#[derive(Clone, Debug)]
pub struct DeletedTask {
    pub latest: TaskRevision,
    pub deleted: DeletedBy,
}

#[derive(Clone, Debug)]
pub struct DeletedBy {
    pub at: Timestamp,
    /// Who deleted it; empty if the credentials do not name a subject.
    pub subject: String,
}

/// The texts that a step's translation was made from: the title, and the digest of the other texts.
pub type StepSource = (String, SourceDigest);

/// The texts that translations were made from.
#[derive(Clone, Debug, Default)]
pub struct TranslatedFrom {
    pub tasks: BTreeMap<(TaskId, Language), String>,
    pub steps: BTreeMap<(StepId, Language), StepSource>,
}

impl TranslatedFrom {
    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.steps.is_empty()
    }
}

/// A guide as it is kept in a revision.
#[derive(Clone, Debug)]
pub struct KeptGuide {
    pub tree: TaskTree,
    /// What its outdated translations were made from. Other translations were made from the current
    /// texts.
    pub outdated: TranslatedFrom,
}

/// The document of a revision.
#[derive(Debug)]
pub struct KeptDocument {
    pub document: Document,
    /// What its outdated translations were made from.
    pub outdated: TranslatedFrom,
}

impl KeptGuide {
    /// The guide, unless it is too large to be exported.
    pub fn if_exportable(self, context: &WriteContext) -> Option<Self> {
        (self.tree.bytes() <= context.max_message_bytes).then_some(self)
    }
}

/// A guide as the database stores it.
#[derive(Clone, Debug)]
pub struct EncodedGuide {
    pub content: Vec<u8>,
    /// The bytes of the document before compression.
    pub document_bytes: usize,
}

/// Encodes and decodes the guides of revisions.
#[derive(Clone, Copy, Debug)]
pub struct GuideCodec {
    /// Encodes a guide; `None` if the compression fails.
    pub encode: fn(KeptGuide) -> Option<EncodedGuide>,
    /// Decodes a guide; `None` if the bytes are not a guide.
    pub decode: fn(&EncodedGuide) -> Option<KeptDocument>,
}
