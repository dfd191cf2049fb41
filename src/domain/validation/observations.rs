//! Rules about single observations, including unpublished ones.

use std::collections::HashMap;

use serde_json::json;

use crate::domain::{
    analysis::{CompiledCondition, Criterion, GuideStep, StepPosition, VariableId, VariableValue},
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    feedback::{Feedback, FeedbackValue},
    ids::TaskId,
    shorthand,
    text::Tag,
};

use super::{
    finding::FindingPlace,
    report::{Own, Report},
    rules::Rule,
};

const NAME: &str = "feedback_config[0].name";
const VALUES: &str = "feedback_config[0].values";

/// An observation of an own task.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    own: Own<'a>,
    pub position: StepPosition,
    step: &'a GuideStep,
    feedback: &'a Feedback,
}

/// How the conditions of the account read a variable: one criterion for each operator, without
/// targets if no condition has the operator. `None` if there are too many conditions to read.
type VariableUse = Option<[Criterion; 4]>;

/// The wiring steps of managed tasks, by the index of their own task and the managed task.
type WiringSteps<'a> = HashMap<(usize, TaskId), &'a GuideStep>;

pub fn check(report: &mut Report<'_>) {
    let own_steps = report.own_steps().into_iter();
    let wiring = own_steps.filter_map(|(_, position, step)| {
        let link = step.step.link?;
        Some(((position.task, link), step))
    });
    let wiring: WiringSteps<'_> = wiring.collect();
    let mut readers: HashMap<VariableId, Vec<&Criterion>> = HashMap::new();
    for condition in report.subject.guide.conditions() {
        let readers = readers.entry(condition.variable);
        readers.or_default().push(&condition.criterion);
    }
    // Many observations may set the same variable.
    let mut uses: HashMap<VariableId, VariableUse> = HashMap::new();
    for observation in own_observations(report) {
        if report.budget.is_stopped() {
            return;
        }
        observation.check_answers(report);
        observation.check_texts(report);
        observation.check_links(report, &wiring);
        for id in &observation.step.sets {
            let readers = readers.get(id).map_or(&[][..], Vec::as_slice);
            uses.entry(*id)
                .or_insert_with(|| find_use(report, *id, readers));
        }
        let uses = observation.step.sets.iter().filter_map(|id| uses.get(id));
        let uses: Option<Vec<&[Criterion; 4]>> = uses.map(Option::as_ref).collect();
        if let Some(uses) = uses {
            let uses: Vec<&Criterion> = uses.into_iter().flatten().collect();
            observation.check_use(report, &uses);
        }
    }
}

fn own_observations<'a>(report: &Report<'a>) -> Vec<Observation<'a>> {
    let steps = report.own_steps().into_iter();
    let observations = steps.filter_map(|(own, position, step)| {
        Some(Observation {
            own,
            position,
            step,
            feedback: step.step.kind.observation_feedback()?,
        })
    });
    observations.collect()
}

/// `readers` are the conditions of the guide.
fn find_use(report: &Report<'_>, id: VariableId, readers: &[&Criterion]) -> VariableUse {
    let variable = &report.subject.guide[id];
    let outside = report.subject.readers.get(&variable.name);
    let outside = outside.filter(|_| variable.task.is_none());
    if outside.is_some_and(|outside| !outside.is_complete) {
        return None;
    }
    let mut criteria = readers.to_vec();
    criteria.extend(outside.into_iter().flat_map(|outside| &outside.list));
    Some(Comparison::ALL.map(|operator| Criterion::merge(operator, &criteria)))
}

