//! Reads a guide: a task or document with its steps and those of its subtasks, without
//! bodies, as one state of the database.

mod budget;
mod levels;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sea_orm::ConnectionTrait;

use super::outside::{
    AccountNames, GuideExtent, OutsideUses, find_outside_uses, retain_used_outside,
};
use crate::{
    analysis_threads::analyse_by_weight,
    call_context::WorkMemory,
    domain::{
        Error,
        analysis::{Guide, GuideDraft, KnownVariables, StopSignal, of_document, weight_of},
        ids::TaskId,
        import::{Document, ImportContext, plan},
        step::ReferencedTask,
        validation::OutsideReaders,
    },
    store::{Account, account::Scope, error::StoreError},
};

use levels::LevelReader;

pub(super) use budget::MEMORY_PER_BYTE;

/// What a guide is read from.
#[derive(Debug)]
pub enum GuideSource {
    /// A stored task.
    Stored(TaskId),
    /// A document that is not stored.
    Document(Box<Document>),
}

/// A guide that was read and is not analyzed yet.
pub(super) struct ReadGuide {
    draft: GuideDraft,
    outside: OutsideUses,
    /// Reserves the guide's memory until it is dropped.
    memory: WorkMemory,
}

impl ReadGuide {
    /// How much work its analysis is.
    pub fn weight(&self) -> usize {
        self.draft.weight() + self.outside.weight()
    }

    /// How many steps it has.
    pub fn step_count(&self) -> usize {
        self.draft.steps().count()
    }

    /// The guide, the conditions elsewhere that read its variables, and the memory of both; `None` if
    /// the call is over.
    pub fn finish(
        self,
        stop: StopSignal<'_>,
    ) -> Option<(Guide, BTreeMap<String, OutsideReaders>, WorkMemory)> {
        let OutsideUses { setters, readers } = self.outside;
        Some((self.draft.finish(setters, stop)?, readers, self.memory))
    }
}

impl Account {
    /// Reads a guide, and what sets its variables elsewhere, in the snapshot of `scope`.
    ///
    /// With `replaced`, it also reads the conditions elsewhere that read the guide's variables. The
    /// stored tasks that the guide replaces do not count as elsewhere.
    pub(super) async fn read_guide(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        source: &Arc<GuideSource>,
        replaced: Option<BTreeSet<TaskId>>,
        known: &KnownVariables,
    ) -> Result<ReadGuide, StoreError> {
        let (draft, mut memory) = self.read_draft(scope, source, known).await?;
        let mut names = AccountNames {
            read: names_read(&draft),
            set: BTreeSet::new(),
        };
        let finds_readers = replaced.is_some();
        let inside = extent(&draft, replaced.unwrap_or_default());
        if finds_readers {
            names.set = names_set(&draft);
            retain_used_outside(&mut names, scope, &inside).await?;
        }
        let outside = find_outside_uses(&names, scope, &inside, &mut memory).await?;
        Ok(ReadGuide {
            draft,
            outside,
            memory,
        })
    }

    async fn read_draft(
        &self,
        scope: Scope<'_, impl ConnectionTrait>,
        source: &Arc<GuideSource>,
        known: &KnownVariables,
    ) -> Result<(GuideDraft, WorkMemory), StoreError> {
        let mut reader = LevelReader::new(scope, self.max_message_bytes());
        let root = match source.as_ref() {
            GuideSource::Stored(root) => {
                reader.read_levels(BTreeSet::from([*root]), 0).await?;
                *root
            }
            GuideSource::Document(document) => {
                let source = Arc::clone(source);
                self.read_document(&mut reader, source, document).await?
            }
        };
        let (tasks, memory) = reader.finish();
        let known = known.clone();
        let weight = weight_of(&tasks);
        let draft = analyse_by_weight(weight, move |_| Some(GuideDraft::new(root, tasks, &known)));
        let draft = draft
            .await?
            .ok_or_else(|| Error::task_not_found(root, "guid"))?;
        Ok((draft, memory))
    }

    /// Plans the import of a document, and reads the stored tasks that it refers to. An
    /// invalid document fails as its import would.
    async fn read_document(
        &self,
        reader: &mut LevelReader<'_, impl ConnectionTrait>,
        source: Arc<GuideSource>,
        document: &Document,
    ) -> Result<TaskId, StoreError> {
        let heads = reader.read_heads(&document.subtasks()).await?;
        let referenced = heads.iter().map(|head| {
            let task = &head.source.task;
            (task.guid, ReferencedTask::to(task))
        });
        let referenced: BTreeMap<TaskId, ReferencedTask> = referenced.collect();
        let write = self.write_context();
        let planned = analyse_by_weight(document.step_count(), move |_| {
            Some(match source.as_ref() {
                GuideSource::Stored(_) => {
                    Err(Error::Internal("a guide without a document".to_owned()))
                }
                GuideSource::Document(document) => {
                    let context = ImportContext::of_new_guide(&write, &referenced);
                    plan(document, context).map(of_document)
                }
            })
        });
        let (root, tasks) = planned.await??;
        reader.tasks = tasks;
        let below = reader.add_level(heads, 1).await?;
        reader.read_levels(below, 2).await?;
        Ok(root)
    }
}

/// The account-wide names that conditions of a guide read.
fn names_read(draft: &GuideDraft) -> BTreeSet<&str> {
    let read = draft
        .account_variables()
        .filter(|variable| variable.is_read);
    read.map(|variable| variable.name.as_str()).collect()
}

/// The account-wide names that observations of a guide set.
fn names_set(draft: &GuideDraft) -> BTreeSet<&str> {
    let set = draft
        .account_variables()
        .filter(|variable| variable.task.is_none() && !variable.setters.is_empty());
    set.map(|variable| variable.name.as_str()).collect()
}

/// The tasks and steps of a guide, and the stored tasks that it replaces.
fn extent(draft: &GuideDraft, replaced: BTreeSet<TaskId>) -> GuideExtent {
    let tasks = draft.tasks().map(|task| task.task.guid.0);
    let steps = draft.steps().map(|step| step.step.guid.0);
    GuideExtent {
        ids: tasks.chain(steps).collect(),
        replaced,
    }
}
