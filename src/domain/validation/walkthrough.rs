//! All walkthroughs of a guide as one formula: each assignment of its inputs is a
//! walkthrough.
//!
//! The inputs choose the level, the values at the start and the answers. A variable has one
//! literal for each of its [`ValueClasses`]; exactly one of them is true.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::domain::{
    analysis::{
        self, Budget, CompiledCondition, Criterion, Evaluator, Guide, GuideStep, Unpublished,
        ValueClasses, VariableId, evaluate,
    },
    dependency::Comparison,
    step::StepType,
    task::AccessLevel,
};

use super::{
    formula::{Formula, Literal},
    search::Assignment,
};

/// A step in walkthroughs that is reached by one path of subtask steps.
pub type Visit = analysis::Visit<Literal>;

pub struct Walkthroughs<'a> {
    pub guide: &'a Guide,
    unpublished: Unpublished,
    pub budget: &'a Budget<'a>,
    /// [`Search`](super::search::Search) takes it once it is complete.
    pub formula: Formula,
    /// Whether a walkthrough begins: the dependencies of the task hold.
    pub begins: Literal,
    /// Whether all variables are unanswered at the start.
    unanswered: Literal,
    pub visits: Vec<Visit>,
    /// For each visit: for each answer, whether the walkthrough chooses it, and its index. Answers
    /// that no condition distinguishes share one entry. A list is empty if no condition reads the
    /// answer.
    answers: Vec<Vec<(Literal, usize)>>,
    pub levels: Vec<(Literal, AccessLevel)>,
    pub variables: HashMap<VariableId, ReadVariable<'a>>,
}

/// A variable that conditions read.
#[derive(Debug)]
pub struct ReadVariable<'a> {
    pub classes: ValueClasses<'a>,
    /// Whether it is unanswered at the start of every walkthrough.
    pub starts_unanswered: bool,
    /// For each class, whether the value is in it at the current step of the walk.
    values: Vec<Literal>,
}

impl<'a> Walkthroughs<'a> {
    /// The walkthroughs of a guide that is within its limits; `None` if the formula would be too
    /// large, or if the budget is stopped.
    pub fn new(guide: &'a Guide, unpublished: Unpublished, budget: &'a Budget<'a>) -> Option<Self> {
        let mut formula = Formula::default();
        let levels = &guide.root().task.content.roles;
        let literals = formula.add_choice(levels.len()).into_iter();
        let mut all = Self {
            guide,
            unpublished,
            budget,
            levels: literals.zip(levels.iter().copied()).collect(),
            formula,
            begins: Literal::TRUE,
            unanswered: Literal::TRUE,
            visits: Vec::new(),
            answers: Vec::new(),
            variables: HashMap::new(),
        };
        all.add_variables()?;
        let evaluation = evaluate(guide, &mut all)?;
        all.begins = evaluation.root_visible;
        all.visits = evaluation.visits;
        (!all.is_stopped()).then_some(all)
    }

    /// The walkthroughs that start without answers and end without an outcome.
    pub fn without_outcome(&self, formula: &mut Formula) -> Literal {
        let outcomes = self.visits.iter().filter(|visit| {
            let step_type = self.guide[visit.position].step_type();
            matches!(
                step_type,
                StepType::Solution | StepType::End | StepType::Idp
            )
        });
        let none = outcomes.map(|visit| !visit.visible);
        let begins = [self.begins, self.unanswered].into_iter();
        formula.and(begins.chain(none))
    }

    /// The answers of the walkthrough of an assignment: the account-wide names of the
    /// observations that it sees, and the keys that it chooses.
    pub fn answers(&self, values: &Assignment) -> Vec<(String, String)> {
        let visits = self.visits.iter().zip(&self.answers);
        let seen = visits.filter(|(visit, _)| values.is_true(visit.visible));
        let answers = seen.filter_map(|(visit, answers)| {
            let step = &self.guide[visit.position];
            let variable = &self.guide[*step.sets.first()?];
            let chosen = answers.iter().find(|(literal, _)| values.is_true(*literal));
            let index = chosen.map_or(0, |(_, index)| *index);
            Some((
                variable.name.clone(),
                step.answer_keys().nth(index)?.to_owned(),
            ))
        });
        answers.collect()
    }

    /// Adds the variables that conditions read, with their initial values. `None` if that takes too
    /// much work.
    fn add_variables(&mut self) -> Option<()> {
        let guide = self.guide;
        let mut unanswered = Vec::new();
        let reads = variable_reads(guide, self.unpublished).into_iter();
        for (index, (variable, reads)) in guide.variables.iter().zip(reads).enumerate() {
            if reads.criteria.is_empty() {
                continue;
            }
            if self.is_stopped() {
                return None;
            }
            let setters = variable.setters.iter();
            let keys = setters.flat_map(|setter| guide[*setter].answer_keys());
            let possible = variable.keys.as_ref();
            let classes = ValueClasses::new(possible, keys, &reads.criteria, self.budget)?;
            let starts_unanswered = variable.is_set_in_guide_only() && !reads.before_set;
            let values = if starts_unanswered {
                let others = vec![Literal::FALSE; classes.count() - 1];
                [vec![Literal::TRUE], others].concat()
            } else {
                self.formula.add_choice(classes.count())
            };
            unanswered.extend(values.get(ValueClasses::UNANSWERED));
            let read = ReadVariable {
                classes,
                starts_unanswered,
                values,
            };
            self.variables.insert(VariableId(index), read);
        }
        self.unanswered = self.formula.and(unanswered);
        Some(())
    }
}

