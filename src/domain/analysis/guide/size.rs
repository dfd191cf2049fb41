//! The size of a guide, as it is read and as a walk goes through it.

use super::{
    Guide, GuideLimit, MAX_GUIDE_CONDITIONS, MAX_GUIDE_STEPS, SourceStep, SourceTask, SourceTasks,
    SubtaskEntry,
};
use crate::domain::dependency::Group;

/// How many steps and conditions were counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GuideSize {
    steps: usize,
    conditions: usize,
}

impl GuideSize {
    /// The size with a task and its steps.
    pub fn with(self, task: &SourceTask, steps: &[SourceStep]) -> Self {
        let of_steps = steps.iter().map(|read| &read.step.content.dependencies);
        let groups = of_steps.chain([&task.task.content.dependencies]).flatten();
        Self {
            steps: self.steps + steps.len(),
            conditions: self.conditions + groups.map(|group| group.conditions()).sum::<usize>(),
        }
    }

    /// The limit that it exceeds.
    pub fn exceeded(self) -> Option<GuideLimit> {
        if self.steps > MAX_GUIDE_STEPS {
            Some(GuideLimit::Steps)
        } else {
            (self.conditions > MAX_GUIDE_CONDITIONS).then_some(GuideLimit::Conditions)
        }
    }
}

/// How much work it is to compile a guide: its steps, conditions, targets and keys.
pub fn weight_of(tasks: &SourceTasks) -> usize {
    let tasks = tasks.values();
    let weights = tasks.map(|(task, steps)| weight_of_task(task, steps.iter().flatten()));
    weights.sum()
}

pub(super) fn weight_of_task<'a>(
    task: &SourceTask,
    steps: impl Iterator<Item = &'a SourceStep>,
) -> usize {
    let dependencies = task.task.content.dependencies.as_ref();
    let of_steps = steps.map(|source| {
        let SourceStep {
            step, translations, ..
        } = source;
        let keys = step
            .kind
            .feedback()
            .map_or(0, |feedback| feedback.values.len());
        let dependencies = step.content.dependencies.as_ref();
        1 + keys * (1 + translations.len())
            + translations.len()
            + dependencies.map_or(0, Group::weight)
    });
    1 + dependencies.map_or(0, Group::weight) + of_steps.sum::<usize>()
}

/// The state of a walk that counts.
struct WalkSize {
    /// The count so far.
    counted: GuideSize,
    /// How many conditions each task has, those of its steps included.
    conditions_of_tasks: Vec<usize>,
}

impl Guide {
    /// The limit, if any, that the steps and conditions of a walk exceed. Those of a task count at
    /// each subtask step that enters it. Counting stops at the limit, as shared subtasks could
    /// make a whole walk very long.
    pub(super) fn exceeded_limit(&self) -> Option<GuideLimit> {
        let conditions_of_tasks = self.tasks.iter().map(|task| {
            let steps = task.steps.iter().flatten();
            let of_steps = steps.filter_map(|step| step.source.step.content.dependencies.as_ref());
            let groups = of_steps.chain(&task.source.task.content.dependencies);
            groups.map(|group| group.conditions()).sum()
        });
        let mut size = WalkSize {
            counted: GuideSize::default(),
            conditions_of_tasks: conditions_of_tasks.collect(),
        };
        self.count(&mut vec![0], &mut size).err()
    }

    fn count(&self, entered: &mut Vec<usize>, size: &mut WalkSize) -> Result<(), GuideLimit> {
        let Some(task) = entered.last().copied() else {
            return Ok(());
        };
        size.counted.steps += self.steps(task).len();
        let conditions = size.conditions_of_tasks.get(task).copied();
        size.counted.conditions += conditions.unwrap_or_default();
        if let Some(limit) = size.counted.exceeded() {
            return Err(limit);
        }
        for step in self.steps(task) {
            match self.subtask_entry(step, entered) {
                SubtaskEntry::Enter(subtask) => {
                    entered.push(subtask);
                    self.count(entered, size)?;
                    entered.pop();
                }
                // The conditions of the task are read where it is not entered, too.
                SubtaskEntry::Cycle(task) | SubtaskEntry::TooDeep(task) => {
                    let task = self.tasks.get(task);
                    let dependencies =
                        task.and_then(|it| it.source.task.content.dependencies.as_ref());
                    size.counted.conditions += dependencies.map_or(0, Group::conditions);
                }
                SubtaskEntry::NoTask => {}
            }
        }
        Ok(())
    }
}
