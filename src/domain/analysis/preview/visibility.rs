//! The visibility of a guide's steps for given answers.

use std::collections::BTreeSet;

use crate::domain::{
    analysis::{
        CompiledCondition, Evaluation, Evaluator, Guide, GuideStep, StepPosition, SubtaskEntry,
        Truth, VariableId, VariableValue, Visit, budget::Budget, evaluate,
    },
    task::AccessLevel,
};

use super::{GuideState, PreviewOptions};

/// Why a task or step is not visible, with the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibilityReason {
    NotPublished = 1,
    /// The roles of the task do not include the level.
    Level = 2,
    Condition = 3,
    /// A visible END comes before it.
    AfterEnd = 4,
    /// The task that the step refers to is not visible.
    SubtaskHidden = 5,
    /// The step leads back to a task that the walk is inside of.
    SubtaskCycle = 6,
    /// Its task, or the subtask step that leads to it, is not visible.
    TaskHidden = 7,
    /// It may depend on an unknown value.
    UnknownValue = 8,
}

#[derive(Clone, Debug)]
pub struct ListedStep {
    pub position: StepPosition,
    /// The subtask steps that lead to it, the outermost first.
    pub via: Vec<StepPosition>,
    pub visible: Truth,
    pub reasons: Vec<VisibilityReason>,
}

/// The work of a step in a walk. A preview has enough for about 2,000,000 of them. After that,
/// variables that further walks would find unanswered stay unknown.
const VISIT_WORK: usize = 38;

/// A guide as a viewer sees it with given answers.
pub struct GuideView<'a> {
    pub guide: &'a Guide,
    options: &'a PreviewOptions,
    pub state: GuideState,
    pub evaluation: Evaluation<Truth>,
}

struct PreviewEvaluator<'a> {
    guide: &'a Guide,
    options: &'a PreviewOptions,
    state: &'a GuideState,
    budget: &'a Budget<'a>,
}

impl Evaluator for PreviewEvaluator<'_> {
    type Value = Truth;
    const SHOWS_CYCLES: bool = false;

    fn condition(&mut self, condition: &CompiledCondition) -> Truth {
        condition.truth(self.state.value(condition.variable))
    }

    fn all(&mut self, values: impl IntoIterator<Item = Truth>) -> Truth {
        Truth::all(values)
    }

    fn step_is_published(&mut self, step: &GuideStep) -> Option<Truth> {
        Some(self.options.unpublished.shows_step(step).into())
    }

    fn task_is_open(&mut self, task: usize) -> Truth {
        let content = &self.guide.task(task).task.content;
        let is_published = self.options.unpublished.shows(content.published);
        (is_published && self.options.has_level(&content.roles)).into()
    }

    fn leave(&mut self, _: &GuideStep, _: &Visit<Truth>) {}

    fn is_stopped(&self) -> bool {
        self.budget.is_stopped()
    }
}

impl PreviewOptions {
    fn has_level(&self, roles: &[AccessLevel]) -> bool {
        self.level.is_none_or(|level| roles.contains(&level))
    }
}

impl<'a> GuideView<'a> {
    /// Evaluates a guide. A variable becomes unanswered if only the guide sets it and all of its
    /// observations are hidden. That may hide further observations, so it is repeated until nothing
    /// changes. If there is no observation left to ask, all remaining variables that only the guide
    /// sets become unanswered, too. `None` if the call is over.
    pub fn new(
        guide: &'a Guide,
        options: &'a PreviewOptions,
        mut state: GuideState,
        budget: &Budget<'_>,
    ) -> Option<Self> {
        loop {
            let mut evaluator = PreviewEvaluator {
                guide,
                options,
                state: &state,
                budget,
            };
            let view = Self {
                evaluation: evaluate(guide, &mut evaluator)?,
                guide,
                options,
                state,
            };
            let shown = view.shown_variables();
            let mut open: Vec<VariableId> = (0..guide.variables.len()).map(VariableId).collect();
            open.retain(|id| guide[*id].is_set_in_guide_only() && view.state.value(*id).is_none());
            let has_hidden = open.iter().any(|id| !shown.contains(id));
            if has_hidden && budget.work.spend(VISIT_WORK * guide.route.len()) {
                open.retain(|id| !shown.contains(id));
            } else if open.is_empty() || !view.next_observation().is_empty() {
                return Some(view);
            }
            state = view.state;
            open.into_iter().for_each(|id| state.set_unanswered(id));
        }
    }

