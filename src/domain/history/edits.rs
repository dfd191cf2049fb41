//! Edits of the history of a task.

use super::{
    DeletedBy, EncodedGuide, KeptGuide, MAX_REQUESTED_REVISIONS, MAX_REVISION_ALIASES, Note,
    RevisionAlias, RevisionCause, TaskRevision,
};
use crate::domain::{
    Error, Result,
    decide::WriteContext,
    etag::GuideEtag,
    ids::TaskId,
    size::stored_count,
    time::Timestamp,
    violation::{Path, Reason},
};

#[derive(Debug)]
pub struct HistoryChange {
    pub task: TaskId,
    /// What changes, in this order.
    pub edits: Vec<HistoryEdit>,
}

/// One change in the history of a task.
#[derive(Debug)]
pub enum HistoryEdit {
    /// Records the last number that was used, and whether the task is deleted. It comes first,
    /// because it locks the history against other writes.
    SetState {
        /// The number of the newest revision that was ever made.
        last_number: i64,
        /// Who deleted the task; `None` while it exists.
        deleted: Option<DeletedBy>,
    },
    Add(Box<NewRevision>),
    /// Deletes the oldest revisions that have no alias and were not requested.
    DeleteOldAutomatic {
        /// How many automatic revisions are kept.
        keep: usize,
    },
    /// Marks a revision as requested, with this note.
    MarkRequested {
        number: i64,
        note: Note,
    },
    /// Points an alias at a revision.
    SetAlias {
        alias: RevisionAlias,
        number: i64,
    },
    RemoveAlias(RevisionAlias),
    Delete(i64),
    /// Deletes the whole history, and the deleted steps of the task.
    Purge,
}

#[derive(Debug)]
pub struct NewRevision {
    /// Everything except the guide. The size is unknown until the guide is encoded.
    pub revision: TaskRevision,
    pub content: RevisionContent,
}

/// The guide of a new revision.
#[derive(Debug)]
pub enum RevisionContent {
    /// The store encodes it before it writes it, and takes it out to do so.
    Guide(Option<Box<KeptGuide>>),
    Encoded(EncodedGuide),
}

/// What a write needs to know of a task's history to add a revision.
#[derive(Clone, Debug)]
pub struct HistoryState {
    pub task: TaskId,
    /// The number of the newest revision that was ever made; 0 if none was.
    pub last_number: i64,
    /// The newest revision that is kept.
    pub newest: Option<NewestRevision>,
}

/// The newest revision of a task.
#[derive(Clone, Debug)]
pub struct NewestRevision {
    pub number: i64,
    pub created: Timestamp,
    pub guide_etag: GuideEtag,
}

impl HistoryState {
    /// The number of the newest revision, if the guide has not changed since.
    pub fn newest_if_unchanged(&self, guide_etag: &GuideEtag) -> Option<i64> {
        let newest = self.newest.as_ref()?;
        (newest.guide_etag == *guide_etag).then_some(newest.number)
    }

    /// Keeps a guide in an automatic revision. `guide` is `None` if it is too large to be exported.
    /// Returns the number of the revision that keeps it; 0 if there is none.
    pub fn add_automatic(
        &self,
        cause: RevisionCause,
        guide_etag: GuideEtag,
        guide: Option<KeptGuide>,
        context: &WriteContext,
    ) -> (i64, Vec<HistoryEdit>) {
        if let Some(number) = self.newest_if_unchanged(&guide_etag) {
            return (number, Vec::new());
        }
        let (Some(guide), keep @ 1..) = (guide, context.automatic_revisions) else {
            return (0, Vec::new());
        };
        let note = Note::default();
        let revision = self.next(cause, note, guide_etag, &guide, context);
        let number = revision.number;
        let content = RevisionContent::Guide(Some(Box::new(guide)));
        let mut edits = vec![
            HistoryEdit::SetState {
                last_number: number,
                deleted: None,
            },
            HistoryEdit::Add(Box::new(NewRevision { revision, content })),
        ];
        // Numbers start at 1, so a lower number means that there is nothing to delete.
        if number > stored_count(keep) {
            edits.push(HistoryEdit::DeleteOldAutomatic { keep });
        }
        (number, edits)
    }