impl Evaluator for Walkthroughs<'_> {
    type Value = Literal;
    const SHOWS_CYCLES: bool = true;

    fn condition(&mut self, condition: &CompiledCondition) -> Literal {
        let Some(read) = self.variables.get(&condition.variable) else {
            return Literal::FALSE;
        };
        let told_apart = read.classes.told_apart(&condition.criterion).iter();
        let told_apart = told_apart.filter_map(|class| read.values.get(*class));
        let is_told_apart = self.formula.or(told_apart.copied());
        if condition.criterion.operator == Comparison::NotEqual {
            !is_told_apart
        } else {
            is_told_apart
        }
    }

    fn all(&mut self, values: impl IntoIterator<Item = Literal>) -> Literal {
        self.formula.and(values)
    }

    fn step_is_published(&mut self, step: &GuideStep) -> Option<Literal> {
        self.unpublished.shows_step(step).then_some(Literal::TRUE)
    }

    /// The root counts as published, and every walkthrough is for one of its levels.
    fn task_is_open(&mut self, index: usize) -> Literal {
        let content = &self.guide.task(index).task.content;
        if index == 0 {
            return Literal::TRUE;
        }
        if !self.unpublished.shows(content.published) {
            return Literal::FALSE;
        }
        let levels = self.levels.iter();
        let hidden = levels.filter(|(_, level)| !content.roles.contains(level));
        !self.formula.or(hidden.map(|(literal, _)| *literal))
    }

    /// Adds the choice of an answer, and sets the step's variables to it where the step is seen.
    fn leave(&mut self, step: &GuideStep, visit: &Visit) {
        let is_read = |id: &VariableId| self.variables.contains_key(id);
        let read: Vec<VariableId> = step.sets.iter().copied().filter(is_read).collect();
        // The first key of each combination of classes stands for all of them.
        let mut choices: Vec<(Vec<usize>, usize)> = Vec::new();
        let mut known = HashSet::new();
        for (index, key) in step.answer_keys().enumerate().filter(|_| !read.is_empty()) {
            let read = read.iter().filter_map(|id| self.variables.get(id));
            let classes: Vec<usize> = read.map(|read| read.classes.key_class(key)).collect();
            if known.insert(classes.clone()) {
                choices.push((classes, index));
            }
        }
        let literals = self.formula.add_choice(choices.len());
        for (index, id) in read.iter().enumerate() {
            let mut chosen: HashMap<usize, Vec<Literal>> = HashMap::new();
            for (literal, (classes, _)) in literals.iter().zip(&choices) {
                if let Some(class) = classes.get(index) {
                    chosen.entry(*class).or_default().push(*literal);
                }
            }
            let variable = self.variables.get_mut(id);
            let values = variable.into_iter().flat_map(|read| &mut read.values);
            for (class, value) in values.enumerate() {
                let chosen = self.formula.or(chosen.remove(&class).unwrap_or_default());
                *value = self.formula.choose(visit.visible, chosen, *value);
            }
        }
        let indexes = choices.into_iter().map(|(_, index)| index);
        self.answers
            .push(literals.into_iter().zip(indexes).collect());
    }

    fn is_stopped(&self) -> bool {
        self.formula.is_full() || self.budget.is_stopped()
    }
}

/// How the steps that walkthroughs can see read a variable.
#[derive(Clone, Default)]
struct Reads<'a> {
    criteria: BTreeSet<&'a Criterion>,
    is_set: bool,
    /// Whether it is read before an observation sets it.
    before_set: bool,
}

/// How each variable is read.
fn variable_reads(guide: &Guide, unpublished: Unpublished) -> Vec<Reads<'_>> {
    let mut all = vec![Reads::default(); guide.variables.len()];
    let root: (_, &[VariableId]) = ([&guide.root().conditions[..], &[]], &[]);
    let steps = guide.shown_stops(unpublished).map(|(_, step)| {
        let subtask = guide.subtask(step);
        let subtask_conditions = subtask.map_or(&[][..], |task| &task.conditions[..]);
        ([subtask_conditions, &step.conditions[..]], &step.sets[..])
    });
    for (conditions, sets) in [root].into_iter().chain(steps) {
        for condition in conditions.into_iter().flatten() {
            if let Some(reads) = all.get_mut(condition.variable.0) {
                reads.criteria.insert(&condition.criterion);
                reads.before_set |= !reads.is_set;
            }
        }
        for variable in sets {
            if let Some(reads) = all.get_mut(variable.0) {
                reads.is_set = true;
            }
        }
    }
    all
}
