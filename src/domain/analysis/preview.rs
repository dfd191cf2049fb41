//! A preview: which steps of a guide are visible with given answers, and why.

use std::collections::BTreeMap;

use crate::domain::{
    error::{Error, Result},
    page::PAGE_BYTES,
    task::AccessLevel,
    violation::{Path, Reason},
};

use super::{
    Guide, GuideLimit, StepPosition, StopSignal, Truth, Unpublished, VariableValue, budget::Budget,
};

mod open_variables;
mod state;
mod text;
mod visibility;

pub use open_variables::OpenVariable;
pub use state::GuideState;
pub use text::{ChosenText, TextLanguages};
pub use visibility::{ListedStep, VisibilityReason};

use visibility::GuideView;

pub const MAX_VARIABLE_NAMES: usize = 1_000;
/// The maximum length of a variable's full name, in code points: a path, a dot and a variable.
pub const MAX_FULL_NAME_CHARS: usize = 2_001;
/// The maximum length of an answer's text, in code points: the same as for a key.
pub const MAX_ANSWER_CHARS: usize = 1_000;
/// The maximum bytes of the names and keys of open variables.
const MAX_OPEN_BYTES: usize = 1024 * 1024;
pub const MAX_FALLBACK_LANGUAGES: usize = 10;

/// The known values of variables, by the names that the request uses.
pub type Answers = BTreeMap<String, VariableValue>;

#[derive(Clone, Debug, Default)]
pub struct PreviewOptions {
    /// The access level of the viewer; `None` ignores the roles of tasks.
    pub level: Option<AccessLevel>,
    pub texts: TextLanguages,
    pub answers: Answers,
    pub unpublished: Unpublished,
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
    /// Answers that nothing in the guide reads or sets, sorted.
    pub unused_answers: Vec<String>,
    /// Answers of observations that are all hidden.
    pub hidden_answers: Vec<String>,
}

impl Preview {
    /// Evaluates a guide. `source` is the field of the request that names it. `None` if the call is
    /// over.
    pub fn new(
        guide: Guide,
        options: PreviewOptions,
        source: &Path<'_>,
        stop: StopSignal<'_>,
    ) -> Result<Option<Self>> {
        if let Some(GuideLimit(what, max)) = guide.limit {
            let description = format!("has more than {max} {what}, including its subtasks");
            return Err(Error::invalid(source, Reason::TooManyElements, description));
        }
        let state = GuideState::from_answers(&guide, &options.answers)?;
        let budget = Budget::new(MAX_OPEN_BYTES, stop);
        let Some(view) = GuideView::new(&guide, &options, state, &budget) else {
            return Ok(None);
        };
        let listed = || {
            let visits = view.evaluation.visits.iter();
            visits.filter(|visit| guide.stop(visit.stop).level <= options.subtask_depth)
        };
        let unused = options.answers.keys();
        let unused = unused.filter(|name| guide.variables_named(name).next().is_none());
        Ok(Some(Self {
            visible: view.evaluation.root_visible,
            reasons: view.task_reasons(),
            steps: listed().map(|visit| view.listed_step(visit)).collect(),
            next_observation: view.next_observation(),
            open_variables: view.open_variables(listed(), &budget),
            unused_answers: unused.cloned().collect(),
            hidden_answers: view.hidden_answers(),
            state: view.state,
            texts: options.texts,
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
                bytes = bytes.saturating_add(self.guide[listed.position].body_bytes);
            }
            fits
        };
        let count = rest.iter().take(size).take_while(fits).count();
        rest.get(..count).unwrap_or_default()
    }
}
