//! The size of a guide as a walk goes through it.

use super::{Guide, GuideLimit, MAX_GUIDE_CONDITIONS, MAX_GUIDE_STEPS, SubtaskEntry};

/// The steps and conditions that a walk has counted.
struct WalkSize {
    steps: usize,
    conditions: usize,
    /// The conditions of each task with its steps.
    by_task: Vec<usize>,
}

impl Guide {
    /// How many steps and conditions a walk passes. Those of a task count at each subtask
    /// step that enters it. Counting stops at a limit that the guide exceeds, as shared
    /// subtasks could make a whole walk very long.
    pub(super) fn measure(&self) -> Result<usize, GuideLimit> {
        let by_task = self.tasks.iter().map(|task| {
            let steps = task.steps.iter().flatten();
            let of_steps = steps.filter_map(|step| step.source.step.content.dependencies.as_ref());
            let groups = of_steps.chain(&task.source.task.dependencies);
            groups.map(|group| group.conditions()).sum()
        });
        let mut size = WalkSize {
            steps: 0,
            conditions: 0,
            by_task: by_task.collect(),
        };
        self.count(&mut vec![0], &mut size)?;
        Ok(size.steps + size.conditions)
    }

    fn count(&self, entered: &mut Vec<usize>, size: &mut WalkSize) -> Result<(), GuideLimit> {
        let Some(task) = entered.last().copied() else {
            return Ok(());
        };
        size.steps += self.steps(task).len();
        size.conditions += size.by_task.get(task).copied().unwrap_or_default();
        if size.steps > MAX_GUIDE_STEPS {
            return Err(GuideLimit::Steps);
        }
        if size.conditions > MAX_GUIDE_CONDITIONS {
            return Err(GuideLimit::Conditions);
        }
        for step in self.steps(task) {
            match self.subtask_entry(step, entered) {
                SubtaskEntry::Enter(subtask) => {
                    entered.push(subtask);
                    self.count(entered, size)?;
                    entered.pop();
                }
                SubtaskEntry::NoTask | SubtaskEntry::Cycle(_) | SubtaskEntry::TooDeep(_) => {}
            }
        }
        Ok(())
    }
}
