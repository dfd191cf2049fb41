//! Revisions and their differences.

use std::slice;

use super::timestamp;
use crate::{
    domain::{
        compare::{FieldDifference, ManagedDifference, StepDifference, TaskDifference},
        history::{DeletedBy, DeletedTask, RevisionCause, TaskRevision},
    },
    messages::managed_documents::{all_steps, managed_document},
    proto::v1::{self, Step, TaskDocument},
};

/// A revision without its document.
pub fn task_revision(revision: TaskRevision) -> v1::TaskRevision {
    let TaskRevision {
        task,
        number,
        cause,
        note,
        subject,
        created,
        task_name,
        product,
        step_count,
        size,
        aliases,
        guide_etag,
    } = revision;
    let cause = match cause {
        RevisionCause::Requested => v1::RevisionCause::Requested,
        RevisionCause::BeforeImport => v1::RevisionCause::BeforeImport,
        RevisionCause::BeforeRestore => v1::RevisionCause::BeforeRestore,
        RevisionCause::BeforeDelete => v1::RevisionCause::BeforeDelete,
        RevisionCause::Published => v1::RevisionCause::Published,
    };
    v1::TaskRevision {
        task: task.to_string(),
        revision: number,
        cause: cause.into(),
        note: note.into_string(),
        subject,
        created_ts: Some(timestamp(created)),
        task_name: task_name.into_string(),
        product_id: product.get(),
        step_count: i32::try_from(step_count).unwrap_or(i32::MAX),
        size_bytes: size,
        aliases: aliases
            .iter()
            .map(|alias| alias.as_str().to_owned())
            .collect(),
        guide_etag: guide_etag.into_string(),
    }
}

/// A task that was deleted.
pub fn deleted_task(task: DeletedTask) -> v1::DeletedTask {
    let DeletedTask {
        latest,
        deleted: DeletedBy { at, subject },
    } = task;
    v1::DeletedTask {
        latest: Some(task_revision(latest)),
        deleted_ts: Some(timestamp(at)),
        subject,
    }
}

/// The steps in which two guides differ, those of managed tasks behind the observation that
/// manages them.
pub fn step_differences<V>(
    difference: &TaskDifference<'_, V>,
    base: &TaskDocument,
    target: &TaskDocument,
) -> Vec<v1::StepDifference> {
    let mut steps = Vec::new();
    for step in &difference.steps {
        let before = step.base.and_then(|index| base.steps.get(index));
        let after = step.target.and_then(|index| target.steps.get(index));
        match (before, after) {
            (Some(before), Some(after)) => add_changed(step, before, after, &mut steps),
            (None, Some(after)) => add_whole(
                slice::from_ref(after),
                v1::DifferenceKind::Added,
                &mut steps,
            ),
            (Some(before), None) => add_whole(
                slice::from_ref(before),
                v1::DifferenceKind::Removed,
                &mut steps,
            ),
            (None, None) => {}
        }
    }
    steps
}

fn add_changed<V>(
    difference: &StepDifference<'_, V>,
    before: &Step,
    after: &Step,
    steps: &mut Vec<v1::StepDifference>,
) {
    let mut paths = paths(&difference.fields);
    for (key, managed) in &difference.managed {
        if let ManagedDifference::Changed(task) = managed {
            let within = format!("feedback_config.values[\"{key}\"].task_json.task");
            let fields = task.fields.iter();
            paths.extend(fields.map(|field| format!("{within}.{}", field.path)));
        }
    }
    paths.sort_unstable();
    let kind = match (paths.is_empty(), difference.moved) {
        (false, _) => Some(v1::DifferenceKind::Changed),
        (true, true) => Some(v1::DifferenceKind::Moved),
        // Only steps of managed tasks differ.
        (true, false) => None,
    };
    if let Some(kind) = kind {
        steps.push(v1::StepDifference {
            moved: difference.moved,
            paths,
            ..whole(after, kind)
        });
    }
    for (key, managed) in &difference.managed {
        let (before, after) = (managed_document(before, key), managed_document(after, key));
        match (managed, before, after) {
            (ManagedDifference::Changed(task), Some(before), Some(after)) => {
                steps.extend(step_differences(task, before, after));
            }
            (ManagedDifference::Added, _, Some(after)) => {
                add_whole(&after.steps, v1::DifferenceKind::Added, steps);
            }
            (ManagedDifference::Removed, Some(before), _) => {
                add_whole(&before.steps, v1::DifferenceKind::Removed, steps);
            }
            (_, None, _) | (_, _, None) => {}
        }
    }
}

/// The fields of a task or step that differ; sorted.
pub fn paths<V>(fields: &[FieldDifference<'_, V>]) -> Vec<String> {
    let paths = fields.iter().map(|field| field.path.to_owned());
    let mut paths: Vec<String> = paths.collect();
    paths.sort_unstable();
    paths
}

/// Adds steps that one guide lacks, and those of the tasks that they manage.
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
