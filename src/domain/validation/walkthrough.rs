//! All walkthroughs of a guide as one formula: each assignment of its inputs is a
//! walkthrough.
//!
//! The inputs choose the level, the values at the start and the answers. A variable has one
//! literal for each of its [`ValueClasses`]; exactly one of them is true.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::domain::{
    analysis::{
        self, CompiledCondition, CompiledGroup, Evaluation, Evaluator, Guide, GuideStep, Logic,
        PossibleValues, Variable, VariableId, evaluate,
    },
    dependency::Comparison,
    step::StepType,
    task::{AccessLevel, Published},
};

use super::{
    budget::Budget,
    formula::{Formula, Literal, NodeValues},
    value_classes::ValueClasses,
};

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
        self == Self::Included || published == Published::default()
    }

    /// Whether walkthroughs can see a step, as far as `published` decides it.
    pub fn shows_step(self, step: &GuideStep) -> bool {
        self.shows(step.source.step.content.published)
    }
}

/// A step in walkthroughs, as it is reached in one way.
pub type Visit = analysis::Visit<Literal>;

#[derive(Debug)]
pub struct Walkthroughs {
    pub formula: Formula,
    /// Whether a walkthrough begins: the dependencies of the task hold.
    pub begins: Literal,
    /// Whether nothing is answered at the start.
    unanswered: Literal,
    pub visits: Vec<Visit>,
    /// For each visit: for each answer, whether the walkthrough chooses it, and its index. Answers
    /// that no condition distinguishes share one entry. A list is empty if no condition reads the
    /// answer.
    answers: Vec<Vec<(Literal, usize)>>,
    /// The levels of the task's roles, grouped by the set of tasks they may see. The literal of a
    /// group says whether the walkthrough is for it.
    pub levels: Vec<(Literal, Vec<AccessLevel>)>,
    /// The variables that conditions read.
    variables: HashMap<VariableId, ReadVariable>,
}

#[derive(Debug)]
struct ReadVariable {
    classes: ValueClasses,
    /// Whether it is not answered at the start of every walkthrough.
    starts_unanswered: bool,
    /// For each class, whether the value is in it at the current step of the walk.
    values: Vec<Literal>,
}

impl Walkthroughs {
    /// The walkthroughs of a guide that is within its limits; `None` if its formula would
    /// be too large, or to stop.
    pub fn new(guide: &Guide, unpublished: Unpublished, budget: &Budget<'_>) -> Option<Self> {
        let mut builder = WalkthroughBuilder {
            guide,
            unpublished,
            budget,
            formula: Formula::new(),
            levels: Vec::new(),
            variables: HashMap::new(),
            answers: Vec::new(),
        };
        builder.add_levels();
        let unanswered = builder.add_variables()?;
        let Evaluation {
            root_visible,
            visits,
            ..
        } = evaluate(guide, &mut builder)?;
        let is_complete = !builder.is_stopped();
        is_complete.then_some(Self {
            formula: builder.formula,
            begins: root_visible,
            unanswered,
            visits,
            answers: builder.answers,
            levels: builder.levels,
            variables: builder.variables,
        })
    }

    /// The classes of a variable's values; `None` if no condition reads it.
    pub fn classes_of(&self, variable: VariableId) -> Option<&ValueClasses> {
        Some(&self.variables.get(&variable)?.classes)
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
            let kind = guide.step(visit.position).map(GuideStep::step_type);
            matches!(
                kind,
                Some(StepType::Solution | StepType::End | StepType::Idp)
            )
        });
        let none: Vec<Literal> = outcomes.map(|visit| !visit.visible).collect();
        let begins = [self.begins, self.unanswered];
        self.formula.and(begins.into_iter().chain(none))
    }

    /// The answers of the walkthrough that is the first of these assignments: the account-wide
    /// names of the observations that it sees, and the keys that it chooses.
    pub fn answers(&self, guide: &Guide, values: &NodeValues) -> Vec<(String, String)> {
        let visits = self.visits.iter().zip(&self.answers);
        let seen = visits.filter(|(visit, _)| values.of(visit.visible) & 1 == 1);
        let answers = seen.filter_map(|(visit, answers)| {
            let step = guide.step(visit.position)?;
            let variable = guide.variables.get(step.sets.first()?.0)?;
            let chosen = answers.iter().find(|one| values.of(one.0) & 1 == 1);
            let index = chosen.map_or(0, |(_, index)| *index);
            let key = step.answer_keys().nth(index)?;
            Some((variable.name.clone(), key.to_owned()))
        });
        answers.collect()
    }
}

