//! The guide after an import.

use std::collections::BTreeMap;

use crate::domain::{
    ids::TaskId,
    import::TaskTree,
    size::{StepSize, task_size},
    step::{Step, StepKind},
    task::Task,
    text::Name,
};

use super::planned::PlannedTask;

/// The guide after an import, if it is not too large to be shown.
#[derive(Clone, Debug)]
pub enum PlannedGuide {
    /// The guide. Places of steps are left out.
    Shown(Box<TaskTree>),
    /// It takes so many bytes.
    TooLarge(usize),
}

/// A task of the guide with its steps, planned or as they are stored.
struct GuideTask<'p> {
    task: &'p Task,
    steps: Vec<&'p Step>,
    managed: Vec<Self>,
}

/// The planned tasks by id.
type PlannedTasks<'p> = BTreeMap<TaskId, &'p PlannedTask<'p>>;

/// The guide of the first planned task. The tasks are completed, see
/// [`PlannedTask::complete`].
pub(super) fn guide(planned: &[PlannedTask<'_>], max_bytes: usize) -> Option<PlannedGuide> {
    let after = |planned: &PlannedTask<'_>| planned.after.as_ref().map(|task| task.guid);
    let root = after(planned.first()?)?;
    let tasks: PlannedTasks<'_> = planned
        .iter()
        .filter_map(|planned| Some((after(planned)?, planned)))
        .collect();
    let guide = GuideTask::planned(root, &tasks)?;
    let bytes = guide.bytes();
    if bytes > max_bytes {
        return Some(PlannedGuide::TooLarge(bytes));
    }
    let mut tree = guide.tree();
    retitle(&mut tree, &tasks);
    Some(PlannedGuide::Shown(Box::new(tree)))
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

    fn bytes(&self) -> usize {
        let steps = self.steps.iter().map(|step| {
            let StepSize { listed, bodies } = StepSize::of(step);
            listed.saturating_add(bodies)
        });
        let own = steps.fold(task_size(self.task), i64::saturating_add);
        let managed = self.managed.iter().map(Self::bytes);
        managed.fold(
            usize::try_from(own).unwrap_or(usize::MAX),
            usize::saturating_add,
        )
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

/// Gives subtask steps that are not planned the new names of planned tasks.
fn retitle(tree: &mut TaskTree, tasks: &PlannedTasks<'_>) {
    let name = |task: &TaskId| -> Option<&Name> { Some(&tasks.get(task)?.after.as_ref()?.name) };
    for step in &mut tree.steps {
        if let StepKind::Subtask { subtask, .. } = &step.kind
            && let Some(name) = name(&subtask.task)
            && step.title != name.as_str()
        {
            name.as_str().clone_into(&mut step.title);
        }
    }
    tree.managed
        .values_mut()
        .for_each(|managed| retitle(managed, tasks));
}
