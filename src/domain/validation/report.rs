//! Collects the findings of a guide, as the options of the caller filter them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, StepPosition, StopSignal, TargetSet},
    dependency::{Comparison, ConditionTarget},
    ids::TaskId,
    json::number,
};

use super::{
    finding::{Finding, FindingPlace, shortened},
    options::ValidationOptions,
    rules::{Rule, Severity},
    walk::walk,
};

/// How many findings there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingCounts {
    /// Findings with the severity ERROR.
    pub errors: usize,
    /// Findings with the severity WARNING.
    pub warnings: usize,
    /// Findings with the severity INFO.
    pub infos: usize,
    /// Findings that the caller suppresses.
    pub suppressed: usize,
    /// Questions that the search could not decide.
    pub undecided: usize,
}

/// A condition outside a guide that reads a variable of the guide.
#[derive(Clone, Debug)]
pub struct OutsideReader {
    /// How it compares.
    pub operator: Comparison,
    /// What it compares with.
    pub targets: TargetSet,
}

/// The conditions outside a guide that read an account-wide variable.
#[derive(Clone, Debug)]
pub enum OutsideReaders {
    /// All of them.
    All(Vec<OutsideReader>),
    /// More than are read; none are kept.
    TooMany,
}

/// The guide to validate, and what else the rules need.
#[derive(Clone, Copy, Debug)]
pub struct ValidationSubject<'a> {
    /// The guide.
    pub guide: &'a Guide,
    /// The conditions outside that read its variables, by name.
    pub readers: &'a BTreeMap<String, OutsideReaders>,
    /// How it is validated.
    pub options: &'a ValidationOptions,
    /// Whether its variables were looked up in the other guides of the account.
    pub other_guides: OtherGuides,
    /// Tells it to stop.
    pub stop: StopSignal<'a>,
}

/// Whether it is known what other guides of the account set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherGuides {
    /// It was read.
    Read,
    /// A document is validated without its account.
    Unknown,
}

/// A task that findings are about: the root, or one that it manages.
#[derive(Clone, Copy, Debug)]
pub struct OwnTask<'a> {
    /// Its index in [`Guide::tasks`].
    pub index: usize,
    /// Its index among the own tasks.
    pub order: usize,
    /// The task.
    pub task: &'a GuideTask,
}

/// A step of a task that findings are about.
#[derive(Clone, Copy, Debug)]
pub struct OwnStep<'a> {
    /// Its task.
    pub own_task: OwnTask<'a>,
    /// Its indexes.
    pub position: StepPosition,
    /// The step.
    pub step: &'a GuideStep,
}

/// The findings of a guide.
#[derive(Debug)]
pub struct Report<'a> {
    /// The guide and its options.
    pub subject: ValidationSubject<'a>,
    own: Vec<OwnTask<'a>>,
    /// The first findings that the options do not leave out, as many as have room.
    pub findings: Vec<Finding>,
    /// The room for further findings; `None` once one did not fit.
    bytes_left: Option<usize>,
    /// How many findings may still be made.
    findings_left: usize,
    /// The counts of all findings, those that are not kept included.
    pub counts: FindingCounts,
    /// How many candidates and pairs of characters may still be compared to suggest names.
    comparisons_left: usize,
}

/// Most candidates and pairs of characters that are compared to suggest names. A guide with more unknown
/// names has suggestions for the first of them.
pub const MAX_SUGGESTION_COMPARISONS: usize = 20_000_000;
/// Most bytes of memory that the findings of a guide take. Those beyond are only counted.
const MAX_FINDING_BYTES: usize = 32 * 1024 * 1024;
/// Most findings that are made, those that the caller suppresses included. Those beyond are
/// only counted, and not as suppressed.
const MAX_FINDINGS_MADE: usize = 300_000;
/// What a candidate costs that is looked at to suggest names, in pairs of characters.
const CANDIDATE_COST: usize = 16;

impl<'a> Report<'a> {
    /// A report without findings.
    pub fn new(subject: ValidationSubject<'a>) -> Self {
        Self {
            subject,
            own: own_tasks(subject.guide),
            findings: Vec::new(),
            bytes_left: Some(MAX_FINDING_BYTES),
            findings_left: MAX_FINDINGS_MADE,
            counts: FindingCounts::default(),
            comparisons_left: MAX_SUGGESTION_COMPARISONS,
        }
    }

