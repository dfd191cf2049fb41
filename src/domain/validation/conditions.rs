//! Rules about single conditions, including the conditions of unpublished steps.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::domain::{
    analysis::{
        Dependencies, Guide, StepPosition, Variable, VariableId, is_numeric, parse_account_name,
    },
    dependency::{Comparison, Condition, ConditionTarget},
};

use super::{
    finding::{Finding, FindingPlace, quoted_keys},
    report::{OtherGuides, Own, Report},
    rules::Rule,
};

const MAX_RELATED: usize = 20;

/// A condition of an own task or step.
struct ReadCondition<'a> {
    reader: Own<'a>,
    path: String,
    source: &'a Condition,
    variable: &'a Variable,
    /// Whether a walk last reads it before any observation of the guide sets the variable.
    is_before_setters: bool,
}

pub fn check(report: &mut Report<'_>) {
    let guide = report.subject.guide;
    let walk = WalkOrder::new(guide);
    let tasks = report.own.clone().into_iter();
    let tasks = tasks.map(|own| (own, own.task.dependencies()));
    let steps = report.own_steps().into_iter();
    let steps = steps.map(|(own, _, step)| (own, step.dependencies()));
    for (reader, dependencies) in tasks.chain(steps) {
        for (placed, compiled) in dependencies.into_iter().flat_map(Dependencies::placed) {
            if report.budget.is_stopped() {
                return;
            }
            let condition = ReadCondition {
                reader,
                path: placed.path,
                source: placed.condition,
                variable: &guide[compiled.variable],
                is_before_setters: walk.is_before_setters(reader, compiled.variable),
            };
            condition.check_variable(report);
            match placed.condition.operator {
                Comparison::Equal | Comparison::NotEqual => condition.check_answers(report),
                Comparison::Greater | Comparison::Less => condition.check_bounds(report),
            }
        }
    }
}

/// When a walk reaches the steps of a guide, counted in steps, including unpublished ones. A task
/// that several subtask steps enter is visited several times, and so are its steps. Empty if the
/// guide exceeds a limit.
struct WalkOrder {
    /// When the walk last reads the dependencies of each task, and of each step of a task.
    last_reads: HashMap<(usize, Option<usize>), usize>,
    /// When the walk first reaches an observation that sets each variable.
    first_sets: HashMap<VariableId, usize>,
}

impl WalkOrder {
    fn new(guide: &Guide) -> Self {
        let mut last_reads = HashMap::from([((0, None), 0)]);
        let mut first_sets = HashMap::new();
        for (stop, time) in guide.route.iter().zip(1..) {
            let StepPosition { task, step } = stop.position;
            last_reads.insert((task, Some(step)), time);
            let step = &guide[stop.position];
            last_reads.extend(step.subtask.map(|subtask| ((subtask, None), time)));
            for variable in &step.sets {
                first_sets.entry(*variable).or_insert(time);
            }
        }
        Self {
            last_reads,
            first_sets,
        }
    }

    fn is_before_setters(&self, reader: Own<'_>, variable: VariableId) -> bool {
        let read = self.last_reads.get(&(reader.index, reader.step_index()));
        let set = self.first_sets.get(&variable);
        read.zip(set).is_some_and(|(read, set)| read < set)
    }
}

