//! The route: every step in visiting order, once per path that leads to it. After a subtask step come
//! the steps of the task that it enters.

use super::{Guide, GuideLimit, GuideStep, MAX_SUBTASK_LEVELS, StepPosition, size::GuideSize};

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
    Enter(usize),
    /// It does not enter this task, as it is inside it already.
    Cycle(usize),
    /// It does not enter this task, as it is more than [`MAX_SUBTASK_LEVELS`] levels deep.
    TooDeep(usize),
}

struct Walk<'a> {
    guide: &'a Guide,
    /// How many conditions each task has, those of its steps included.
    conditions: Vec<usize>,
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
            conditions: self.tasks.iter().map(|task| task.conditions()).collect(),
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
        shows: impl Fn(&GuideStep) -> bool,
    ) -> impl Iterator<Item = (usize, &GuideStep)> {
        let mut is_shown: Vec<bool> = Vec::with_capacity(self.route.len());
        self.route
            .iter()
            .enumerate()
            .filter_map(move |(index, stop)| {
                let parent = stop.parent.and_then(|parent| is_shown.get(parent));
                let parent_is_shown = parent.is_none_or(|is_shown| *is_shown);
                let step = self.step(stop.position);
                let step = step.filter(|step| parent_is_shown && shows(step));
                is_shown.push(step.is_some());
                Some((index, step?))
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
        let conditions = self.conditions.get(task).copied().unwrap_or_default();
        let steps = guide.steps(task);
        self.size = self.size.plus(steps.len(), conditions)?;
        let level = self.entered.len();
        self.entered.push(task);
        for (step, guide_step) in steps.iter().enumerate() {
            let entry = self.entry(guide_step);
            self.route.push(GuideStop {
                position: StepPosition { task, step },
                parent,
                level,
                entry,
            });
            match entry {
                SubtaskEntry::Enter(subtask) => self.enter(subtask, Some(self.route.len() - 1))?,
                // The conditions of the task are read where it is not entered, too.
                SubtaskEntry::Cycle(task) | SubtaskEntry::TooDeep(task) => {
                    let dependencies = guide
                        .tasks
                        .get(task)
                        .and_then(|it| it.dependencies.as_ref());
                    let conditions = dependencies.map_or(0, |group| group.conditions().len());
                    self.size = self.size.plus(0, conditions)?;
                }
                SubtaskEntry::NoTask => {}
            }
        }
        self.entered.pop();
        Ok(())
    }

    fn entry(&self, step: &GuideStep) -> SubtaskEntry {
        match step.subtask {
            None => SubtaskEntry::NoTask,
            Some(task) if self.entered.contains(&task) => SubtaskEntry::Cycle(task),
            Some(task) if self.entered.len() > MAX_SUBTASK_LEVELS => SubtaskEntry::TooDeep(task),
            Some(task) => SubtaskEntry::Enter(task),
        }
    }
}
