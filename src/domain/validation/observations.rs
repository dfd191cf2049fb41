//! Rules about single observations, unpublished ones included.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{
        CompiledCondition, CompiledGroup, Guide, GuideStep, StepPosition, TargetSet, VariableId,
        VariableValue,
    },
    dependency::Comparison,
    feedback::Feedback,
};

use super::{
    finding::{Finding, FindingPlace},
    report::{OutsideReader, OutsideReaders, Own, Report},
    rules::Rule,
};

/// Checks the observations of the own tasks.
pub fn check(report: &mut Report<'_>) {
    let readers = conditions_by_variable(report.subject.guide);
    // Many observations may set the same variable.
    let mut usages: HashMap<VariableId, Usage> = HashMap::new();
    for (own, step) in report.own_steps() {
        let Some(feedback) = observed(step) else {
            continue;
        };
        if report.is_stopped() {
            return;
        }
        check_answers(report, own, feedback);
        check_texts(report, own, step, feedback);
        for id in &step.sets {
            let usage = usages.entry(*id);
            usage.or_insert_with(|| {
                let inside = readers.get(id).map_or(&[][..], Vec::as_slice);
                Usage::new(inside, outside_readers(report, *id))
            });
        }
        let usages = step.sets.iter().filter_map(|id| usages.get(id));
        check_use(report, own, feedback, &usages.collect::<Vec<_>>());
    }
}

fn conditions_by_variable(guide: &Guide) -> HashMap<VariableId, Vec<&CompiledCondition>> {
    let mut readers: HashMap<VariableId, Vec<&CompiledCondition>> = HashMap::new();
    for condition in guide.groups().flat_map(CompiledGroup::conditions) {
        readers
            .entry(condition.variable)
            .or_default()
            .push(condition);
    }
    readers
}

/// The question of an observation; `None` for other steps.
fn observed(step: &GuideStep) -> Option<&Feedback> {
    step.source.step.kind.observation_feedback()
}

fn check_answers(report: &mut Report<'_>, own: Own<'_>, feedback: &Feedback) {
    if let [only] = feedback.values.as_slice() {
        let key = only.key.as_str();
        report.add(own.finding(
            Rule::SingleAnswer,
            "feedback_config[0].values",
            [("answer", json!(key))],
            format!("`{key}` is the only answer."),
        ));
    }
}

fn check_texts(report: &mut Report<'_>, own: Own<'_>, step: &GuideStep, feedback: &Feedback) {
    let translations = step.source.step.content.translations.iter();
    let translated = translations.filter_map(|(language, translation)| {
        let prefix = format!("translations[\"{language}\"].");
        Some((Some(language), prefix, translation.feedback.as_ref()?))
    });
    let source = (None, String::new(), feedback);
    for (language, prefix, feedback) in [source].into_iter().chain(translated) {
        for (index, text, keys) in duplicate_texts(feedback) {
            if report.skips(Rule::DuplicateText) {
                continue;
            }
            let [first, second] = keys;
            let finding = own.finding(
                Rule::DuplicateText,
                &format!("{prefix}feedback_config[0].values[{index}]"),
                [("text", json!(text)), ("answers", json!(keys))],
                format!("The answers `{first}` and `{second}` both show \"{text}\"."),
            );
            report.add(finding.in_language(language));
        }
    }
}

/// `usages` are those of the variables that the observation sets.
fn check_use(report: &mut Report<'_>, own: Own<'_>, feedback: &Feedback, usages: &[&Usage]) {
    let name = feedback.name.as_str();
    let mut answers: Vec<&ReadAnswers> = Vec::new();
    for usage in usages {
        match usage {
            Usage::Unknown => return,
            Usage::Read(read) => answers.push(read),
            Usage::Unread => {}
        }
    }
    if answers.is_empty() {
        let manages = feedback.values.iter().any(|value| value.link.is_some());
        if !manages && !feedback.linked {
            report.add(own.finding(
                Rule::Unused,
                "feedback_config[0].name",
                [("variable", json!(name))],
                format!("Nothing in the account reads `{name}`."),
            ));
        }
        return;
    }
    let is_read = |key: &str| answers.iter().any(|answers| answers.has(key));
    let values = feedback.values.iter();
    let read: Vec<bool> = values.map(|value| is_read(value.key.as_str())).collect();
    if !read.contains(&true) {
        return;
    }
    for (index, (value, is_read)) in feedback.values.iter().zip(read).enumerate() {
        let is_used = is_read || value.link.is_some() || feedback.linked;
        if is_used || report.skips(Rule::UnusedAnswer) {
            continue;
        }
        let key = value.key.as_str();
        report.add(own.finding(
            Rule::UnusedAnswer,
            &format!("feedback_config[0].values[{index}]"),
            [("variable", json!(name)), ("answer", json!(key))],
            format!("No condition distinguishes the answer `{key}` of `{name}`."),
        ));
    }
}

/// Which answers of an observation the conditions of the account distinguish.
enum Usage {
    /// There are too many conditions to know.
    Unknown,
    /// No condition reads it.
    Unread,
    /// Conditions read it.
    Read(ReadAnswers),
}

