//! The visibility of a guide's steps in one state.

use std::collections::BTreeSet;

use crate::domain::{
    analysis::{
        CompiledCondition, Evaluation, Evaluator, Guide, GuideStep, StepPosition, SubtaskEntry,
        Truth, VariableId, VariableValue, Visit, budget::Budget, evaluate,
    },
    task::AccessLevel,
};

use super::{Answers, GuideState, PreviewOptions, VariablesByName};

/// Why a task or step is not visible, in the order of the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibilityReason {
    NotPublished = 1,
    /// The roles of the task lack the level.
    Level,
    Condition,
    /// A visible END comes before it.
    AfterEnd,
    /// The task that the step refers to is not visible.
    SubtaskHidden,
    /// The step leads back to a task that the walk is inside of.
    SubtaskCycle,
    /// Its task, or the subtask step that it is reached by, is not visible.
    TaskHidden,
    /// It may depend on a value that is not known.
    UnknownValue,
}

#[derive(Clone, Debug)]
pub struct ListedStep {
    pub position: StepPosition,
    /// The subtask steps that it is reached by, the outermost first.
    pub via: Vec<StepPosition>,
    pub visible: Truth,
    pub reasons: Vec<VisibilityReason>,
}

/// The work of a step in a walk. A preview has enough for about 2,000,000 of them. Variables that
/// later walks would find unanswered stay unknown.
const VISIT_WORK: usize = 38;

struct PreviewEvaluator<'a> {
    guide: &'a Guide,
    state: &'a GuideState,
    options: &'a PreviewOptions,
    budget: &'a Budget<'a>,
}

