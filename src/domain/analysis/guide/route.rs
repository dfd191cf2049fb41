//! The route: every step in visiting order, once per path that leads to it. After a subtask step come
//! the steps of the task that it enters.

use super::{
    Guide, GuideLimit, GuideSize, GuideStep, MAX_SUBTASK_LEVELS, StepPosition, Unpublished,
};

/// A step of the route, which has it once per path of subtask steps that leads to it.
#[derive(Clone, Copy, Debug)]
pub struct GuideStop {
    pub position: StepPosition,
    /// The stop at the subtask step that entered the task: its index in [`Guide::route`].
    pub parent: Option<usize>,
    /// How many subtask steps lead to it.
    pub level: usize,
    pub entry: SubtaskEntry,
}

/// Whether a walk enters the task that a subtask step refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubtaskEntry {
    /// The step refers to no task, or to one that a limit cut off.
    NoTask,
    Enter,
    /// It does not enter the task, as it is inside it already.
    Cycle,
    /// It does not enter the task, as it is more than [`MAX_SUBTASK_LEVELS`] levels deep.
    TooDeep,
}

struct Walk<'a> {
    guide: &'a Guide,
    /// The tasks that it is inside of: the root first.
    entered: Vec<usize>,
    size: GuideSize,
    route: Vec<GuideStop>,
}

impl Guide {
    /// Finds the route. Fails if its steps and conditions exceed a limit; those of a task count at
    /// each subtask step that enters it. It ends at the limit, as shared subtasks could make it very
    /// long.
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

    /// The indexes of the stops at steps that are shown, as are the subtask steps that lead to them.
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

    /// A stop and those at the subtask steps that lead to it, the innermost first.
    pub fn stops_up_from(&self, stop: usize) -> impl Iterator<Item = &GuideStop> {
        std::iter::successors(self.route.get(stop), |stop| self.route.get(stop.parent?))
    }
}

impl Walk<'_> {
    fn enter(&mut self, task: usize, parent: Option<usize>) -> Result<(), GuideLimit> {
        let guide = self.guide;
        let steps = guide.steps(task);
        let of_steps = steps.iter().map(|step| step.conditions.len());
        let conditions = of_steps.sum::<usize>() + guide.task(task).conditions.len();
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
                // The conditions of the task are read where it is not entered, too.
                self.size = self.size.plus(0, guide.task(subtask).conditions.len())?;
            }
        }
        self.entered.pop();
        Ok(())
    }
}
