//! Where the steps of a guide stand in the order of a walk, unpublished ones included.

use std::collections::HashMap;

use crate::domain::analysis::{Guide, StepPosition};

/// When a walk comes to each step first and last, and when it last comes to a subtask step of
/// each task, counted in visited steps. A task that several subtask steps enter is visited
/// several times, and so are its steps.
#[derive(Debug)]
pub struct GuideOrder {
    steps: HashMap<StepPosition, (usize, usize)>,
    tasks: HashMap<usize, usize>,
}

impl GuideOrder {
    /// The order of a guide; that of one that exceeds a limit is empty.
    pub fn new(guide: &Guide) -> Self {
        let mut order = Self {
            steps: HashMap::new(),
            tasks: HashMap::from([(0, 0)]),
        };
        for (stop, place) in guide.route.iter().zip(1..) {
            order.steps.entry(stop.position).or_insert((place, place)).1 = place;
            if let Some(subtask) = guide.step(stop.position).and_then(|step| step.subtask) {
                order.tasks.insert(subtask, place);
            }
        }
        order
    }

    pub fn first_of_step(&self, step: StepPosition) -> Option<usize> {
        self.steps.get(&step).map(|(first, _)| *first)
    }

    pub fn last_of_step(&self, step: StepPosition) -> Option<usize> {
        self.steps.get(&step).map(|(_, last)| *last)
    }

    /// When a walk last reads the dependencies of a task.
    pub fn last_of_task(&self, task: usize) -> Option<usize> {
        self.tasks.get(&task).copied()
    }
}
