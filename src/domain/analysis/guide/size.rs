//! The size of a guide: its steps and conditions, and the work to compile it.

use super::{GuideLimit, SourceStep, SourceTask, SourceTasks};
use crate::domain::dependency::Group;

/// Most steps of an analyzed guide. Those of a task that several subtask steps refer to
/// count at each of them.
pub const MAX_GUIDE_STEPS: usize = 10_000;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GuideSize {
    steps: usize,
    conditions: usize,
}

impl GuideSize {
    /// The size with more steps and conditions, unless it exceeds a limit.
    pub fn plus(self, steps: usize, conditions: usize) -> Result<Self, GuideLimit> {
        let size = Self {
            steps: self.steps + steps,
            conditions: self.conditions + conditions,
        };
        match size {
            _ if size.steps > GuideLimit::STEPS.1 => Err(GuideLimit::STEPS),
            _ if size.conditions > GuideLimit::CONDITIONS.1 => Err(GuideLimit::CONDITIONS),
            _ => Ok(size),
        }
    }
}

pub(super) fn groups<'a>(
    task: &'a SourceTask,
    steps: &'a [SourceStep],
) -> impl Iterator<Item = &'a Group> {
    let of_steps = steps
        .iter()
        .filter_map(|step| step.step.content.dependencies.as_ref());
    of_steps.chain(&task.task.content.dependencies)
}

/// How much work it is to compile a guide: its steps, conditions, targets and keys.
pub fn guide_weight(tasks: &SourceTasks) -> usize {
    let of_step = |source: &SourceStep| {
        let feedback = source.step.kind.feedback();
        let keys = feedback.map_or(0, |feedback| feedback.values.len());
        let languages = source.translations.len();
        1 + keys * (1 + languages) + languages
    };
    let of_tasks = tasks.values().map(|(task, steps)| {
        let steps = steps.as_deref().unwrap_or_default();
        let of_groups: usize = groups(task, steps).map(Group::weight).sum();
        1 + steps.iter().map(of_step).sum::<usize>() + of_groups
    });
    of_tasks.sum()
}