    /// The next revision, without aliases.
    pub fn next(
        &self,
        cause: RevisionCause,
        note: Note,
        guide_etag: GuideEtag,
        guide: &KeptGuide,
        context: &WriteContext,
    ) -> TaskRevision {
        let task = &guide.tree.task;
        TaskRevision {
            task: self.task,
            number: self.last_number + 1,
            cause,
            note,
            subject: context.subject.clone(),
            created: context.now,
            task_name: task.name.clone(),
            product: task.product,
            step_count: i64::try_from(guide.tree.steps.len()).unwrap_or(i64::MAX),
            size: 0,
            aliases: Vec::new(),
            guide_etag,
        }
    }

    /// Keeps a guide that is about to be deleted, and records the deletion, unless the task has no
    /// revision.
    pub fn delete_task(
        &self,
        guide: Option<KeptGuide>,
        context: &WriteContext,
    ) -> (i64, Vec<HistoryEdit>) {
        if !context.keeps_deleted_tasks {
            return (0, vec![HistoryEdit::Purge]);
        }
        let (number, mut edits) = match guide {
            Some(guide) => {
                let (cause, etag) = (
                    RevisionCause::BeforeDelete,
                    GuideEtag::for_guide(&guide.tree),
                );
                self.add_automatic(cause, etag, Some(guide), context)
            }
            None => (0, Vec::new()),
        };
        let by = DeletedBy {
            at: context.now,
            subject: context.subject.clone(),
        };
        if let Some(HistoryEdit::SetState { deleted, .. }) = edits.first_mut() {
            *deleted = Some(by);
        } else if self.newest.is_some() {
            edits.push(HistoryEdit::SetState {
                last_number: self.last_number,
                deleted: Some(by),
            });
        } else if self.last_number > 0 {
            // The task cannot be restored.
            edits.push(HistoryEdit::Purge);
        }
        (number, edits)
    }
}

/// The aliases of a task, with the numbers of their revisions.
pub type RevisionAliases = std::collections::BTreeMap<RevisionAlias, i64>;

/// The aliases that name a revision.
pub fn revision_aliases(aliases: &RevisionAliases, number: i64) -> Vec<RevisionAlias> {
    let named = aliases.iter().filter(|(_, named)| **named == number);
    named.map(|(alias, _)| alias.clone()).collect()
}

/// Points an alias at a revision. Fails if the task would have too many aliases.
pub fn set_alias(
    aliases: &mut RevisionAliases,
    alias: &RevisionAlias,
    number: i64,
) -> Result<Option<HistoryEdit>> {
    if aliases.len() >= MAX_REVISION_ALIASES && !aliases.contains_key(alias) {
        let description = format!(
            "the task has {} aliases; at most {MAX_REVISION_ALIASES} are allowed",
            aliases.len()
        );
        let at = Path::root("alias");
        return Err(Error::invalid(&at, Reason::TooManyElements, description));
    }
    let former = aliases.insert(alias.clone(), number);
    Ok((former != Some(number)).then(|| HistoryEdit::SetAlias {
        alias: alias.clone(),
        number,
    }))
}

/// Fails if the task cannot have another requested revision.
pub fn check_requested_count(requested: usize) -> Result<()> {
    if requested < MAX_REQUESTED_REVISIONS {
        return Ok(());
    }
    let description = format!(
        "has {requested} requested revisions; at most {MAX_REQUESTED_REVISIONS} are allowed: delete \
         some"
    );
    let at = Path::root("task");
    Err(Error::invalid(&at, Reason::TooManyElements, description))
}
