//! All walkthroughs of a guide as one formula: each assignment of its inputs is a
//! walkthrough.
//!
//! The inputs choose the level, the values at the start and the answers. A variable has one
//! literal for each of its [`ValueClasses`](super::classes::ValueClasses); exactly one of
//! them is true.

mod builder;

use std::collections::HashMap;

use crate::domain::{
    analysis::{Guide, GuideStep, StepPosition, StopSignal, VariableId},
    step::StepType,
    task::{AccessLevel, Published},
};

use super::{
    classes::ValueClasses,
    finding::MAX_EXAMPLE_BYTES,
    formula::{Formula, Literal, NodeValues},
    walk::Reads,
};

use builder::WalkthroughBuilder;

/// Most values and targets that are looked up to find the classes of values of a guide.
const MAX_LOOKUPS: usize = 3_000_000;

/// Whether unpublished tasks and steps count as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpublished {
    /// Walkthroughs do not see them.
    Excluded,
    /// They are treated like published ones.
    Included,
}

impl Unpublished {
    /// Whether walkthroughs see what has this `published` value.
    pub fn shows(self, published: Published) -> bool {
        match self {
            Self::Excluded => published == Published::default(),
            Self::Included => true,
        }
    }

    /// Whether walkthroughs can see a step, as far as `published` decides it.
    pub fn shows_step(self, step: &GuideStep) -> bool {
        self.shows(step.source.step.content.published)
    }
}

/// A step in walkthroughs, as it is reached in one way. A step has several visits if several
/// subtask steps enter its task.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The step.
    pub position: StepPosition,
    /// Whether the walkthrough comes to it.
    pub comes: Literal,
    /// Whether its dependencies hold there.
    pub holds: Literal,
    /// Whether the walkthrough sees it.
    pub sees: Literal,
    /// The task that it refers to.
    pub subtask: Option<TaskVisit>,
    /// For each answer, whether the walkthrough chooses it, and its index. Answers that no
    /// condition distinguishes share one entry. The list is empty if no condition reads the
    /// answer.
    answers: Vec<(Literal, usize)>,
}

/// A task in walkthroughs, as it is reached by one subtask step.
#[derive(Clone, Copy, Debug)]
pub struct TaskVisit {
    /// The task.
    pub task: usize,
    /// Whether the walkthrough comes to it: the subtask step is visible if the task's
    /// dependencies hold, too.
    pub comes: Literal,
    /// Whether its dependencies hold there.
    pub holds: Literal,
}

/// The walkthroughs of a guide.
#[derive(Debug)]
pub struct Walkthroughs {
    /// The formula of all literals.
    pub formula: Formula,
    /// Whether a walkthrough begins: the dependencies of the task hold.
    pub begins: Literal,
    /// Whether nothing is answered at the start.
    pub unanswered: Literal,
    /// The steps in order.
    pub visits: Vec<Visit>,
    /// The levels of the task's roles, in classes that see the same tasks. The literal of a
    /// class says whether the walkthrough is for it.
    pub levels: Vec<(Literal, Vec<AccessLevel>)>,
    /// The variables that conditions read.
    variables: HashMap<VariableId, ReadVariable>,
}

/// A variable that conditions read.
#[derive(Debug)]
struct ReadVariable {
    classes: ValueClasses,
    /// Whether it is not answered at the start of every walkthrough.
    starts_unanswered: bool,
    /// While the walkthroughs are built: for each class, whether the value is in it at the current
    /// step.
    values: Vec<Literal>,
}

impl Walkthroughs {
    /// The walkthroughs of a guide that is within its limits; `None` if its formula would
    /// be too large, or to stop.
    pub fn new(guide: &Guide, unpublished: Unpublished, stop: StopSignal<'_>) -> Option<Self> {
        let reads = Reads::of(guide, unpublished);
        if reads.lookups(guide) > MAX_LOOKUPS {
            return None;
        }
        let mut builder = WalkthroughBuilder {
            guide,
            unpublished,
            stop,
            built: Self {
                formula: Formula::new(),
                begins: Literal::FALSE,
                unanswered: Literal::FALSE,
                visits: Vec::new(),
                levels: Vec::new(),
                variables: HashMap::new(),
            },
        };
        builder.add_levels();
        builder.add_start(&reads);
        let root = guide.root()?;
        let begins = builder.group(root.dependencies.as_ref());
        builder.built.begins = begins;
        builder.go_through(begins, &mut vec![0]);
        let built = builder.built;
        (!built.formula.is_full() && !stop.is_given()).then_some(built)
    }

    /// The classes of a variable's values; `None` if no condition reads it.
    pub fn classes_of(&self, variable: VariableId) -> Option<&ValueClasses> {
        let read = self.variables.get(&variable)?;
        Some(&read.classes)
    }

    /// Whether a variable that is read is not answered at the start of every walkthrough.
    pub fn starts_unanswered(&self, variable: VariableId) -> bool {
        let read = self.variables.get(&variable);
        read.is_some_and(|read| read.starts_unanswered)
    }

    /// The walkthroughs that end without an outcome, among those that begin with nothing
    /// answered.
    pub fn without_outcome(&mut self, guide: &Guide) -> Literal {
        let outcomes = self.visits.iter().filter(|visit| {
            let step = guide.step(visit.position);
            step.is_some_and(|step| is_outcome(step_type(step)))
        });
        let none: Vec<Literal> = outcomes.map(|visit| !visit.sees).collect();
        let begins = [self.begins, self.unanswered];
        self.formula.and(begins.into_iter().chain(none))
    }

    /// The answers of the walkthrough that is the first of these assignments: the account-wide
    /// names of the observations that it sees, and the keys that it chooses. Ends behind the
    /// answer that brings it to `MAX_EXAMPLE_BYTES`.
    pub fn answers(&self, guide: &Guide, values: &NodeValues) -> Vec<(String, String)> {
        let mut answers = Vec::new();
        let mut bytes = 0;
        for visit in &self.visits {
            if bytes > MAX_EXAMPLE_BYTES {
                break;
            }
            if values.of(visit.sees) & 1 == 0 {
                continue;
            }
            let Some(step) = guide.step(visit.position) else {
                continue;
            };
            let variable = step.sets.first().and_then(|id| guide.variables.get(id.0));
            let chosen = visit.answers.iter().find(|one| values.of(one.0) & 1 == 1);
            let key = step
                .answer_keys()
                .nth(chosen.map_or(0, |(_, index)| *index));
            if let (Some(variable), Some(key)) = (variable, key) {
                bytes += variable.name.len() + key.len();
                answers.push((variable.name.clone(), key.to_owned()));
            }
        }
        answers
    }
}

/// The type of a step.
pub fn step_type(step: &GuideStep) -> StepType {
    step.source.step.kind.step_type()
}

/// Whether a step of this type is an outcome of a walkthrough.
fn is_outcome(kind: StepType) -> bool {
    match kind {
        StepType::Solution | StepType::End | StepType::Idp => true,
        StepType::Observation | StepType::Information | StepType::Subtask => false,
    }
}