/// The walkthroughs while they are built along a walk over the guide.
struct WalkthroughBuilder<'a> {
    guide: &'a Guide,
    unpublished: Unpublished,
    budget: &'a Budget<'a>,
    formula: Formula,
    levels: Vec<(Literal, Vec<AccessLevel>)>,
    variables: HashMap<VariableId, ReadVariable>,
    answers: Vec<Vec<(Literal, usize)>>,
}

impl Logic for WalkthroughBuilder<'_> {
    type Value = Literal;

    fn condition(&mut self, condition: &CompiledCondition) -> Literal {
        let Some(read) = self.variables.get(&condition.variable) else {
            return Literal::FALSE;
        };
        let apart = read.classes.distinguished_from_unanswered(condition);
        // The value is in exactly one class, so the shorter list suffices.
        let is_short = 2 * apart.len() <= read.values.len();
        let values = read.values.iter().enumerate();
        let listed = values.filter(|(class, _)| apart.contains(class) == is_short);
        let listed = self.formula.or(listed.map(|(_, value)| *value));
        let holds_apart = condition.operator != Comparison::NotEqual;
        if is_short == holds_apart {
            listed
        } else {
            !listed
        }
    }

    fn all(&mut self, values: impl IntoIterator<Item = Literal>) -> Literal {
        self.formula.and(values)
    }

    fn not(&mut self, value: Literal) -> Literal {
        !value
    }
}

impl Evaluator for WalkthroughBuilder<'_> {
    fn step_is_published(&mut self, step: &GuideStep) -> Option<Literal> {
        self.unpublished.shows_step(step).then_some(Literal::TRUE)
    }

    /// The root counts as published, and every walkthrough is for one of its levels.
    fn task_is_open(&mut self, index: usize) -> Literal {
        let task = self.guide.tasks.get(index);
        let content = task.map(|task| &task.source.task.content);
        match content.filter(|content| self.unpublished.shows(content.published)) {
            _ if index == 0 => Literal::TRUE,
            None => Literal::FALSE,
            Some(content) => {
                let levels = self.levels.iter();
                let sees =
                    |levels: &[AccessLevel]| levels.iter().any(|it| content.roles.contains(it));
                let levels = levels.filter(|(_, levels)| sees(levels));
                self.formula.or(levels.map(|(literal, _)| *literal))
            }
        }
    }

    fn cycle_is_visible(&mut self) -> Literal {
        Literal::TRUE
    }

    /// Adds the choice of an answer, and sets the step's variables to it where the step is seen.
    fn leave(&mut self, step: &GuideStep, visit: &Visit) {
        let answers = self.choose_answer(step, visit.visible);
        self.answers.push(answers);
    }

    fn is_stopped(&self) -> bool {
        self.formula.is_full() || self.budget.is_stopped()
    }
}

