//! Revisions and their differences.

use std::slice;

use super::timestamp;
use crate::{
    domain::history::{DeletedTask, TaskRevision},
    messages::{
        compare::{FieldPath, ManagedDifference, StepDifference, TaskDifference},
        managed_documents::all_steps,
    },
    proto::v1::{self, Step},
};

/// A revision without its document.
pub fn task_revision(revision: TaskRevision) -> v1::TaskRevision {
    let aliases = revision.aliases.iter();
    v1::TaskRevision {
        task: revision.task.to_string(),
        revision: revision.number,
        cause: revision.cause.number(),
        note: revision.note.into_string(),
        subject: revision.subject,
        created_ts: Some(timestamp(revision.created)),
        task_name: revision.task_name.into_string(),
        product_id: revision.product.get(),
        step_count: i32::try_from(revision.step_count).unwrap_or(i32::MAX),
        size_bytes: revision.size,
        aliases: aliases.map(|alias| alias.as_str().to_owned()).collect(),
        guide_etag: revision.guide_etag.into_string(),
    }
}

/// A task that was deleted.
pub fn deleted_task(task: DeletedTask) -> v1::DeletedTask {
    v1::DeletedTask {
        latest: Some(task_revision(task.latest)),
        deleted_ts: Some(timestamp(task.deleted.at)),
        subject: task.deleted.subject,
    }
}

/// The steps in which two guides differ, those of managed tasks after the observation that
/// manages them.
pub fn step_differences(difference: &TaskDifference<'_>) -> Vec<v1::StepDifference> {
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
        // Only steps of managed tasks differ.
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
pub fn paths(fields: &[FieldPath]) -> Vec<String> {
    let mut paths: Vec<String> = fields.iter().map(ToString::to_string).collect();
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
