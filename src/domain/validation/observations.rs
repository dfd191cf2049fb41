//! Rules about single observations, unpublished ones included.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{CompiledCondition, GuideStep, StepPosition, TargetSet, VariableId, VariableValue},
    dependency::Comparison,
    feedback::Feedback,
};

use super::{
    finding::FindingPlace,
    report::{OutsideReader, Own, Report},
    rules::Rule,
};

pub fn check(report: &mut Report<'_>) {
    let mut readers: HashMap<VariableId, Vec<&CompiledCondition>> = HashMap::new();
    for condition in report.subject.guide.conditions() {
        let readers = readers.entry(condition.variable);
        readers.or_default().push(condition);
    }
    // Many observations may set the same variable.
    let mut uses: HashMap<VariableId, Option<VariableUse>> = HashMap::new();
    for (own, _, step) in report.own_steps() {
        let Some(feedback) = observed(step) else {
            continue;
        };
        if report.is_stopped() {
            return;
        }
        check_answers(report, own, feedback);
        check_texts(report, own, step, feedback);
        for id in &step.sets {
            uses.entry(*id).or_insert_with(|| {
                let inside = readers.get(id).map_or(&[][..], Vec::as_slice);
                Some(VariableUse::new(inside, outside_readers(report, *id)?))
            });
        }
        let uses = step.sets.iter().filter_map(|id| uses.get(id));
        if let Some(uses) = uses.map(Option::as_ref).collect::<Option<Vec<_>>>() {
            check_use(report, own, feedback, &uses);
        }
    }
}

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
        // The first answer that shows each text.
        let mut first: HashMap<&str, &str> = HashMap::new();
        for (index, value) in feedback.values.iter().enumerate() {
            let (key, text) = (value.key.as_str(), value.value.as_str());
            let earlier = *first.entry(text).or_insert(key);
            if earlier == key || report.skips(Rule::DuplicateText) {
                continue;
            }
            let finding = own.finding(
                Rule::DuplicateText,
                &format!("{prefix}feedback_config[0].values[{index}]"),
                [("text", json!(text)), ("answers", json!([earlier, key]))],
                format!("The answers `{earlier}` and `{key}` both show \"{text}\"."),
            );
            report.add(finding.in_language(language));
        }
    }
}

/// `uses` are those of the variables that the observation sets.
fn check_use(report: &mut Report<'_>, own: Own<'_>, feedback: &Feedback, uses: &[&VariableUse]) {
    let name = feedback.name.as_str();
    let manages = feedback.linked || feedback.values.iter().any(|value| value.link.is_some());
    if !uses.iter().any(|it| it.is_read) {
        if !manages {
            report.add(own.finding(
                Rule::Unused,
                "feedback_config[0].name",
                [("variable", json!(name))],
                format!("Nothing in the account reads `{name}`."),
            ));
        }
        return;
    }
    let keys = feedback.values.iter().map(|value| value.key.as_str());
    let read: Vec<bool> = keys
        .map(|key| uses.iter().any(|it| it.tells_apart(key)))
        .collect();
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

/// What the conditions of the account compare a variable with.
struct VariableUse {
    is_read: bool,
    equal: TargetSet,
    above: TargetSet,
    below: TargetSet,
}

impl VariableUse {
    fn new(inside: &[&CompiledCondition], outside: &[OutsideReader]) -> Self {
        let inside = inside.iter().map(|one| (one.operator, &one.targets));
        let outside = outside.iter().map(|one| (one.operator, &one.targets));
        let conditions = inside.chain(outside);
        let targets = |operators: &[Comparison]| {
            let compared = conditions.clone().filter(|one| operators.contains(&one.0));
            TargetSet::union(compared.map(|(_, targets)| targets))
        };
        Self {
            equal: targets(&[Comparison::Equal, Comparison::NotEqual]),
            above: targets(&[Comparison::Greater]),
            below: targets(&[Comparison::Less]),
            is_read: conditions.clone().next().is_some(),
        }
    }

    /// Whether some condition has another truth for an answer than for none.
    fn tells_apart(&self, key: &str) -> bool {
        let answer = VariableValue::Text(key.to_owned());
        self.equal.satisfied_by(Comparison::Equal, &answer)
            || self.above.satisfied_by(Comparison::Greater, &answer)
            || self.below.satisfied_by(Comparison::Less, &answer)
    }
}

/// The conditions outside the guide that read a variable; `None` if there are too many to
/// read.
fn outside_readers<'a>(report: &Report<'a>, id: VariableId) -> Option<&'a [OutsideReader]> {
    let variable = &report.subject.guide[id];
    let readers = report.subject.readers.get(&variable.name);
    match readers.filter(|_| variable.task.is_none()) {
        None => Some(&[]),
        Some(readers) => readers.is_complete.then_some(&readers.list),
    }
}

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
    for (own, position, step) in report.own_steps() {
        let Some(feedback) = observed(step) else {
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
    let DuplicateName {
        own, name, earlier, ..
    } = duplicate;
    let message = format!("Another observation of the task is named `{name}`, too.");
    let mut finding = own.finding(Rule::DuplicateName, NAME, [("name", json!(name))], message);
    if let Some(together) = together {
        finding.facts.insert("together".to_owned(), json!(together));
    }
    let guide = report.subject.guide;
    let places = earlier.iter();
    let places = places.map(|earlier| FindingPlace::at(guide, *earlier, NAME));
    report.add(finding.with_related(places));
}
