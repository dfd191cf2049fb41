//! A guide that a call decodes or compares, with the memory that it takes.

use crate::{
    analysis_threads::run_by_weight,
    call_context::WorkMemory,
    domain::{
        Error, Result, SizedResource,
        etag::GuideEtag,
        history::{RevisionName, TaskRevision},
        ids::TaskId,
    },
    messages::{compare::compare, encode, kept_guide},
    proto::v1::{StepDifference, TaskDocument},
    store::Account,
};

pub struct ComparedGuide {
    pub document: TaskDocument,
    pub memory: WorkMemory,
    pub etag: GuideEtag,
    bytes: usize,
}

impl ComparedGuide {
    /// The guide of a revision, which is decoded on a thread of its own if it is large. `field`
    /// names the revision; the call already holds `other` bytes.
    pub async fn revision(
        account: &Account,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
        other: usize,
    ) -> Result<(TaskRevision, Self)> {
        let found = account.get_revision_and_guide(task, name, field);
        let ((revision, guide), permit) = found.await?;
        let mut memory = WorkMemory::of_current_call();
        let document_bytes = guide.document_bytes;
        let decode = move || -> Result<_> {
            let broken = || Error::Internal("a stored guide cannot be decoded".to_owned());
            let guide = kept_guide::decompressed(&guide).ok_or_else(broken)?;
            let bytes = kept_guide::decoded_bytes(&guide).ok_or_else(broken)?;
            memory.hold(SizedResource::Guide, bytes, other)?;
            let document = kept_guide::document(&guide).ok_or_else(broken)?;
            // The bytes that it was decoded from are gone.
            memory.shrink_to(bytes.saturating_sub(document_bytes));
            drop(permit);
            Ok((document, memory))
        };
        let (document, memory) = run_by_weight(weight(document_bytes), decode).await??;
        let guide = Self {
            document,
            memory,
            etag: revision.guide_etag.clone(),
            bytes: document_bytes,
        };
        Ok((revision, guide))
    }

    /// The guide as it is now; the call already holds `other` bytes.
    pub async fn now(account: &Account, task: TaskId, other: usize) -> Result<Self> {
        let found = account.export_task(task).await;
        let tree = found.map_err(|error| match error {
            Error::TaskNotFound(_) => Error::task_not_found(task, "task"),
            error => error,
        })?;
        let (etag, bytes) = (GuideEtag::of(&tree), tree.bytes());
        let mut memory = WorkMemory::of_current_call();
        memory.hold(SizedResource::Guide, 2 * bytes, other)?;
        Ok(Self {
            document: encode::document(tree),
            memory,
            etag,
            bytes,
        })
    }

    /// The weight of work on the guide.
    pub fn weight(&self) -> usize {
        weight(self.bytes)
    }

    /// The paths of the task that differ in another guide, and the steps that differ.
    pub fn compare(&self, target: &Self) -> (Vec<String>, Vec<StepDifference>) {
        let difference = compare(&self.document, &target.document);
        (
            encode::paths(&difference.fields),
            encode::step_differences(&difference),
        )
    }
}

fn weight(bytes: usize) -> usize {
    bytes / 1_024
}
