//! A preview: which steps of a guide are visible with given answers, and why.

use std::collections::BTreeMap;

use crate::domain::{
    error::{Error, Result},
    page::PAGE_BYTES,
    task::AccessLevel,
    violation::{Path, Reason},
};

use super::{Guide, GuideLimit, StepPosition, StopSignal, Truth, VariableValue, budget::Budget};

mod open;
mod state;
mod text;
mod visibility;

pub use open::{MAX_KEYS, MAX_OPEN_VARIABLES, OpenVariable};
pub use state::GuideState;
pub use text::{AnswerTexts, ChosenText, TextLanguages};
pub use visibility::{ListedStep, VisibilityReason};

pub const MAX_VARIABLE_NAMES: usize = 1_000;
/// Longest full name of a variable, in code points: a path, a dot and a variable.
pub const MAX_FULL_NAME_CHARS: usize = 2_001;
/// Longest text of an answer, in code points: that of a key.
pub const MAX_ANSWER_CHARS: usize = 1_000;
/// Most bytes of the names and keys of open variables.
const MAX_OPEN_BYTES: usize = 1024 * 1024;
pub const MAX_FALLBACK_LANGUAGES: usize = 10;

#[derive(Clone, Debug)]
pub struct PreviewOptions {
    /// The access level that sees the guide; `None` ignores the roles of tasks.
    pub level: Option<AccessLevel>,
    pub texts: TextLanguages,
    /// The known values of variables, by the names that the request uses.
    pub answers: BTreeMap<String, VariableValue>,
    /// Whether unpublished tasks and steps count as published.
    pub include_unpublished: bool,
    /// How many levels of subtasks are listed.
    pub subtask_depth: usize,
}

#[derive(Debug)]
pub struct Preview {
    pub guide: Guide,
    pub state: GuideState,
    pub texts: TextLanguages,
    pub visible: Truth,
    pub reasons: Vec<VisibilityReason>,
    pub steps: Vec<ListedStep>,
    /// The first observation that is visible and has no known value: the subtask steps
    /// that lead to it, and itself.
    pub next_observation: Vec<StepPosition>,
    /// Variables that listed steps of unknown visibility depend on.
    pub open_variables: Vec<OpenVariable>,
    /// Answers that nothing in the guide reads or sets.
    pub unused_answers: Vec<String>,
    /// Answers of observations that are all hidden.
    pub hidden_answers: Vec<String>,
}

impl Preview {
    /// Evaluates a guide. `source` is the field of the request that names it. `None` if nobody
    /// waits for it any more.
    pub fn new(
        guide: Guide,
        options: PreviewOptions,
        source: &Path<'_>,
        stop: StopSignal<'_>,
    ) -> Result<Option<Self>> {
        if let Some(limit) = guide.limit {
            return Err(too_large(limit, source));
        }
        let mut state = GuideState::of_answers(&guide, &options.answers)?;
        let budget = Budget::new(MAX_OPEN_BYTES, stop);
        let evaluation = visibility::resolve_visibility(&guide, &mut state, &options, &budget);
        let Some(evaluation) = evaluation else {
            return Ok(None);
        };
        let listed = || {
            let visits = evaluation.visits.iter();
            visits.filter(|visit| guide.stop(visit.stop).level <= options.subtask_depth)
        };
        let steps = listed().map(|visit| ListedStep::new(&guide, visit));
        Ok(Some(Self {
            visible: evaluation.root_visible,
            reasons: visibility::task_reasons(&guide, &evaluation, &options),
            steps: steps.collect(),
            next_observation: visibility::next_observation(&guide, &evaluation, &state),
            open_variables: open::open_variables(&guide, &state, &evaluation, listed(), &budget),
            unused_answers: state::unused_answers(&guide, &options.answers),
            hidden_answers: visibility::hidden_answers(&guide, &evaluation, &options.answers),
            texts: options.texts,
            state,
            guide,
        }))
    }

    /// At most `size` listed steps from the index `start`. With bodies, the page ends after
    /// the step whose body brings it to [`PAGE_BYTES`].
    pub fn page(&self, start: usize, size: usize, bodies: bool) -> &[ListedStep] {
        let rest = self.steps.get(start..).unwrap_or_default();
        let mut bytes = 0_usize;
        let fits = |listed: &&ListedStep| {
            let fits = bytes < PAGE_BYTES;
            if bodies {
                let step = &self.guide[listed.position].source;
                bytes = bytes.saturating_add(step.body_bytes);
            }
            fits
        };
        let count = rest.iter().take(size).take_while(fits).count();
        rest.get(..count).unwrap_or_default()
    }
}

fn too_large(limit: GuideLimit, source: &Path<'_>) -> Error {
    let (what, max) = limit.most();
    let description = format!("has more than {max} {what}, those of its subtasks included");
    Error::invalid(source, Reason::TooManyElements, description)
}

#[cfg(test)]
mod tests;
