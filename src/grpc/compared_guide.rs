//! A guide that a call decodes or compares, with the memory that it holds.

use std::slice;

use crate::{
    call_context::{Permit, memory_limit, permit_bytes, release_bytes, take_memory},
    domain::{
        Error, Missing, Result, SizedResource,
        etag::GuideEtag,
        history::{RevisionName, TaskRevision},
        ids::TaskId,
    },
    messages::{
        compare::{FieldPath, ManagedDifference, StepDifference, TaskDifference, compare},
        encode, kept_guide,
        managed_documents::all_steps,
    },
    proto::v1::{self, Step, TaskDocument},
    store::Account,
};

pub struct ComparedGuide {
    pub document: TaskDocument,
    pub memory: Permit,
    pub etag: GuideEtag,
    bytes: usize,
}

impl ComparedGuide {
    /// The guide of a revision, which `field` of the request names. The call already holds `other`
    /// bytes.
    pub async fn revision(
        account: &Account,
        task: TaskId,
        name: &RevisionName,
        field: &'static str,
        other: usize,
    ) -> Result<(TaskRevision, Self)> {
        let found = account.get_revision_and_guide(task, name, field);
        let ((revision, guide), permit) = found.await?;
        let document_bytes = guide.document_bytes;
        let broken = || Error::Internal("a stored guide cannot be decoded".to_owned());
        let guide = kept_guide::decompressed(&guide).ok_or_else(broken)?;
        let bytes = kept_guide::decoded_bytes(&guide).ok_or_else(broken)?;
        let mut memory = take_guide_memory(bytes, other)?;
        let document = kept_guide::document(&guide).ok_or_else(broken)?;
        // The encoded bytes have been dropped.
        drop(guide);
        release_bytes(&mut memory, document_bytes);
        drop(permit);
        let guide = Self {
            document,
            memory,
            etag: revision.guide_etag.clone(),
            bytes: document_bytes,
        };
        Ok((revision, guide))
    }

    /// The current state of the guide. The call already holds `other` bytes.
    pub async fn now(account: &Account, task: TaskId, other: usize) -> Result<Self> {
        let found = account.export_task(task).await;
        let tree = found.map_err(|error| match error {
            Error::NotFound {
                missing: Missing::Task(_),
                ..
            } => Error::task_not_found(task, "task"),
            error => error,
        })?;
        let (etag, bytes) = (GuideEtag::for_guide(&tree), tree.bytes());
        let memory = take_guide_memory(2 * bytes, other)?;
        Ok(Self {
            document: encode::document(tree),
            memory,
            etag,
            bytes,
        })
    }

    /// The memory that it holds.
    pub fn held_bytes(&self) -> usize {
        permit_bytes(&self.memory)
    }

    /// The weight of the guide for the limit on concurrent analysis.
    pub fn weight(&self) -> usize {
        weight(self.bytes)
    }

    /// The fields of the task and the steps that differ from another guide.
    pub fn compare(&self, target: &Self) -> (Vec<String>, Vec<v1::StepDifference>) {
        let difference = compare(&self.document, &target.document);
        (paths(&difference.fields), step_differences(&difference))
    }
}

/// Takes memory for a guide. Fails with [`Error::TooLarge`] if it would never fit in addition to the `other`
/// bytes that the call holds.
fn take_guide_memory(bytes: usize, other: usize) -> Result<Permit> {
    let (resource, limit) = (SizedResource::Guide, memory_limit());
    match bytes.saturating_add(other) > limit {
        true => Err(Error::TooLarge { resource, limit }),
        false => take_memory(bytes),
    }
}

fn weight(bytes: usize) -> usize {
    bytes / 1_024
}

/// The steps that differ between two guides. Steps of managed tasks come after the observation that
/// manages them.
fn step_differences(difference: &TaskDifference<'_>) -> Vec<v1::StepDifference> {
    let mut steps = Vec::new();
    for step in &difference.steps {
        match (step.base, step.target) {
            (Some(_), Some((_, after))) => add_changed(step, after, &mut steps),
            (None, Some((_, after))) => add_whole(
                slice::from_ref(after),
                v1::DifferenceKind::Added,
                &mut steps,
            ),
            (Some((_, before)), None) => add_whole(
                slice::from_ref(before),
                v1::DifferenceKind::Removed,
                &mut steps,
            ),
            (None, None) => {}
        }
    }
    steps
}

fn add_changed(difference: &StepDifference<'_>, after: &Step, steps: &mut Vec<v1::StepDifference>) {
    let mut paths = paths(&difference.fields);
    for (key, managed) in &difference.managed {
        if let ManagedDifference::Changed(task) = managed {
            let within = format!("feedback_config.values[\"{key}\"].task_json.task");
            paths.extend(task.fields.iter().map(|field| format!("{within}.{field}")));
        }
    }
    paths.sort_unstable();
    let kind = match (paths.is_empty(), difference.moved) {
        (false, _) => Some(v1::DifferenceKind::Changed),
        (true, true) => Some(v1::DifferenceKind::Moved),
        // Only the steps of its managed tasks differ.
        (true, false) => None,
    };
    steps.extend(kind.map(|kind| v1::StepDifference {
        moved: difference.moved,
        paths,
        ..whole(after, kind)
    }));
    for (_, managed) in &difference.managed {
        match managed {
            ManagedDifference::Changed(task) => steps.extend(step_differences(task)),
            ManagedDifference::Added(_, after) => {
                add_whole(&after.steps, v1::DifferenceKind::Added, steps);
            }
            ManagedDifference::Removed(_, before) => {
                add_whole(&before.steps, v1::DifferenceKind::Removed, steps);
            }
        }
    }
}

/// The fields of a task or step that differ; sorted.
fn paths(fields: &[FieldPath]) -> Vec<String> {
    let mut paths: Vec<String> = fields.iter().map(ToString::to_string).collect();
    paths.sort_unstable();
    paths
}

/// Adds steps that only one guide has, and the steps of the tasks that they manage.
fn add_whole(missing: &[Step], kind: v1::DifferenceKind, steps: &mut Vec<v1::StepDifference>) {
    let missing = all_steps(missing).into_iter();
    steps.extend(missing.map(|step| whole(step, kind)));
}

fn whole(step: &Step, kind: v1::DifferenceKind) -> v1::StepDifference {
    v1::StepDifference {
        step: step.guid.clone(),
        task: step.task.clone(),
        r#type: step.r#type,
        title: step.title.clone(),
        kind: kind.into(),
        moved: false,
        paths: Vec::new(),
    }
}
