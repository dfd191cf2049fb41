//! Rules about single observations, unpublished ones included.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{Criterion, GuideStep, StepPosition, VariableId, VariableValue},
    dependency::Comparison,
    feedback::Feedback,
};

use super::{
    finding::FindingPlace,
    report::{Own, Report},
    rules::Rule,
};

const NAME: &str = "feedback_config[0].name";
const VALUES: &str = "feedback_config[0].values";

pub fn check(report: &mut Report<'_>) {
    let mut readers: HashMap<VariableId, Vec<&Criterion>> = HashMap::new();
    for condition in report.subject.guide.conditions() {
        let readers = readers.entry(condition.variable);
        readers.or_default().push(&condition.criterion);
    }
    // Many observations may set the same variable.
    let mut uses: HashMap<VariableId, Option<VariableUse>> = HashMap::new();
    for (own, _, step) in report.own_steps() {
        let Some(feedback) = step.source.step.kind.observation_feedback() else {
            continue;
        };
        if report.is_stopped() {
            return;
        }
        check_answers(report, own, feedback);
        check_texts(report, own, step, feedback);
        for id in &step.sets {
            uses.entry(*id).or_insert_with(|| {
                let mut criteria = readers.remove(id).unwrap_or_default();
                criteria.extend(outside_readers(report, *id)?);
                Some(VariableUse::new(&criteria))
            });
        }
        let uses = step.sets.iter().filter_map(|id| uses.get(id));
        if let Some(uses) = uses.map(Option::as_ref).collect::<Option<Vec<_>>>() {
            check_use(report, own, feedback, &uses);
        }
    }
}

fn check_answers(report: &mut Report<'_>, own: Own<'_>, feedback: &Feedback) {
    if let [only] = feedback.values.as_slice() {
        let key = only.key.as_str();
        let facts = [("answer", json!(key))];
        let message = format!("`{key}` is the only answer.");
        report.add(own.finding(Rule::SingleAnswer, VALUES, facts, message));
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
            let path = format!("{prefix}{VALUES}[{index}]");
            let facts = [("text", json!(text)), ("answers", json!([earlier, key]))];
            let message = format!("The answers `{earlier}` and `{key}` both show \"{text}\".");
            let finding = own.finding(Rule::DuplicateText, &path, facts, message);
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
            let facts = [("variable", json!(name))];
            let message = format!("Nothing in the account reads `{name}`.");
            report.add(own.finding(Rule::Unused, NAME, facts, message));
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
        let path = format!("{VALUES}[{index}]");
        let facts = [("variable", json!(name)), ("answer", json!(key))];
        let message = format!("No condition distinguishes the answer `{key}` of `{name}`.");
        report.add(own.finding(Rule::UnusedAnswer, &path, facts, message));
    }
}

/// What the conditions of the account say of a variable.
struct VariableUse {
    is_read: bool,
    /// One criterion for each operator.
    criteria: [Criterion; 4],
}

impl VariableUse {
    fn new(criteria: &[&Criterion]) -> Self {
        let merge = |operator| {
            let with_operator = criteria.iter().filter(|one| one.operator == operator);
            Criterion::merge(operator, with_operator.copied())
        };
        Self {
            is_read: !criteria.is_empty(),
            criteria: Comparison::ALL.map(merge),
        }
    }

    /// Whether some condition has another truth for an answer than for none.
    fn tells_apart(&self, key: &str) -> bool {
        let answer = VariableValue::Text(key.to_owned());
        self.criteria.iter().any(|one| one.tells_apart(&answer))
    }
}

/// What the conditions outside the guide say of a variable; `None` if there are too many to
/// read.
fn outside_readers<'a>(report: &Report<'a>, id: VariableId) -> Option<&'a [Criterion]> {
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
        let Some(feedback) = step.source.step.kind.observation_feedback() else {
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