    /// The variables that visible and undetermined observations set.
    fn shown_variables(&self) -> BTreeSet<VariableId> {
        let visits = self.evaluation.visits.iter();
        let shown = visits.filter(|visit| visit.visible != Truth::False);
        let variables = shown.flat_map(|visit| &self.guide[visit.position].sets);
        variables.copied().collect()
    }

    /// The names in the answers whose observations are all in the guide and all hidden.
    pub fn hidden_answers(&self) -> Vec<String> {
        let shown = self.shown_variables();
        let is_hidden = |name: &str| {
            let set = self.guide.variables_named(name);
            let mut set = set.filter(|id| !self.guide[*id].setters.is_empty());
            let is_shown =
                |id: VariableId| self.guide[id].outside.may_exist() || shown.contains(&id);
            set.clone().next().is_some() && !set.any(is_shown)
        };
        let answers = self.options.answers.iter();
        let hidden =
            answers.filter(|(name, value)| **value != VariableValue::Unanswered && is_hidden(name));
        hidden.map(|(name, _)| name.clone()).collect()
    }

    /// The first observation that is visible and has no known value: the subtask steps that lead to
    /// it, and itself.
    pub fn next_observation(&self) -> Vec<StepPosition> {
        let mut visits = self.evaluation.visits.iter();
        let next = visits.find(|visit| {
            let step = &self.guide[visit.position];
            let is_open = !step.sets.is_empty() && self.state.answer(step).is_none();
            visit.visible == Truth::True && is_open
        });
        next.map_or(Vec::new(), |visit| self.guide.way_to(visit.stop))
    }

    pub fn task_reasons(&self) -> Vec<VisibilityReason> {
        use VisibilityReason::{Condition, Level, NotPublished, UnknownValue};
        let content = &self.guide.root().task.content;
        let is_published = self.options.unpublished.shows(content.published);
        let holds = self.evaluation.task_holds;
        applying([
            (!is_published, NotPublished),
            (!self.options.has_level(&content.roles), Level),
            (holds == Truth::False, Condition),
            (holds == Truth::Unknown, UnknownValue),
        ])
    }

    pub fn listed_step(&self, visit: &Visit<Truth>) -> ListedStep {
        use VisibilityReason::{
            AfterEnd, Condition, NotPublished, SubtaskCycle, SubtaskHidden, TaskHidden,
            UnknownValue,
        };
        let subtask = visit.subtask.map_or(Truth::True, |subtask| {
            Truth::all([subtask.is_open, subtask.condition])
        });
        let is_cycle = self.guide.stop(visit.stop).entry == SubtaskEntry::Cycle;
        let parts = [visit.condition, visit.before_end, subtask, visit.entered];
        let mut via = self.guide.way_to(visit.stop);
        via.pop();
        ListedStep {
            position: visit.position,
            via,
            visible: visit.visible,
            reasons: applying([
                (visit.published == Truth::False, NotPublished),
                (visit.condition == Truth::False, Condition),
                (visit.before_end == Truth::False, AfterEnd),
                (subtask != Truth::True, SubtaskHidden),
                (is_cycle, SubtaskCycle),
                (visit.entered != Truth::True, TaskHidden),
                (parts.contains(&Truth::Unknown), UnknownValue),
            ]),
        }
    }
}

impl Guide {
    /// The step of a stop, after the subtask steps that lead to it, the outermost first.
    fn way_to(&self, stop: usize) -> Vec<StepPosition> {
        let stops = self.stops_up_from(stop);
        let mut way: Vec<StepPosition> = stops.map(|stop| stop.position).collect();
        way.reverse();
        way
    }
}

fn applying<const N: usize>(reasons: [(bool, VisibilityReason); N]) -> Vec<VisibilityReason> {
    let applying = reasons.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, reason)| reason).collect()
}