    /// The closest of the candidates, as [`closest`] finds it.
    pub fn suggest<'c>(
        &mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        closest(name, candidates, &mut self.comparisons_left)
    }

    /// The task and the tasks that it manages, in the order of the guide.
    pub fn own_tasks(&self) -> Vec<OwnTask<'a>> {
        self.own.clone()
    }

    /// The task that is validated; `None` if the guide has no task.
    pub fn root(&self) -> Option<OwnTask<'a>> {
        self.own.first().copied()
    }

    /// The steps of the own tasks.
    pub fn own_steps(&self) -> Vec<OwnStep<'a>> {
        let guide = self.subject.guide;
        let steps = self.own.iter().flat_map(|own| {
            let steps = guide.steps(own.index).iter().enumerate();
            steps.map(|(index, step)| OwnStep {
                own_task: *own,
                position: StepPosition {
                    task: own.index,
                    step: index,
                },
                step,
            })
        });
        steps.collect()
    }

    /// Adds a finding unless the caller does not want it.
    pub fn add(&mut self, mut finding: Finding) {
        let options = self.subject.options;
        let Some(severity) = options.severity(finding.rule, finding.severity) else {
            return;
        };
        finding.severity = severity;
        self.findings_left = self.findings_left.saturating_sub(1);
        if options.suppresses(&finding) {
            self.counts.suppressed += 1;
            return;
        }
        self.count(severity);
        finding.shorten();
        let bytes_left = self.bytes_left;
        self.bytes_left = bytes_left.and_then(|left| left.checked_sub(finding.bytes()));
        if self.bytes_left.is_some() {
            self.findings.push(finding);
        }
    }

    /// Whether a finding of the rule need not be made: the rule is off, or there is no room for
    /// the finding, which is then counted. For findings that a guide may have millions of.
    pub fn skips(&mut self, rule: Rule) -> bool {
        let options = self.subject.options;
        let Some(severity) = options.severity(rule, rule.text().severity) else {
            return true;
        };
        let is_full = self.bytes_left.is_none() && options.suppress.is_empty();
        let has_no_room = is_full || self.findings_left == 0;
        if has_no_room {
            self.count(severity);
        }
        has_no_room
    }

    /// Whether nobody waits for the findings any more.
    pub fn is_stopped(&self) -> bool {
        self.subject.stop.is_given()
    }

    fn count(&mut self, severity: Severity) {
        *self.counts.of(severity) += 1;
    }
}

impl FindingCounts {
    /// How many findings of a severity there are.
    pub fn of(&mut self, severity: Severity) -> &mut usize {
        match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Info => &mut self.infos,
        }
    }
}

impl OwnTask<'_> {
    /// A finding about the task, with facts.
    pub fn finding<const N: usize>(
        &self,
        rule: Rule,
        path: &str,
        facts: [(&str, Value); N],
        message: String,
    ) -> Finding {
        let place = FindingPlace::of_task(self.task, path);
        finding(rule, place, (self.order, None), facts, message)
    }
}

impl OwnStep<'_> {
    /// A finding about the step, with facts.
    pub fn finding<const N: usize>(
        &self,
        rule: Rule,
        path: &str,
        facts: [(&str, Value); N],
        message: String,
    ) -> Finding {
        let place = FindingPlace::of_step(self.own_task.task, self.step, path);
        let order = (self.own_task.order, Some(self.position.step));
        finding(rule, place, order, facts, message)
    }
}

/// A finding with facts. `order` is what it is sorted by.
pub fn finding<const N: usize>(
    rule: Rule,
    place: FindingPlace,
    order: (usize, Option<usize>),
    facts: [(&str, Value); N],
    message: String,
) -> Finding {
    let facts = facts.into_iter();
    let facts: Map<String, Value> = facts
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Finding {
        rule,
        severity: rule.text().severity,
        place,
        language: None,
        message,
        hint: rule.text().hint.to_owned(),
        facts,
        related: Vec::new(),
        example: Vec::new(),
        levels: Vec::new(),
        order,
    }
}

/// The most characters of a suggestion in a hint. The fact has all of it.
const MAX_SUGGESTED_CHARS: usize = 200;

impl Finding {
    /// Adds the name that the caller probably meant.
    pub fn suggesting(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            let shown = shortened(name, MAX_SUGGESTED_CHARS);
            self.hint = format!("Is `{shown}` meant? {}", self.hint);
            let name = Value::String(name.to_owned());
            self.facts.insert("suggestion".to_owned(), name);
        }
        self
    }
}

/// The candidate with the least edit distance: at most 2 or a third of the name's length,
/// whichever is more, and so that they have something in common. What both begin with up to a
/// dot, such as `components.7.`, does not count.
/// `None` once too many candidates and pairs of characters were compared.
pub fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    comparisons_left: &mut usize,
) -> Option<&'c str> {
    let mut closest: Option<(usize, &str)> = None;
    for candidate in candidates {
        *comparisons_left = comparisons_left.checked_sub(CANDIDATE_COST)?;
        let (rest, other) = without_common_groups(name, candidate);
        let length = rest.chars().count();
        let max_distance = (length / 3).max(2);
        // A character has up to four bytes.
        let most_bytes = 4 * (length + max_distance);
        if candidate == name || other.len() > most_bytes {
            continue;
        }
        let other_length = other.chars().count();
        if other_length.abs_diff(length) > max_distance {
            continue;
        }
        *comparisons_left = comparisons_left.checked_sub(length * other_length)?;
        let distance = strsim::levenshtein(rest, other);
        let is_similar = distance <= max_distance && distance < length.max(other_length);
        let found = (distance, candidate);
        if is_similar && closest.is_none_or(|closest| found < closest) {
            closest = Some(found);
        }
    }
    closest.map(|(_, candidate)| candidate)
}