impl ReadCondition<'_> {
    fn check_variable(&self, report: &mut Report<'_>) {
        let Variable {
            name,
            setters,
            outside,
            ..
        } = self.variable;
        let facts = || json!({ "variable": name });
        let may_be_set_by_unread_guides = report.subject.other_guides == OtherGuides::Unknown
            && parse_account_name(name).is_some();
        // Checked first, because finding a suggestion uses up a shared budget.
        if self.variable.is_unknown()
            && !may_be_set_by_unread_guides
            && !report.skips(Rule::UnknownVariable)
        {
            let message = format!("No observation of the account sets `{name}`.");
            let finding = self.finding(Rule::UnknownVariable, "", facts(), message);
            let variables = report.subject.guide.variables.iter();
            let readable = variables.filter(|it| {
                !it.is_unknown() && it.task.is_none_or(|task| task == self.reader.index)
            });
            let names = readable.map(|it| it.name.as_str());
            report.add(finding.suggesting(name, names, &report.budget.hints));
        }
        // The finding names observations, so at least one must have been read.
        if setters.is_empty() && !outside.list.is_empty() {
            let message = format!("Only observations of other guides set `{name}`.");
            let finding = self.finding(Rule::SetElsewhere, "", facts(), message);
            let related = outside.list.iter().map(|setter| FindingPlace {
                task: setter.task.to_string(),
                step: setter.step.to_string(),
                path: String::new(),
                title: setter.title.clone(),
            });
            report.add(finding.with_related(related.take(MAX_RELATED)));
        }
        if outside.may_exist() {
            return;
        }
        let task = self.reader.index;
        let reader = self.reader.step_index();
        let reader = reader.map(|step| StepPosition { task, step });
        if reader.is_some_and(|reader| *setters == [reader]) {
            let message =
                format!("The observation reads `{name}`, which only its own answer sets.");
            report.add(self.finding(Rule::SelfRead, "", facts(), message));
        } else if self.is_before_setters {
            let message =
                format!("Every observation that sets `{name}` comes after this condition.");
            let finding = self.finding(Rule::AnsweredLater, "", facts(), message);
            let guide = report.subject.guide;
            let related = setters.iter();
            let related = related.map(|setter| FindingPlace::at(guide, *setter, ""));
            report.add(finding.with_related(related.take(MAX_RELATED)));
        }
    }

    /// A finding about the condition, or about one of its targets.
    fn finding(&self, rule: Rule, target: &str, facts: Value, message: String) -> Finding {
        let path = format!("{}{target}", self.path);
        self.reader.finding(rule, &path, facts, message)
    }

    /// Reports targets of `=` and `!=` that the variable never has.
    fn check_answers(&self, report: &mut Report<'_>) {
        let Some(keys) = &self.variable.keys else {
            return;
        };
        let name = &self.variable.name;
        for (index, target) in self.source.targets.iter().enumerate() {
            if keys.has_equal(target) {
                continue;
            }
            if report.budget.is_stopped() {
                return;
            }
            if report.skips(Rule::UnknownAnswer) {
                continue;
            }
            let message = format!("`{name}` is never {}.", json!(target));
            let facts = json!({ "variable": name, "target": target });
            let at = format!(".targets[{index}]");
            let mut finding = self.finding(Rule::UnknownAnswer, &at, facts, message);
            if keys.iter().len() > 0 {
                let hint = finding.hint.trim_end_matches('.');
                finding.hint = format!("{hint}: {}.", quoted_keys(keys.iter()));
            }
            if let ConditionTarget::Text(text) = target {
                finding = finding.suggesting(text, keys.iter(), &report.budget.hints);
            }
            report.add(finding.hint_at_operator_in_value(target));
        }
    }

    /// Reports targets and answers that `>` and `<` cannot compare, and several targets.
    fn check_bounds(&self, report: &mut Report<'_>) {
        let name = &self.variable.name;
        let targets = &self.source.targets;
        let operator = self.source.operator.symbol();
        for (index, target) in targets.iter().enumerate() {
            if is_numeric(target) || report.skips(Rule::NotComparable) {
                continue;
            }
            let message = format!(
                "`{operator}` compares with {}, which is not numeric.",
                json!(target)
            );
            let facts = json!({ "variable": name, "operator": operator, "target": target });
            let at = format!(".targets[{index}]");
            let finding = self.finding(Rule::NotComparable, &at, facts, message);
            report.add(finding.hint_at_operator_in_value(target));
        }
        if (self.variable.keys.as_ref()).is_some_and(|keys| !keys.has_numeric()) {
            let message = format!("`{operator}` reads `{name}`, which has no numeric answer.");
            let facts = json!({ "variable": name, "operator": operator });
            report.add(self.finding(Rule::NotComparable, "", facts, message));
        }
        if targets.len() > 1 {
            let message = format!("`{operator}` has {} targets.", targets.len());
            let facts = json!({ "variable": name, "operator": operator, "targets": targets });
            report.add(self.finding(Rule::SeveralBounds, "", facts, message));
        }
    }
}

/// Operators that the shorthand does not have. It parses them as part of a value.
const JOINS: [&str; 3] = [" AND ", " OR ", "|"];

impl Finding {
    /// Adds a hint what to write instead of a target that seems to hold several conditions or
    /// values.
    fn hint_at_operator_in_value(mut self, target: &ConditionTarget) -> Self {
        if let ConditionTarget::Text(text) = target
            && let Some(join) = JOINS.iter().find(|join| text.contains(**join))
        {
            self.hint = format!(
                "The value contains `{}`, which does not combine conditions: write several \
                 conditions as groups in `dependencies`, and separate several values with commas. \
                 {}",
                join.trim(),
                self.hint
            );
        }
        self
    }
}