impl WalkthroughBuilder<'_> {
    /// Adds the levels of the task's roles, grouped by the set of tasks they may see.
    fn add_levels(&mut self) {
        let roles = self
            .guide
            .root()
            .map(|root| &root.source.task.content.roles);
        let mut classes: Vec<(Vec<bool>, Vec<AccessLevel>)> = Vec::new();
        for level in roles.into_iter().flatten() {
            let tasks = self.guide.tasks.iter();
            let sees = tasks.map(|task| task.source.task.content.roles.contains(level));
            let sees: Vec<bool> = sees.collect();
            match classes.iter_mut().find(|(known, _)| *known == sees) {
                Some((_, levels)) => levels.push(*level),
                None => classes.push((sees, vec![*level])),
            }
        }
        let literals = self.formula.one_of(classes.len()).into_iter();
        let levels = classes.into_iter().map(|(_, levels)| levels);
        self.levels = literals.zip(levels).collect();
    }

    /// Adds the variables that conditions read, with their values at the start. Returns whether
    /// nothing is answered then; `None` if that takes too much work.
    fn add_variables(&mut self) -> Option<Literal> {
        let guide = self.guide;
        let mut unanswered = Vec::new();
        let reads = Reads::new(guide, self.unpublished);
        for (index, variable) in guide.variables.iter().enumerate() {
            let conditions = reads.conditions.get(index).map_or(&[][..], Vec::as_slice);
            if conditions.is_empty() {
                continue;
            }
            if self.is_stopped() {
                return None;
            }
            let steps = variable.setters.iter().filter_map(|it| guide.step(*it));
            let keys = steps.flat_map(GuideStep::answer_keys);
            let classes = ValueClasses::new(&variable.possible, keys, conditions, self.budget)?;
            let starts_unanswered =
                !reads.before_set.contains(&index) && !may_be_answered_at_start(variable);
            let mut values = match starts_unanswered {
                true => vec![Literal::FALSE; classes.count()],
                false => self.formula.one_of(classes.count()),
            };
            if let Some(value) = values.get_mut(ValueClasses::UNANSWERED) {
                match starts_unanswered {
                    true => *value = Literal::TRUE,
                    false => unanswered.push(*value),
                }
            }
            let read = ReadVariable {
                classes,
                starts_unanswered,
                values,
            };
            self.variables.insert(VariableId(index), read);
        }
        Some(self.formula.and(unanswered))
    }

    /// Returns the literals and the indexes of the answers.
    fn choose_answer(&mut self, step: &GuideStep, sees: Literal) -> Vec<(Literal, usize)> {
        let is_read = |id: &VariableId| self.variables.contains_key(id);
        let read: Vec<VariableId> = step.sets.iter().copied().filter(is_read).collect();
        if read.is_empty() {
            return Vec::new();
        }
        // The first key of each combination of classes stands for the others.
        let mut choices: Vec<(Vec<usize>, usize)> = Vec::new();
        let mut known = HashSet::new();
        for (index, key) in step.answer_keys().enumerate() {
            let read = read.iter().filter_map(|id| self.variables.get(id));
            let classes: Vec<usize> = read.map(|read| read.classes.of_key(key)).collect();
            if known.insert(classes.clone()) {
                choices.push((classes, index));
            }
        }
        let literals = self.formula.one_of(choices.len());
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
                *value = self.formula.choose(sees, chosen, *value);
            }
        }
        let indexes = choices.into_iter().map(|(_, index)| index);
        literals.into_iter().zip(indexes).collect()
    }
}

/// Whether a variable may have a value before the guide begins, even if no condition reads it
/// before an observation sets it.
fn may_be_answered_at_start(variable: &Variable) -> bool {
    match variable.possible {
        PossibleValues::Anything => true,
        PossibleValues::Keys(_) => variable.outside.may_exist(),
    }
}

/// What the conditions of the walkthroughs read.
struct Reads<'a> {
    /// The conditions that read each variable.
    conditions: Vec<Vec<&'a CompiledCondition>>,
    /// The variables that are read before an observation sets them.
    before_set: BTreeSet<usize>,
}

impl<'a> Reads<'a> {
    fn new(guide: &'a Guide, unpublished: Unpublished) -> Self {
        let mut reads = Self {
            conditions: vec![Vec::new(); guide.variables.len()],
            before_set: BTreeSet::new(),
        };
        let mut set: HashSet<usize> = HashSet::new();
        reads.add(
            guide.root().and_then(|root| root.dependencies.as_ref()),
            &set,
        );
        for (_, step) in guide.shown_stops(|step| unpublished.shows_step(step)) {
            let subtask = guide.subtask(step);
            reads.add(step.dependencies.as_ref(), &set);
            reads.add(subtask.and_then(|task| task.dependencies.as_ref()), &set);
            set.extend(step.sets.iter().map(|id| id.0));
        }
        reads
    }

    fn add(&mut self, group: Option<&'a CompiledGroup>, set: &HashSet<usize>) {
        for condition in group.map_or_else(Vec::new, CompiledGroup::conditions) {
            let variable = condition.variable.0;
            if let Some(conditions) = self.conditions.get_mut(variable) {
                conditions.push(condition);
            }
            if !set.contains(&variable) {
                self.before_set.insert(variable);
            }
        }
    }
}
