//! The guide after an import.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    Error, Result, SizedResource, decide::WriteContext, etag::GuideEtag, ids::TaskId,
    import::TaskTree, row_version::RowVersion, size::exported_bytes, step::Step, task::Task,
    text::Name,
};

use super::planned::PlannedTask;

/// A task of the guide with its steps, planned or as they are stored.
struct GuideTask<'p> {
    task: &'p Task,
    steps: Vec<&'p Step>,
    managed: Vec<Self>,
}

/// The planned tasks by id.
type PlannedTasks<'p> = BTreeMap<TaskId, &'p PlannedTask<'p>>;

/// The etag of the guide of the first planned task, and the guide itself if it is shown; it must not be
/// too large for that. The tasks are completed, see [`PlannedTask::complete`].
pub(super) fn guide(
    planned: &[PlannedTask<'_>],
    is_shown: bool,
    context: &WriteContext,
) -> Option<(GuideEtag, Result<Option<Box<TaskTree>>>)> {
    let after = |planned: &PlannedTask<'_>| planned.after.as_ref().map(|task| task.guid);
    let root = after(planned.first()?)?;
    let tasks: PlannedTasks<'_> = planned
        .iter()
        .filter_map(|planned| Some((after(planned)?, planned)))
        .collect();
    let guide = GuideTask::planned(root, &tasks)?;
    let mut row_versions = Vec::new();
    guide.add_row_versions(&tasks, context, &mut row_versions);
    let row_versions = row_versions
        .iter()
        .map(|(id, row_version)| (*id, row_version));
    let etag = GuideEtag::of_row_versions(row_versions.collect());
    if !is_shown {
        return Some((etag, Ok(None)));
    }
    let limit = context.max_message_bytes;
    if guide.bytes() > limit {
        let resource = SizedResource::Guide;
        return Some((etag, Err(Error::TooLarge { resource, limit })));
    }
    let mut tree = guide.tree();
    retitle(&mut tree, &tasks, context);
    Some((etag, Ok(Some(Box::new(tree)))))
}

impl<'p> GuideTask<'p> {
    /// A planned task, `None` if the plan does not have it.
    fn planned(task: TaskId, tasks: &PlannedTasks<'p>) -> Option<Self> {
        let planned = *tasks.get(&task)?;
        let steps = match planned.keeps_steps() {
            true => planned
                .existing
                .map_or(&[][..], |tree| &tree.steps)
                .iter()
                .collect(),
            false => planned
                .steps
                .iter()
                .map(|step| step.after.as_ref())
                .collect(),
        };
        Some(Self::new(
            planned.after.as_ref()?,
            steps,
            planned.existing,
            tasks,
        ))
    }

    fn new(
        task: &'p Task,
        steps: Vec<&'p Step>,
        existing: Option<&'p TaskTree>,
        tasks: &PlannedTasks<'p>,
    ) -> Self {
        let stored = |task: &TaskId| {
            let tree = existing?.managed.get(task)?;
            Some(Self::new(
                &tree.task,
                tree.steps.iter().collect(),
                Some(tree),
                tasks,
            ))
        };
        let managed = steps.iter().flat_map(|step| step.managed_tasks());
        let managed = managed
            .filter_map(|task| Self::planned(task, tasks).or_else(|| stored(&task)))
            .collect();
        Self {
            task,
            steps,
            managed,
        }
    }

    /// Adds the versions of its tasks and steps after the import.
    fn add_row_versions(
        &self,
        tasks: &PlannedTasks<'_>,
        context: &WriteContext,
        row_versions: &mut Vec<(Uuid, RowVersion)>,
    ) {
        row_versions.push((self.task.guid.0, self.task.row_version));
        row_versions.extend(self.steps.iter().map(|step| {
            let row_version = match new_title(step, tasks) {
                Some(_) => step.row_version.next(context.now),
                None => step.row_version,
            };
            (step.guid.0, row_version)
        }));
        for managed in &self.managed {
            managed.add_row_versions(tasks, context, row_versions);
        }
    }

    fn bytes(&self) -> usize {
        let own = exported_bytes(self.task, self.steps.iter().copied());
        let managed = self.managed.iter().map(Self::bytes);
        managed.fold(own, usize::saturating_add)
    }

    fn tree(&self) -> TaskTree {
        let managed = self
            .managed
            .iter()
            .map(|managed| (managed.task.guid, managed.tree()));
        TaskTree {
            task: self.task.clone(),
            steps: self.steps.iter().copied().cloned().collect(),
            places: BTreeMap::new(),
            managed: managed.collect(),
        }
    }
}

/// The new name of the planned task that a subtask step refers to. A planned step has it.
fn new_title<'p>(step: &Step, tasks: &PlannedTasks<'p>) -> Option<&'p Name> {
    let subtask = step.kind.subtask()?;
    let name = &tasks.get(&subtask.task)?.after.as_ref()?.name;
    (step.title != name.as_str()).then_some(name)
}

/// Gives subtask steps that are not planned the new names of planned tasks.
fn retitle(tree: &mut TaskTree, tasks: &PlannedTasks<'_>, context: &WriteContext) {
    for step in &mut tree.steps {
        if let Some(name) = new_title(step, tasks) {
            name.as_str().clone_into(&mut step.title);
            step.row_version = step.row_version.next(context.now);
        }
    }
    tree.managed
        .values_mut()
        .for_each(|managed| retitle(managed, tasks, context));
}