impl Evaluator for PreviewEvaluator<'_> {
    type Value = Truth;

    fn condition(&mut self, condition: &CompiledCondition) -> Truth {
        condition.truth(self.state.value(condition.variable))
    }

    fn all(&mut self, values: impl IntoIterator<Item = Truth>) -> Truth {
        Truth::all(values)
    }

    fn not(&mut self, value: Truth) -> Truth {
        !value
    }

    fn step_is_published(&mut self, step: &GuideStep) -> Option<Truth> {
        Some(self.options.unpublished.shows_step(step).into())
    }

    fn task_is_open(&mut self, task: usize) -> Truth {
        let content = &self.guide.task(task).source.task.content;
        let is_published = self.options.unpublished.shows(content.published);
        (is_published && self.options.has_level(&content.roles)).into()
    }

    fn cycle_is_visible(&mut self) -> Truth {
        Truth::False
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

/// Evaluates a guide. Mutates `state`: a variable becomes unanswered if only the guide sets it and all
/// of its observations are hidden. That may hide further observations, so it is repeated until nothing
/// changes. If no observation is left that could be asked, all remaining variables that only the guide
/// sets become unanswered, too. `None` if nobody waits for it any more.
pub fn resolve_visibility(
    guide: &Guide,
    state: &mut GuideState,
    options: &PreviewOptions,
    budget: &Budget<'_>,
) -> Option<Evaluation<Truth>> {
    loop {
        let mut evaluator = PreviewEvaluator {
            guide,
            state,
            options,
            budget,
        };
        let evaluation = evaluate(guide, &mut evaluator)?;
        let shown = shown_variables(guide, &evaluation);
        let mut open: Vec<VariableId> = (0..guide.variables.len()).map(VariableId).collect();
        open.retain(|id| guide[*id].is_set_in_guide_only() && state.value(*id).is_none());
        let has_hidden = open.iter().any(|id| !shown.contains(id));
        if has_hidden && budget.work.spend(VISIT_WORK * guide.route.len()) {
            open.retain(|id| !shown.contains(id));
        } else if open.is_empty() || !next_observation(guide, &evaluation, state).is_empty() {
            return Some(evaluation);
        }
        open.into_iter().for_each(|id| state.set_unanswered(id));
    }
}

/// The variables that visible and undetermined observations set.
fn shown_variables(guide: &Guide, evaluation: &Evaluation<Truth>) -> BTreeSet<VariableId> {
    let visits = evaluation.visits.iter();
    let shown = visits.filter(|visit| visit.visible != Truth::False);
    let variables = shown.flat_map(|visit| &guide[visit.position].sets);
    variables.copied().collect()
}

/// The names in the answers whose observations are all in the guide and all hidden.
pub fn hidden_answers(
    guide: &Guide,
    names: &VariablesByName<'_>,
    evaluation: &Evaluation<Truth>,
    answers: &Answers,
) -> Vec<String> {
    let shown = shown_variables(guide, evaluation);
    let is_hidden = |name: &str| {
        let set = names.get(name).into_iter().flatten();
        let mut set = set.filter(|id| !guide[**id].setters.is_empty()).peekable();
        let is_shown = |id: VariableId| guide[id].outside.may_exist() || shown.contains(&id);
        set.peek().is_some() && !set.any(|id| is_shown(*id))
    };
    let hidden = answers
        .iter()
        .filter(|(name, value)| **value != VariableValue::Unanswered && is_hidden(name));
    hidden.map(|(name, _)| name.clone()).collect()
}

impl ListedStep {
    pub(super) fn new(guide: &Guide, visit: &Visit<Truth>) -> Self {
        Self {
            position: visit.position,
            via: guide.via(visit.stop),
            visible: visit.visible,
            reasons: step_reasons(guide, visit),
        }
    }
}

/// The first observation that is visible and has no known value: the subtask steps that lead to it,
/// and itself.
pub fn next_observation(
    guide: &Guide,
    evaluation: &Evaluation<Truth>,
    state: &GuideState,
) -> Vec<StepPosition> {
    let mut visible = evaluation
        .visits
        .iter()
        .filter(|visit| visit.visible == Truth::True);
    let next = visible.find(|visit| {
        let step = &guide[visit.position];
        !step.sets.is_empty() && state.answer(step).is_none()
    });
    next.map_or(Vec::new(), |visit| {
        let mut stops = guide.via(visit.stop);
        stops.push(visit.position);
        stops
    })
}

impl Guide {
    /// The subtask steps that lead to a stop, the outermost first.
    fn via(&self, stop: usize) -> Vec<StepPosition> {
        let stops = self.stops_up_from(stop).skip(1);
        let mut via: Vec<StepPosition> = stops.map(|stop| stop.position).collect();
        via.reverse();
        via
    }
}

pub fn task_reasons(
    guide: &Guide,
    evaluation: &Evaluation<Truth>,
    options: &PreviewOptions,
) -> Vec<VisibilityReason> {
    use VisibilityReason::{Condition, Level, NotPublished, UnknownValue};
    let content = &guide.root().source.task.content;
    applying([
        (!options.unpublished.shows(content.published), NotPublished),
        (!options.has_level(&content.roles), Level),
        (evaluation.task_holds == Truth::False, Condition),
        (evaluation.task_holds == Truth::Unknown, UnknownValue),
    ])
}

fn step_reasons(guide: &Guide, visit: &Visit<Truth>) -> Vec<VisibilityReason> {
    let subtask = visit.subtask.map_or(Truth::True, |subtask| {
        Truth::all([subtask.is_open, subtask.condition])
    });
    let is_cycle = guide.stop(visit.stop).entry == SubtaskEntry::Cycle;
    let parts = [visit.condition, visit.before_end, subtask, visit.entered];
    use VisibilityReason::{
        AfterEnd, Condition, NotPublished, SubtaskCycle, SubtaskHidden, TaskHidden, UnknownValue,
    };
    applying([
        (visit.published == Truth::False, NotPublished),
        (visit.condition == Truth::False, Condition),
        (visit.before_end == Truth::False, AfterEnd),
        (subtask != Truth::True, SubtaskHidden),
        (is_cycle, SubtaskCycle),
        (visit.entered != Truth::True, TaskHidden),
        (parts.contains(&Truth::Unknown), UnknownValue),
    ])
}

fn applying<const N: usize>(reasons: [(bool, VisibilityReason); N]) -> Vec<VisibilityReason> {
    let applying = reasons.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, reason)| reason).collect()
}
