//! Imports: read what is stored, plan, and write the differences. The number of
//! statements grows with the number of batches, not with the number of steps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Operation, Tx, guide::LockedGuides};
use crate::{
    domain::{
        Error, Result,
        change_feed::WriteRpc,
        changes::Changes,
        decide::WriteContext,
        etag::{ExpectedEtag, GuideEtag},
        history::{HistoryState, KeptGuide, RevisionCause},
        ids::TaskId,
        import::{
            AbsentFields, AbsentSteps, Document, ImportContext, ImportOutcome, ImportPlan,
            ImportTarget, TaskTree, plan,
        },
        step::ReferencedTask,
        task::Task,
        translation_work::ResourceId,
    },
    store::{Account, RetryKey, WriteMode, WriteOutcome, error::StoreError, read::task_tree},
};

/// An import of a document.
#[derive(Debug)]
pub struct Import {
    /// The task to create, or to bring to the document's state.
    pub target: ImportTarget,
    /// The document.
    pub document: Document,
    /// The version that the task must have.
    pub expected: ExpectedEtag,
    /// What happens to steps that the document leaves out.
    pub absent: AbsentSteps,
    /// What happens to stored fields that the document leaves out.
    pub absent_fields: AbsentFields,
    /// The etag that the guide must have.
    pub expected_guide: ExpectedEtag,
    /// The bytes of the document in the request.
    pub document_bytes: usize,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The task.
    pub task: Task,
    /// Whether the guide was created, updated, or left unchanged.
    pub outcome: ImportOutcome,
    /// The etag of the guide.
    pub guide_etag: GuideEtag,
    /// The revision that keeps the guide as it was before; 0 if there is none.
    pub previous_revision: i64,
    /// The guide after the import; only a dry run returns it.
    pub guide: Option<Box<TaskTree>>,
    /// Fields that were sent and not honored, as paths in the request.
    pub ignored: BTreeSet<String>,
}

impl Account {
    /// Creates a task with all its steps, or brings one to a document's state, atomically.
    pub async fn import_task(
        &self,
        import: Import,
        retry: Option<RetryKey<Imported>>,
        mode: WriteMode,
    ) -> Result<WriteOutcome<Imported>> {
        let write = ImportWrite { import, mode };
        self.write_idempotent(write, mode, retry).await
    }
}

struct ImportWrite {
    import: Import,
    mode: WriteMode,
}

/// What an import reads.
pub struct ImportSnapshot {
    existing: Option<ReplacedGuide>,
    referenced: BTreeMap<TaskId, ReferencedTask>,
}

/// The stored guide that the import replaces.
struct ReplacedGuide {
    guide: KeptGuide,
    history: HistoryState,
}

impl Operation for ImportWrite {
    type Answer = Imported;
    const RPC: Option<WriteRpc> = Some(WriteRpc::ImportTask);

    async fn decide(&self, tx: &Tx<'_>) -> Result<(Changes, Imported), StoreError> {
        let stored = self.lock_and_read(tx).await?;
        Ok(self.plan_changes(stored, &tx.context)?)
    }
}

impl ImportWrite {
    /// Locks the guide, and the tasks that subtask steps name.
    async fn lock_and_read(&self, tx: &Tx<'_>) -> Result<ImportSnapshot, StoreError> {
        let target = match &self.import.target {
            ImportTarget::New => None,
            ImportTarget::Id(id) => Some(*id),
            ImportTarget::ExternalId(id) => tx.find_task(id).await?,
        };
        let guides = tx
            .lock_guides(target.as_slice(), self.import.document.subtasks())
            .await?;
        let returned = match self.mode {
            WriteMode::Store => 0,
            WriteMode::ValidateOnly => self.import.document_bytes,
        };
        tx.permit_guides(guides.bytes.saturating_add(returned))?;
        let existing = match target {
            Some(root) => self.read_existing(tx, root, &guides).await?,
            None => None,
        };
        let referenced = guides.tasks.iter();
        let referenced = referenced.map(|task| (task.guid, task.referenced()));
        Ok(ImportSnapshot {
            existing,
            referenced: referenced.collect(),
        })
    }

    fn plan_changes(
        &self,
        stored: ImportSnapshot,
        context: &WriteContext,
    ) -> Result<(Changes, Imported)> {
        let import = &self.import;
        let existing = stored.existing.as_ref().map(|stored| &stored.guide.tree);
        let former_etag = existing.map(GuideEtag::of);
        self.check_existing(existing, former_etag.as_ref())?;
        let ImportPlan {
            mut changes,
            task,
            outcome,
            guide_etag,
            guide,
            ignored,
            origins: _,
        } = plan(
            &import.document,
            ImportContext {
                write: context,
                existing,
                referenced: &stored.referenced,
                absent: import.absent,
                absent_fields: import.absent_fields,
                shows_guide: self.mode == WriteMode::ValidateOnly,
            },
        )?;
        if matches!(import.target, ImportTarget::ExternalId(_)) {
            // It is no error if another task has since taken the id: the unique index rejects the row,
            // and the retried import finds that task.
            changes.claimed_ids.clear();
        }
        let mut previous_revision = 0;
        if outcome == ImportOutcome::Updated
            && self.mode == WriteMode::Store
            && let Some(ReplacedGuide { guide, history }) = stored.existing
            && let Some(etag) = former_etag
        {
            let (cause, guide) = (RevisionCause::BeforeImport, guide.if_exportable(context));
            let (number, edits) = history.add_automatic(cause, etag, guide, context);
            previous_revision = number;
            changes.edit_history(task.guid, edits);
        }
        let imported = Imported {
            task,
            outcome,
            guide_etag,
            previous_revision,
            guide,
            ignored,
        };
        Ok((changes, imported))
    }

    /// Reads the stored guide that the import replaces.
    async fn read_existing(
        &self,
        tx: &Tx<'_>,
        root: TaskId,
        guides: &LockedGuides,
    ) -> Result<Option<ReplacedGuide>, StoreError> {
        let history = tx.lock_history(root).await?;
        let (mut trees, outdated) = task_tree::read_trees(tx.scope(), &guides.ids).await?;
        let tree = trees.pop();
        if let ImportTarget::ExternalId(wanted) = &self.import.target {
            let external_id = tree.as_ref().map(|tree| &tree.task.content.external_id);
            // The task may have lost the id, or may have been deleted, since it was found.
            if external_id.and_then(Option::as_ref) != Some(wanted) {
                return Err(StoreError::Conflict);
            }
        }
        let Some(tree) = tree else {
            return Ok(None);
        };
        let guide = KeptGuide { tree, outdated };
        Ok(Some(ReplacedGuide { guide, history }))
    }

    /// Checks that the task exists if the document has its id, and has the expected etags.
    fn check_existing(
        &self,
        existing: Option<&TaskTree>,
        guide_etag: Option<&GuideEtag>,
    ) -> Result<()> {
        let import = &self.import;
        match (&import.target, existing) {
            (ImportTarget::Id(guid), None) => {
                Err(Error::task_not_found(*guid, "document.task.guid"))
            }
            (_, Some(TaskTree { task, .. })) => {
                let etag = task.etag();
                import.expected.check(&etag, ResourceId::Task(task.guid))?;
                import.expected_guide.check_guide(guide_etag, task.guid)
            }
            (ImportTarget::New | ImportTarget::ExternalId(_), None) => Ok(()),
        }
    }
}
