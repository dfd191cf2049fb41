//! The visibility of a guide's steps in one state.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    analysis::{
        CompiledCondition, Evaluation, Evaluator, Guide, GuideStep, Logic, StepPosition,
        StopSignal, SubtaskEntry, Truth, VariableId, VariableValue, Visit, evaluate,
    },
    task::Published,
};

use super::{GuideState, PreviewOptions};

/// Why a task or step is not visible, in the order of the contract's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisibilityReason {
    NotPublished,
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

/// Maximum step visits per preview. Beyond it, variables that later walks would find unanswered stay
/// unknown.
const MAX_VISITS: usize = 2_000_000;

/// The truth of everything in one state.
struct PreviewEvaluator<'a> {
    guide: &'a Guide,
    state: &'a GuideState,
    options: &'a PreviewOptions,
    stop: StopSignal<'a>,
}

impl Logic for PreviewEvaluator<'_> {
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
}

impl Evaluator for PreviewEvaluator<'_> {
    fn step_is_published(&mut self, step: &GuideStep) -> Option<Truth> {
        let published = step.source.step.content.published;
        Some(self.options.shows(published).into())
    }

    fn task_is_open(&mut self, task: usize) -> Truth {
        let task = self.guide.tasks.get(task);
        let content = task.map(|task| &task.source.task.content);
        let is_open = content.is_none_or(|content| {
            let level = self.options.level;
            self.options.shows(content.published)
                && level.is_none_or(|level| content.roles.contains(&level))
        });
        is_open.into()
    }

    fn cycle_is_visible(&mut self) -> Truth {
        Truth::False
    }

    fn leave(&mut self, _: &GuideStep, _: &Visit<Truth>) {}

    fn is_stopped(&self) -> bool {
        self.stop.is_given()
    }
}

impl PreviewOptions {
    fn shows(&self, published: Published) -> bool {
        self.include_unpublished || published == Published::default()
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
    stop: StopSignal<'_>,
) -> Option<Evaluation<Truth>> {
    let mut visits_left = MAX_VISITS;
    loop {
        let mut evaluator = PreviewEvaluator {
            guide,
            state,
            options,
            stop,
        };
        let evaluation = evaluate(guide, &mut evaluator)?;
        let variables = guide.variables.iter().enumerate();
        let open = variables
            .filter(|(_, variable)| variable.is_set_in_guide_only())
            .map(|(index, _)| VariableId(index))
            .filter(|id| state.value(*id).is_none());
        let mut open: BTreeSet<VariableId> = open.collect();
        let hidden: BTreeSet<VariableId> = open
            .difference(&shown_variables(guide, &evaluation))
            .copied()
            .collect();
        let can_repeat = visits_left >= guide.route.len();
        if can_repeat && !hidden.is_empty() {
            visits_left -= guide.route.len();
            open = hidden;
        } else if !next_observation(guide, &evaluation, state).is_empty() {
            return Some(evaluation);
        }
        if open.is_empty() {
            return Some(evaluation);
        }
        open.into_iter().for_each(|id| state.set_unanswered(id));
    }
}

/// The variables that observations set which are not hidden.
fn shown_variables(guide: &Guide, evaluation: &Evaluation<Truth>) -> BTreeSet<VariableId> {
    let visits = evaluation.visits.iter();
    let shown = visits.filter(|visit| visit.visible != Truth::False);
    let steps = shown.filter_map(|visit| guide.step(visit.position));
    steps.flat_map(|step| &step.sets).copied().collect()
}

/// The names in the answers whose observations are all in the guide and all hidden.
pub fn hidden_answers(
    guide: &Guide,
    evaluation: &Evaluation<Truth>,
    answers: &BTreeMap<String, VariableValue>,
) -> Vec<String> {
    let shown = shown_variables(guide, evaluation);
    let mut is_hidden: BTreeMap<&str, bool> = BTreeMap::new();
    let variables = guide.variables.iter().enumerate();
    for (index, variable) in variables.filter(|(_, variable)| !variable.setters.is_empty()) {
        let is_shown = variable.outside.may_exist() || shown.contains(&VariableId(index));
        *is_hidden.entry(&variable.name).or_insert(true) &= !is_shown;
    }
    let answers = answers.iter().filter(|(name, value)| {
        let is_hidden = is_hidden.get(name.as_str()).copied().unwrap_or_default();
        is_hidden && **value != VariableValue::Unanswered
    });
    answers.map(|(name, _)| name.clone()).collect()
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
        let step = guide.step(visit.position);
        step.is_some_and(|step| !step.sets.is_empty() && state.answer(step).is_none())
    });
    next.map_or(Vec::new(), |visit| {
        let via = guide.via(visit.stop).into_iter();
        via.chain([visit.position]).collect()
    })
}

impl Guide {
    /// How many subtask steps lead to a stop.
    pub(super) fn level(&self, stop: usize) -> usize {
        self.route.get(stop).map_or(0, |stop| stop.level)
    }

    /// The subtask steps that lead to a stop, the outermost first.
    fn via(&self, stop: usize) -> Vec<StepPosition> {
        let stops = self.stops_up_from(stop).skip(1);
        let mut via: Vec<StepPosition> = stops.map(|stop| stop.position).collect();
        via.reverse();
        via
    }
}

/// Why the guide's task is not visible.
pub fn task_reasons(
    guide: &Guide,
    evaluation: &Evaluation<Truth>,
    options: &PreviewOptions,
) -> Vec<VisibilityReason> {
    let content = guide.root().map(|root| &root.source.task.content);
    let is_published = content.is_none_or(|content| options.shows(content.published));
    let has_level = content.zip(options.level);
    let has_level = has_level.is_none_or(|(content, level)| content.roles.contains(&level));
    applying([
        (!is_published, VisibilityReason::NotPublished),
        (!has_level, VisibilityReason::Level),
        (
            evaluation.task_holds == Truth::False,
            VisibilityReason::Condition,
        ),
        (
            evaluation.task_holds == Truth::Unknown,
            VisibilityReason::UnknownValue,
        ),
    ])
}

fn step_reasons(guide: &Guide, visit: &Visit<Truth>) -> Vec<VisibilityReason> {
    let subtask = visit.subtask.map_or(Truth::True, |subtask| {
        Truth::all([subtask.is_open, subtask.condition])
    });
    let stop = guide.route.get(visit.stop);
    let is_cycle = stop.is_some_and(|stop| matches!(stop.entry, SubtaskEntry::Cycle(_)));
    let parts = [visit.condition, visit.before_end, subtask, visit.entered];
    applying([
        (
            visit.published == Truth::False,
            VisibilityReason::NotPublished,
        ),
        (visit.condition == Truth::False, VisibilityReason::Condition),
        (visit.before_end == Truth::False, VisibilityReason::AfterEnd),
        (subtask != Truth::True, VisibilityReason::SubtaskHidden),
        (is_cycle, VisibilityReason::SubtaskCycle),
        (visit.entered != Truth::True, VisibilityReason::TaskHidden),
        (
            parts.contains(&Truth::Unknown),
            VisibilityReason::UnknownValue,
        ),
    ])
}

/// The reasons that apply, in their order.
fn applying<const N: usize>(reasons: [(bool, VisibilityReason); N]) -> Vec<VisibilityReason> {
    let applying = reasons.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, reason)| reason).collect()
}