/// What follows the last dot up to which two names are the same.
fn without_common_groups<'n>(name: &'n str, other: &'n str) -> (&'n str, &'n str) {
    let pairs = name.bytes().zip(other.bytes());
    let common = pairs.take_while(|(one, another)| one == another);
    let after_dot = common
        .zip(1..)
        .filter(|((byte, _), _)| *byte == b'.')
        .last();
    let begin = after_dot.map_or(0, |(_, length)| length);
    (
        name.get(begin..).unwrap_or(name),
        other.get(begin..).unwrap_or(other),
    )
}

/// A target as the JSON value of a fact.
pub fn target_fact(target: &ConditionTarget) -> Value {
    match target {
        ConditionTarget::Text(text) => Value::String(text.clone()),
        ConditionTarget::Number(value) => number(*value).unwrap_or(Value::Null),
        ConditionTarget::Bool(value) => Value::Bool(*value),
    }
}

/// The root and the tasks that it manages, in the order of the guide.
fn own_tasks(guide: &Guide) -> Vec<OwnTask<'_>> {
    let mut order: Vec<usize> = Vec::new();
    if guide.root().is_some() {
        order.push(0);
    }
    let mut is_own: Vec<bool> = vec![false; guide.tasks.len()];
    if let Some(root) = is_own.first_mut() {
        *root = true;
    }
    let mut add = |order: &mut Vec<usize>, index: usize, parent: usize| {
        let managed = guide.tasks.get(index).is_some_and(|task| {
            let parent = guide.tasks.get(parent).map(|task| task.source.task.guid);
            is_managed_by(task, parent)
        });
        let parent_is_own = is_own.get(parent).copied().unwrap_or_default();
        if let Some(own) = is_own.get_mut(index)
            && managed
            && parent_is_own
            && !*own
        {
            *own = true;
            order.push(index);
        }
    };
    let all = |_: &GuideStep| true;
    // A walk over a guide beyond its limits may be very long. Its tasks are only added by
    // the loop below, level by level.
    if guide.limit.is_none() {
        walk(guide, &all, &mut |position, step, _| {
            if let Some(subtask) = step.subtask {
                add(&mut order, subtask, position.task);
            }
        });
    }
    let mut searched = 0;
    while let Some(&parent) = order.get(searched) {
        for step in guide.steps(parent) {
            if let Some(subtask) = step.subtask {
                add(&mut order, subtask, parent);
            }
        }
        searched += 1;
    }
    let tasks = order.into_iter().enumerate();
    let tasks = tasks.filter_map(|(order, index)| {
        let task = guide.tasks.get(index)?;
        Some(OwnTask { index, order, task })
    });
    tasks.collect()
}

fn is_managed_by(task: &GuideTask, parent: Option<TaskId>) -> bool {
    let managed = task.source.task.managed;
    managed.is_some_and(|managed| Some(managed.parent) == parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_differs_by_two_or_a_third_of_the_length() {
        let names = ["charge_light", "charge_light_after", "power"];
        for (name, found) in [
            ("charge_ligth", Some("charge_light")),
            ("powr", Some("power")),
            ("pwr", Some("power")),
            ("pow", Some("power")),
            ("po", None),
            ("power", None),
            ("charge", None),
            ("charge_light_af", Some("charge_light")),
        ] {
            let mut left = 1_000;
            assert_eq!(closest(name, names, &mut left), found, "{name}");
        }
    }

    #[test]
    fn of_several_similar_names_the_closest_is_found_or_the_first_in_order() {
        for names in [
            ["voltbges", "voltagee", "voltagea"],
            ["voltagea", "voltbges", "voltagee"],
        ] {
            let mut left = 1_000;
            assert_eq!(closest("voltage", names, &mut left), Some("voltagea"));
        }
    }

    #[test]
    fn the_closest_name_has_something_in_common_that_not_every_name_has() {
        for (name, candidate, is_closest) in [
            ("components.7.powr", "components.7.power", true),
            ("components.7.display", "components.7.power", false),
            ("components.7.zz", "components.7.ab", false),
            ("components.71.power", "components.7.power", true),
            ("component.7.power", "components.7.power", true),
            ("ja", "no", false),
            ("jo", "no", true),
            ("é.a.x", "é.a.y.z", false),
        ] {
            let mut left = 1_000;
            let found = is_closest.then_some(candidate);
            assert_eq!(closest(name, [candidate], &mut left), found, "{name}");
        }
    }

    #[test]
    fn the_closest_name_is_looked_for_as_long_as_comparisons_are_left() {
        for (mut left, found) in [(41, Some("power")), (40, None)] {
            assert_eq!(closest("powre", ["power"], &mut left), found);
        }
    }
}
