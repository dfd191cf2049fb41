//! The route: every step in visiting order, once per path that leads to it. After a subtask step come
//! the steps of the task that it enters.

use super::{
    Guide, GuideLimit, GuideSize, GuideStep, MAX_SUBTASK_LEVELS, StepPosition, Unpublished,
};

/// A step of the route, reached by one path of subtask steps.
#[derive(Clone, Copy, Debug)]
pub struct GuideStop {
    pub position: StepPosition,
    /// The stop at the subtask step that entered the task: its index in [`Guide::route`].
    pub parent: Option<usize>,
    /// The number of subtask steps that lead to it.
    pub level: usize,
    pub entry: SubtaskEntry,
}

/// Whether a walk enters the task that a subtask step refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubtaskEntry {
    /// The step refers to no task, or to one that a limit cut off.
    NoTask,
    Enter,
    /// Not entered, because the walk is already inside the task.
    Cycle,
    /// Not entered, because the task is more than [`MAX_SUBTASK_LEVELS`] levels deep.
    TooDeep,
}

struct Walk<'a> {
    guide: &'a Guide,
    /// The tasks that the walk is inside of, from the root.
    entered: Vec<usize>,
    size: GuideSize,
    route: Vec<GuideStop>,
}

impl Guide {
    /// Finds the route. Fails if its steps and conditions exceed a limit. The steps and conditions
    /// of a task count for each subtask step that enters it, so shared subtasks can make the route
    /// very long.
    pub(super) fn find_route(&self) -> Result<Vec<GuideStop>, GuideLimit> {
        let mut walk = Walk {
            guide: self,
            entered: Vec::new(),
            size: GuideSize::default(),
            route: Vec::new(),
        };
        walk.enter(0, None)?;
        Ok(walk.route)
    }

    /// The indexes of the stops at steps that are shown, if the subtask steps that lead to them are
    /// also shown.
    pub fn shown_stops(
        &self,
        unpublished: Unpublished,
    ) -> impl Iterator<Item = (usize, &GuideStep)> {
        let mut is_shown: Vec<bool> = Vec::with_capacity(self.route.len());
        let stops = self.route.iter().enumerate();
        stops.filter_map(move |(index, stop)| {
            let parent = stop.parent.and_then(|parent| is_shown.get(parent));
            let parent_is_shown = parent.is_none_or(|is_shown| *is_shown);
            let step = &self[stop.position];
            let step_is_shown = parent_is_shown && unpublished.shows_step(step);
            is_shown.push(step_is_shown);
            step_is_shown.then_some((index, step))
        })
    }

    /// A stop and the stops at the subtask steps that lead to it, the innermost first.
    pub fn stops_up_from(&self, stop: usize) -> impl Iterator<Item = &GuideStop> {
        std::iter::successors(self.route.get(stop), |stop| self.route.get(stop.parent?))
    }
}

impl Walk<'_> {
    fn enter(&mut self, task: usize, parent: Option<usize>) -> Result<(), GuideLimit> {
        let guide = self.guide;
        let steps = guide.steps(task);
        let condition_counts = steps.iter().map(|step| step.conditions.len());
        let conditions = condition_counts.sum::<usize>() + guide.task(task).conditions.len();
        self.size = self.size.plus(steps.len(), conditions)?;
        let level = self.entered.len();
        self.entered.push(task);
        for (step, guide_step) in steps.iter().enumerate() {
            let entry = match guide_step.subtask {
                None => SubtaskEntry::NoTask,
                Some(task) if self.entered.contains(&task) => SubtaskEntry::Cycle,
                Some(_) if self.entered.len() > MAX_SUBTASK_LEVELS => SubtaskEntry::TooDeep,
                Some(_) => SubtaskEntry::Enter,
            };
            self.route.push(GuideStop {
                position: StepPosition { task, step },
                parent,
                level,
                entry,
            });
            let Some(subtask) = guide_step.subtask else {
                continue;
            };
            if entry == SubtaskEntry::Enter {
                self.enter(subtask, Some(self.route.len() - 1))?;
            } else {
                // The conditions of the task are read even if it is not entered.
                self.size = self.size.plus(0, guide.task(subtask).conditions.len())?;
            }
        }
        self.entered.pop();
        Ok(())
    }
}