impl Usage {
    fn new(inside: &[&CompiledCondition], outside: Option<&[OutsideReader]>) -> Self {
        let Some(outside) = outside else {
            return Self::Unknown;
        };
        let inside = inside.iter().map(|one| (one.operator, &one.targets));
        let outside = outside.iter().map(|one| (one.operator, &one.targets));
        let conditions: Vec<_> = inside.chain(outside).collect();
        match conditions.is_empty() {
            true => Self::Unread,
            false => Self::Read(ReadAnswers::new(&conditions)),
        }
    }
}

/// The answers for which some condition has another truth than for no answer.
struct ReadAnswers {
    /// The targets of `=` and `!=`.
    equal: TargetSet,
    /// The least target of `>`.
    above: Option<f64>,
    /// The greatest target of `<`.
    below: Option<f64>,
}

impl ReadAnswers {
    fn new(conditions: &[(Comparison, &TargetSet)]) -> Self {
        let targets_of = |wanted: &'static [Comparison]| {
            let wanted = conditions.iter().filter(|one| wanted.contains(&one.0));
            TargetSet::union(wanted.map(|(_, targets)| *targets))
        };
        Self {
            equal: targets_of(&[Comparison::Equal, Comparison::NotEqual]),
            above: targets_of(&[Comparison::Greater]).least(),
            below: targets_of(&[Comparison::Less]).greatest(),
        }
    }

    fn has(&self, key: &str) -> bool {
        let answer = VariableValue::Text(key.to_owned());
        let number = answer.numeric();
        let above = number.zip(self.above);
        let below = number.zip(self.below);
        self.equal.contains(&answer)
            || above.is_some_and(|(number, least)| number > least)
            || below.is_some_and(|(number, greatest)| number < greatest)
    }
}

/// The conditions outside the guide that read a variable; `None` if there are too many to
/// read.
fn outside_readers<'a>(report: &Report<'a>, id: VariableId) -> Option<&'a [OutsideReader]> {
    let variable = report.subject.guide.variables.get(id.0);
    let account_wide = variable.filter(|variable| variable.task.is_none());
    match account_wide.and_then(|variable| report.subject.readers.get(&variable.name)) {
        None => Some(&[]),
        Some(OutsideReaders::All(readers)) => Some(readers),
        Some(OutsideReaders::TooMany) => None,
    }
}

/// Most earlier observations that a finding names.
const MAX_EARLIER: usize = 20;

/// An observation that sets the same name as earlier ones of its task.
#[derive(Debug)]
pub struct DuplicateName<'a> {
    own: Own<'a>,
    pub position: StepPosition,
    pub name: &'a str,
    /// At most `MAX_EARLIER`.
    pub earlier: Vec<StepPosition>,
}

/// The observations of the own tasks whose names are not unique within their tasks.
pub fn duplicate_names<'a>(report: &Report<'a>) -> Vec<DuplicateName<'a>> {
    let mut known: HashMap<(usize, &str), Vec<StepPosition>> = HashMap::new();
    let mut duplicates = Vec::new();
    for (own, step) in report.own_steps() {
        let Some((feedback, position)) = observed(step).zip(own.position()) else {
            continue;
        };
        let name = feedback.name.as_str();
        let earlier = known.entry((own.index, name)).or_default();
        if !earlier.is_empty() {
            duplicates.push(DuplicateName {
                own,
                position,
                name,
                earlier: earlier.clone(),
            });
        }
        if earlier.len() < MAX_EARLIER {
            earlier.push(position);
        }
    }
    duplicates
}

/// Reports an observation whose name is not unique. `together` is whether one walkthrough sees
/// both it and an earlier one, if that was decided.
pub fn report_duplicate(
    report: &mut Report<'_>,
    duplicate: &DuplicateName<'_>,
    together: Option<bool>,
) {
    const NAME: &str = "feedback_config[0].name";
    let name = duplicate.name;
    let facts = [("name", json!(name))];
    let message = format!("Another observation of the task is named `{name}`, too.");
    let mut finding = duplicate
        .own
        .finding(Rule::DuplicateName, NAME, facts, message);
    if let Some(together) = together {
        finding.facts.insert("together".to_owned(), json!(together));
    }
    let guide = report.subject.guide;
    let earlier = duplicate.earlier.iter();
    let related = earlier.filter_map(|earlier| FindingPlace::at(guide, *earlier, NAME));
    report.add(Finding {
        related: related.collect(),
        ..finding
    });
}

/// Answers that show the text of an earlier one: index, text and both keys.
fn duplicate_texts(feedback: &Feedback) -> Vec<(usize, &str, [&str; 2])> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut duplicates = Vec::new();
    for (index, value) in feedback.values.iter().enumerate() {
        let (key, text) = (value.key.as_str(), value.value.as_str());
        match first.get(text) {
            Some(earlier) => duplicates.push((index, text, [*earlier, key])),
            None => {
                first.insert(text, key);
            }
        }
    }
    duplicates
}
