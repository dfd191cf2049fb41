//! The history of guides: revisions, which keep a guide as it was.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use strum_macros::FromRepr;

use super::{
    decide::WriteContext,
    etag::GuideEtag,
    ids::{ProductId, StepId, TaskId},
    import::{Document, TaskTree},
    step::Step,
    task::Task,
    text::{BoundedText, Name},
    time::Timestamp,
    translation::Language,
    translation_work::SourceDigest,
};

mod edits;

pub use edits::{
    HistoryChange, HistoryEdit, HistoryState, NewRevision, NewestRevision, RequestedRevision,
    RevisionAliases, RevisionContent, aliases_of, check_requested_count, set_alias,
};

pub const MAX_REQUESTED_REVISIONS: usize = 1_000;
pub const MAX_REVISION_ALIASES: usize = 20;
pub const MAX_NOTE_CHARS: usize = 1_000;

/// What the author of a revision has noted.
pub type Note = BoundedText<MAX_NOTE_CHARS>;

/// The name of a revision of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevisionAlias(String);

impl RevisionAlias {
    pub const MAX: usize = 64;

    /// Accepts 1 to 64 of `a-z 0-9 . _ -`, the first a letter.
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
    Alias(RevisionAlias),
}

impl RevisionName {
    /// Parses decimal digits or an alias.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match is_number {
            // A larger number is that of no revision.
            true => Some(Self::Number(text.parse().unwrap_or(i64::MAX))),
            false => RevisionAlias::parse(text).map(Self::Alias),
        }
    }
}

impl fmt::Display for RevisionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Alias(alias) => f.write_str(alias.as_str()),
        }
    }
}

/// Why a revision was made, with the numbers of the contract.
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
    /// Who made it; empty if the credentials do not say.
    pub subject: String,
    pub created: Timestamp,
    pub task_name: Name,
    pub product: ProductId,
    /// How many steps the task had, those of managed tasks not counted.
    pub step_count: i64,
    /// The bytes of the stored guide.
    pub size: i64,
    /// The aliases that name it, in their order.
    pub aliases: Vec<RevisionAlias>,
    pub guide_etag: GuideEtag,
}

#[derive(Clone, Debug)]
pub struct DeletedTask {
    pub latest: TaskRevision,
    pub deleted: DeletedBy,
}

/// A place in the list of deleted tasks: behind the task that was deleted at this time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DeletedTaskCursor {
    /// When it was deleted.
    pub deleted: Timestamp,
    pub task: TaskId,
}

impl DeletedTask {
    /// Its place in the list.
    pub fn cursor(&self) -> DeletedTaskCursor {
        DeletedTaskCursor {
            deleted: self.deleted.at,
            task: self.latest.task,
        }
    }
}

#[derive(Clone, Debug)]
pub struct DeletedBy {
    pub at: Timestamp,
    /// Who; empty if the credentials do not say.
    pub subject: String,
}

/// The texts that a step's translation was made from: the title, and the digest of the others.
pub type StepSource = (String, SourceDigest);

/// The texts that translations were made from.
#[derive(Clone, Debug, Default)]
pub struct TranslatedFrom {
    pub tasks: BTreeMap<(TaskId, Language), String>,
    pub steps: BTreeMap<(StepId, Language), StepSource>,
}

impl TranslatedFrom {
    /// Whether it is about no translation.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.steps.is_empty()
    }
}

/// A guide as it is kept in a revision.
#[derive(Clone, Debug)]
pub struct KeptGuide {
    pub tree: TaskTree,
    /// What its outdated translations were made from. The others were made from the present
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
    /// The guide after an update of its task. Subtask steps that refer to the task have its new
    /// name then.
    pub fn after_update(mut self, task: &Task, context: &WriteContext) -> Self {
        let (guid, former) = (
            task.guid,
            std::mem::replace(&mut self.tree.task, task.clone()),
        );
        for (language, translation) in &task.content.translations {
            let key = (guid, language.clone());
            let same_name = former.content.translations.get(language);
            let same_name = same_name.filter(|before| before.name == translation.name);
            // A new text is made from the new name.
            let source = same_name.map(|_| {
                let outdated = self.outdated.tasks.remove(&key);
                outdated.unwrap_or_else(|| former.name.as_str().to_owned())
            });
            match source.filter(|source| source != task.name.as_str()) {
                Some(source) => self.outdated.tasks.insert(key, source),
                None => self.outdated.tasks.remove(&key),
            };
        }
        let outdated = &mut self.outdated.steps;
        let mut trees = vec![&mut self.tree];
        while let Some(tree) = trees.pop() {
            let refers = |step: &&mut Step| step.kind.subtask().is_some_and(|to| to.task == guid);
            for step in tree.steps.iter_mut().filter(refers) {
                if step.title == task.name.as_str() {
                    continue;
                }
                for language in step.content.translations.keys() {
                    let own = || (step.title.clone(), SourceDigest::for_step_content(step));
                    let key = (step.guid, language.clone());
                    outdated.entry(key).or_insert_with(own);
                }
                task.name.as_str().clone_into(&mut step.title);
                step.row_version = step.row_version.next(context);
            }
            trees.extend(tree.managed.values_mut());
        }
        self
    }

    /// The guide, unless it is too large to be exported.
    pub fn if_exportable(self, context: &WriteContext) -> Option<Self> {
        (self.tree.bytes() <= context.max_message_bytes).then_some(self)
    }
}

/// A guide as bytes, as the database keeps it.
#[derive(Clone, Debug)]
pub struct EncodedGuide {
    pub content: Vec<u8>,
    /// The bytes of the document before it was compressed.
    pub document_bytes: usize,
}

/// Encodes guides of revisions, and decodes them.
#[derive(Clone, Copy, Debug)]
pub struct GuideCodec {
    /// Encodes a guide; `None` if the compression fails.
    pub encode: fn(KeptGuide) -> Option<EncodedGuide>,
    /// Decodes a guide; `None` if the bytes are not a guide.
    pub decode: fn(&EncodedGuide) -> Option<KeptDocument>,
}