impl<'a> Observation<'a> {
    pub fn name(&self) -> &'a str {
        self.feedback.name.as_str()
    }

    fn check_answers(&self, report: &mut Report<'_>) {
        if let [only] = self.feedback.values.as_slice() {
            let key = only.key.as_str();
            let message = format!("`{key}` is the only answer.");
            let facts = json!({ "answer": key });
            report.add(self.own.finding(Rule::SingleAnswer, VALUES, facts, message));
        }
    }

    fn check_texts(&self, report: &mut Report<'_>) {
        let translations = self.step.step.content.translations.iter();
        let translated = translations.filter_map(|(language, translation)| {
            let prefix = format!("translations[\"{language}\"].");
            Some((Some(language), prefix, translation.feedback.as_ref()?))
        });
        let source = (None, String::new(), self.feedback);
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
                let facts = json!({ "text": text, "answers": [earlier, key] });
                let message = format!("The answers `{earlier}` and `{key}` both show \"{text}\".");
                let mut finding = self.own.finding(Rule::DuplicateText, &path, facts, message);
                finding.language = language.cloned();
                report.add(finding);
            }
        }
    }

    /// Reports managed tasks whose dependencies and wiring steps do not read the answer.
    fn check_links(&self, report: &mut Report<'_>, wiring: &WiringSteps<'_>) {
        let guide = report.subject.guide;
        for (index, value) in self.feedback.values.iter().enumerate() {
            let link = value.link.map(|link| (self.position.task, link));
            let wiring = link.and_then(|link| wiring.get(&link));
            let managed = wiring.and_then(|wiring| guide.subtask(wiring));
            let Some((wiring, managed)) = wiring.zip(managed) else {
                continue;
            };
            // The dependencies of a task beyond a limit are unknown.
            let is_beyond_limit = guide.limit.is_some() && managed.steps.is_none();
            let reads = |it: &CompiledCondition| self.step.sets.contains(&it.variable);
            let mut conditions = wiring.conditions.iter().chain(&managed.conditions);
            if is_beyond_limit || conditions.any(reads) || report.skips(Rule::AlwaysShown) {
                continue;
            }
            let (name, key) = (self.name(), value.key.as_str());
            let path = format!("{VALUES}[{index}]");
            let facts = json!({ "key": key, "name": name });
            let message =
                format!("The task of the answer `{key}` is shown for every answer to `{name}`.");
            let mut finding = self.own.finding(Rule::AlwaysShown, &path, facts, message);
            if let Some(condition) = self.condition_on(key) {
                finding.hint = format!(
                    "Add the condition `{condition}` to the task of the answer, as its \
                     `dependency_shorthand` or in its `dependencies`."
                );
            }
            report.add(finding);
        }
    }

    /// The shorthand of a condition on one answer; `None` if the name has no shorthand.
    fn condition_on(&self, key: &str) -> Option<String> {
        let product = self.step.step.product.get();
        let condition = Condition {
            variable: self.feedback.name.clone(),
            operator: Comparison::Equal,
            targets: vec![ConditionTarget::Text(key.to_owned())],
            path: Tag::parse(format!("components.{product}")).ok()?,
        };
        shorthand::render(&Group {
            operator: LogicalOperator::And,
            nodes: vec![Node::Condition(condition)],
        })
    }

    /// `uses` has the criteria of the variables that the observation sets.
    fn check_use(&self, report: &mut Report<'_>, uses: &[&Criterion]) {
        let Self { own, feedback, .. } = self;
        let name = self.name();
        let manages = |value: &FeedbackValue| feedback.linked || value.link.is_some();
        if uses.iter().all(|it| it.target_count() == 0) {
            if !feedback.linked && !feedback.values.iter().any(manages) {
                let message = format!("Nothing in the account reads `{name}`.");
                let facts = json!({ "variable": name });
                report.add(own.finding(Rule::Unused, NAME, facts, message));
            }
            return;
        }
        // For each answer, whether some condition distinguishes it from no answer.
        let is_read = feedback.values.iter().map(|value| {
            let answer = VariableValue::Text(value.key.as_str().to_owned());
            uses.iter().any(|one| one.tells_apart(&answer))
        });
        let is_read: Vec<bool> = is_read.collect();
        if !is_read.contains(&true) {
            return;
        }
        for (index, (value, is_read)) in feedback.values.iter().zip(is_read).enumerate() {
            if is_read || manages(value) || report.skips(Rule::UnusedAnswer) {
                continue;
            }
            let key = value.key.as_str();
            let path = format!("{VALUES}[{index}]");
            let facts = json!({ "variable": name, "answer": key });
            let message = format!("No condition distinguishes the answer `{key}` of `{name}`.");
            report.add(own.finding(Rule::UnusedAnswer, &path, facts, message));
        }
    }
}

const MAX_EARLIER: usize = 20;

/// An observation that sets the same name as earlier observations of its task, and at most
/// `MAX_EARLIER` of these.
pub type DuplicateName<'a> = (Observation<'a>, Vec<StepPosition>);

/// The observations of the own tasks whose names are not unique within their tasks.
pub fn duplicate_names<'a>(report: &Report<'a>) -> Vec<DuplicateName<'a>> {
    let mut known: HashMap<(usize, &str), Vec<StepPosition>> = HashMap::new();
    let mut duplicates = Vec::new();
    for observation in own_observations(report) {
        let Observation { position, .. } = observation;
        let earlier = known.entry((position.task, observation.name()));
        let earlier = earlier.or_default();
        if !earlier.is_empty() {
            duplicates.push((observation, earlier.clone()));
        }
        if earlier.len() < MAX_EARLIER {
            earlier.push(position);
        }
    }
    duplicates
}

/// Reports an observation whose name is not unique. `together` says whether a walkthrough sees both
/// it and an earlier one, if that was decided.
pub fn report_duplicate(
    report: &mut Report<'_>,
    (observation, earlier): &DuplicateName<'_>,
    together: Option<bool>,
) {
    let (guide, name) = (report.subject.guide, observation.name());
    let message = format!("Another observation of the task is also named `{name}`.");
    let facts = match together {
        Some(together) => json!({ "name": name, "together": together }),
        None => json!({ "name": name }),
    };
    let finding = (observation.own).finding(Rule::DuplicateName, NAME, facts, message);
    let places = earlier.iter();
    let places = places.map(|earlier| FindingPlace::at(guide, *earlier, NAME));
    report.add(finding.with_related(places));
}
