//! Which steps of a guide are visible, along one walk. Previews evaluate to truths, and validations to
//! literals of a formula, so that both follow the same rules.

use std::{ops::Not, slice};

use crate::domain::{
    dependency::{Group, LogicalOperator, Node},
    step::StepType,
};

use super::{
    condition::{CompiledCondition, Dependencies},
    guide::{Guide, GuideStep, StepPosition, SubtaskEntry},
};

/// What an evaluation depends on: a viewer, and the values of variables. Results are truths or
/// literals of a formula.
pub trait Evaluator {
    type Value: Copy + Not<Output = Self::Value>;
    /// Whether a subtask step is visible if it leads back to a task that the walk is inside of.
    const SHOWS_CYCLES: bool;

    fn condition(&mut self, condition: &CompiledCondition) -> Self::Value;
    fn all(&mut self, values: impl IntoIterator<Item = Self::Value>) -> Self::Value;

    fn any(&mut self, values: impl IntoIterator<Item = Self::Value>) -> Self::Value {
        !self.all(values.into_iter().map(Not::not))
    }

    /// Whether dependencies hold. Without dependencies they do.
    fn holds(&mut self, dependencies: Option<Dependencies<'_>>) -> Self::Value {
        match dependencies {
            None => self.all([]),
            Some(Dependencies { group, conditions }) => {
                evaluate_group(group, &mut conditions.iter(), self)
            }
        }
    }

    /// Whether `published` makes a step visible; `None` if the walk leaves the step out.
    fn step_is_published(&mut self, step: &GuideStep) -> Option<Self::Value>;

    /// Whether `published` and the roles of a task make it visible.
    fn task_is_open(&mut self, task: usize) -> Self::Value;

    /// Called after each visit, before the next one.
    fn leave(&mut self, step: &GuideStep, visit: &Visit<Self::Value>);

    fn is_stopped(&self) -> bool;
}

/// A step in a walk: a stop of the route that is not left out.
#[derive(Clone, Debug)]
pub struct Visit<V> {
    /// The index of the stop in [`Guide::route`].
    pub stop: usize,
    pub position: StepPosition,
    pub published: V,
    /// Whether the task is visible, and the subtask step that leads to it.
    pub entered: V,
    /// Whether no visible END of the task comes before it.
    pub before_end: V,
    /// Whether the walk reaches it: `entered` and `before_end`.
    pub reached: V,
    /// Whether its dependencies hold.
    pub condition: V,
    pub subtask: Option<TaskVisit<V>>,
    /// Whether it is visible; for a subtask step, this includes the task that it refers to.
    pub visible: V,
}

/// The task that a visited subtask step refers to.
#[derive(Clone, Copy, Debug)]
pub struct TaskVisit<V> {
    pub task: usize,
    /// Whether `published` and its roles make it visible.
    pub is_open: V,
    /// Whether the walk reaches it: only its dependencies can still hide it.
    pub reached: V,
    /// Whether its dependencies hold.
    pub condition: V,
}

#[derive(Clone, Debug)]
pub struct Evaluation<V> {
    /// Whether the dependencies of the task hold.
    pub task_holds: V,
    /// Whether the root is visible: it is open and its dependencies hold.
    pub root_visible: V,
    /// In the order of the route.
    pub visits: Vec<Visit<V>>,
}

/// Walks through a guide; `None` if it was stopped.
pub fn evaluate<E: Evaluator>(guide: &Guide, evaluator: &mut E) -> Option<Evaluation<E::Value>> {
    let root = guide.root().dependencies();
    let is_open = evaluator.task_is_open(0);
    let task_holds = evaluator.holds(root);
    let root_visible = evaluator.all([is_open, task_holds]);
    let mut visits = Vec::with_capacity(guide.route.len());
    let mut seen: Vec<Option<E::Value>> = Vec::with_capacity(guide.route.len());
    // For each task that the walk is inside of, whether no END was visible.
    let mut before_ends: Vec<E::Value> = Vec::new();
    for (index, stop) in guide.route.iter().enumerate() {
        if evaluator.is_stopped() {
            return None;
        }
        before_ends.truncate(stop.level + 1);
        if before_ends.len() <= stop.level {
            before_ends.push(evaluator.all([]));
        }
        let entered = match stop.parent {
            None => Some(root_visible),
            Some(parent) => seen.get(parent).copied().flatten(),
        };
        let step = &guide[stop.position];
        let (Some(entered), Some(published), Some(before_end)) = (
            entered,
            evaluator.step_is_published(step),
            before_ends.last_mut(),
        ) else {
            seen.push(None);
            continue;
        };
        let reached = evaluator.all([entered, *before_end]);
        let condition = evaluator.holds(step.dependencies());
        let mut visible = evaluator.all([reached, published, condition]);
        let subtask = guide.subtask(step).zip(step.subtask).map(|(task, index)| {
            let is_open = evaluator.task_is_open(index);
            TaskVisit {
                task: index,
                is_open,
                reached: evaluator.all([is_open, visible]),
                condition: evaluator.holds(task.dependencies()),
            }
        });
        if let Some(subtask) = subtask {
            visible = evaluator.all([subtask.reached, subtask.condition]);
        }
        if stop.entry == SubtaskEntry::Cycle && !E::SHOWS_CYCLES {
            // It is never visible.
            visible = evaluator.any([]);
        }
        let visit = Visit {
            stop: index,
            position: stop.position,
            published,
            entered,
            before_end: *before_end,
            reached,
            condition,
            subtask,
            visible,
        };
        if step.step_type() == StepType::End {
            // Ignore `entered`: it is the same for all steps of the task.
            let end_visible = evaluator.all([*before_end, published, condition]);
            *before_end = evaluator.all([*before_end, !end_visible]);
        }
        evaluator.leave(step, &visit);
        visits.push(visit);
        seen.push(Some(visible));
    }
    Some(Evaluation {
        task_holds,
        root_visible,
        visits,
    })
}

fn evaluate_group<E: Evaluator + ?Sized>(
    group: &Group,
    conditions: &mut slice::Iter<'_, CompiledCondition>,
    evaluator: &mut E,
) -> E::Value {
    let nodes = group.nodes.iter().filter_map(|node| match node {
        Node::Group(group) => Some(evaluate_group(group, conditions, evaluator)),
        Node::Condition(_) => Some(evaluator.condition(conditions.next()?)),
    });
    let nodes: Vec<E::Value> = nodes.collect();
    match group.operator {
        LogicalOperator::And => evaluator.all(nodes),
        LogicalOperator::Or => evaluator.any(nodes),
    }
}
