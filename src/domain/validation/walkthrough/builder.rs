//! Builds the formula of all walkthroughs along a walk over the guide.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{ReadVariable, TaskVisit, Unpublished, Visit, Walkthroughs, step_type};
use crate::domain::{
    analysis::{
        CompiledCondition, CompiledGroup, CompiledNode, Guide, GuideStep, Holding, PossibleValues,
        StepPosition, StopSignal, SubtaskEntry, Variable, VariableId,
    },
    dependency::LogicalOperator,
    step::StepType,
    task::AccessLevel,
    validation::{classes::ValueClasses, formula::Literal, walk::Reads},
};

/// The walkthroughs while they are built along a walk over the guide.
pub struct WalkthroughBuilder<'a> {
    pub(super) guide: &'a Guide,
    pub(super) unpublished: Unpublished,
    pub(super) stop: StopSignal<'a>,
    pub(super) built: Walkthroughs,
}

impl WalkthroughBuilder<'_> {
    /// Adds the levels of the task's roles, in classes that see the same tasks.
    pub(super) fn add_levels(&mut self) {
        let Some(root) = self.guide.root() else {
            return;
        };
        let mut classes: Vec<(Vec<bool>, Vec<AccessLevel>)> = Vec::new();
        for level in &root.source.task.content.roles {
            let tasks = self.guide.tasks.iter();
            let sees = tasks.map(|task| task.source.task.content.roles.contains(level));
            let sees: Vec<bool> = sees.collect();
            match classes.iter_mut().find(|(known, _)| *known == sees) {
                Some((_, levels)) => levels.push(*level),
                None => classes.push((sees, vec![*level])),
            }
        }
        let literals = self.built.formula.one_of(classes.len());
        let levels = classes.into_iter().map(|(_, levels)| levels);
        self.built.levels = literals.into_iter().zip(levels).collect();
    }

    /// Sets the values at the start, and whether nothing is answered then.
    pub(super) fn add_start(&mut self, reads: &Reads<'_>) {
        let mut unanswered = Vec::new();
        let reads = reads.conditions.iter().zip(&reads.before_set);
        let variables = self.guide.variables.iter().zip(reads).enumerate();
        for (index, (variable, (conditions, before_set))) in variables {
            if conditions.is_empty() || self.stop.is_given() {
                continue;
            }
            let setters = variable.setters.iter();
            let steps = setters.filter_map(|setter| self.guide.step(*setter));
            let keys = steps.flat_map(GuideStep::answer_keys);
            let classes = ValueClasses::new(&variable.possible, keys, conditions);
            let mut values = vec![Literal::FALSE; classes.count()];
            let may_be_answered = *before_set || may_be_answered_at_start(variable);
            if may_be_answered {
                values = self.built.formula.one_of(classes.count());
                unanswered.extend(values.get(ValueClasses::UNANSWERED));
            } else if let Some(value) = values.get_mut(ValueClasses::UNANSWERED) {
                *value = Literal::TRUE;
            }
            let read = ReadVariable {
                classes,
                starts_unanswered: !may_be_answered,
                values,
            };
            self.built.variables.insert(VariableId(index), read);
        }
        self.built.unanswered = self.built.formula.and(unanswered);
    }

    /// Adds the visits of the steps of the task that was entered last, and of the tasks that
    /// these steps enter. `enters` is whether the walkthrough enters the task.
    pub(super) fn go_through(&mut self, enters: Literal, entered: &mut Vec<usize>) {
        let guide = self.guide;
        let Some(task) = entered.last().copied() else {
            return;
        };
        let mut comes = enters;
        for (index, step) in guide.steps(task).iter().enumerate() {
            if self.built.formula.is_full() || self.stop.is_given() {
                return;
            }
            if !self.unpublished.shows_step(step) {
                continue;
            }
            let position = StepPosition { task, step: index };
            let holds = self.group(step.dependencies.as_ref());
            let mut sees = self.built.formula.and([comes, holds]);
            let subtask = step.subtask.map(|subtask| self.come_to_task(subtask, sees));
            if let Some(subtask) = subtask {
                sees = self.built.formula.and([subtask.comes, subtask.holds]);
            }
            let answers = self.answer(step, sees);
            self.built.visits.push(Visit {
                position,
                comes,
                holds,
                sees,
                subtask,
                answers,
            });
            if let SubtaskEntry::Enter(subtask) = guide.subtask_entry(step, entered) {
                entered.push(subtask);
                self.go_through(sees, entered);
                entered.pop();
            }
            if step_type(step) == StepType::End {
                comes = self.built.formula.and([comes, !sees]);
            }
        }
    }

    /// The visit of a task by a subtask step. `step_visible` is whether a walkthrough sees the
    /// step, as far as the task does not decide it.
    fn come_to_task(&mut self, index: usize, step_visible: Literal) -> TaskVisit {
        let Some(task) = self.guide.tasks.get(index) else {
            return TaskVisit {
                task: index,
                comes: Literal::FALSE,
                holds: Literal::FALSE,
            };
        };
        let source = &task.source.task;
        let levels = self.built.levels.iter().filter(|(_, levels)| {
            levels
                .iter()
                .any(|level| source.content.roles.contains(level))
        });
        let mut comes = self.built.formula.or(levels.map(|(literal, _)| *literal));
        // The root counts as published.
        if index > 0 && !self.unpublished.shows(source.content.published) {
            comes = Literal::FALSE;
        }
        TaskVisit {
            task: index,
            comes: self.built.formula.and([comes, step_visible]),
            holds: self.group(task.dependencies.as_ref()),
        }
    }

    /// Whether a group holds at the current step of the walk.
    pub(super) fn group(&mut self, group: Option<&CompiledGroup>) -> Literal {
        let Some(group) = group else {
            return Literal::TRUE;
        };
        let nodes = group.nodes.iter().map(|node| match node {
            CompiledNode::Group(inner) => self.group(Some(inner)),
            CompiledNode::Condition(condition) => self.condition(condition),
        });
        let nodes: Vec<Literal> = nodes.collect();
        match group.operator {
            LogicalOperator::And => self.built.formula.and(nodes),
            LogicalOperator::Or => self.built.formula.or(nodes),
        }
    }

    fn condition(&mut self, condition: &CompiledCondition) -> Literal {
        let Some(read) = self.built.variables.get(&condition.variable) else {
            return Literal::FALSE;
        };
        let values = &read.values;
        let Holding {
            mut listed,
            mut holds,
        } = read.classes.holding(condition);
        // The value is in exactly one class, so the shorter list suffices.
        if 2 * listed.len() > values.len() {
            let known: BTreeSet<usize> = listed.into_iter().collect();
            listed = (0..values.len())
                .filter(|class| !known.contains(class))
                .collect();
            holds = !holds;
        }
        let listed = listed
            .iter()
            .filter_map(|class| values.get(*class).copied());
        let listed = self.built.formula.or(listed);
        if holds { listed } else { !listed }
    }

    /// Adds the choice of an answer, and sets the step's variables to it where the step is seen.
    /// Returns the literals and the indexes of the answers.
    fn answer(&mut self, step: &GuideStep, sees: Literal) -> Vec<(Literal, usize)> {
        let read: Vec<VariableId> = step
            .sets
            .iter()
            .copied()
            .filter(|id| self.built.variables.contains_key(id))
            .collect();
        if read.is_empty() {
            return Vec::new();
        }
        // The first key of each combination of classes stands for the others.
        let mut choices: Vec<(Vec<usize>, usize)> = Vec::new();
        let mut known = HashSet::new();
        for (index, key) in step.answer_keys().enumerate() {
            let classes: Vec<usize> = read.iter().map(|id| self.class_of_key(*id, key)).collect();
            if known.insert(classes.clone()) {
                choices.push((classes, index));
            }
        }
        let Walkthroughs {
            formula, variables, ..
        } = &mut self.built;
        let literals = formula.one_of(choices.len());
        for (index, id) in read.iter().enumerate() {
            let mut chosen: HashMap<usize, Vec<Literal>> = HashMap::new();
            for (literal, (classes, _)) in literals.iter().zip(&choices) {
                if let Some(class) = classes.get(index) {
                    chosen.entry(*class).or_default().push(*literal);
                }
            }
            let variable = variables.get_mut(id);
            let values = variable.into_iter().flat_map(|read| &mut read.values);
            for (class, value) in values.enumerate() {
                let chosen = formula.or(chosen.remove(&class).unwrap_or_default());
                *value = formula.choose(sees, chosen, *value);
            }
        }
        let indexes = choices.into_iter().map(|(_, index)| index);
        literals.into_iter().zip(indexes).collect()
    }

    fn class_of_key(&self, id: VariableId, key: &str) -> usize {
        let read = self.built.variables.get(&id);
        read.map_or(ValueClasses::UNANSWERED, |read| read.classes.of_key(key))
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
