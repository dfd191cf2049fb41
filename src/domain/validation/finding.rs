//! Findings, their places, and their stable ids.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, StepPosition},
    sha256::Sha256,
    task::AccessLevel,
    translation::Language,
};

use super::rules::{Rule, Severity};

/// A violation of a rule by a task or step.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    pub severity: Severity,
    pub place: FindingPlace,
    pub language: Option<Language>,
    /// What is wrong, for people. All of its values are also in `facts`.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// What is wrong, for programs.
    pub facts: Map<String, Value>,
    pub related: Vec<FindingPlace>,
    /// The answers of an example: names of variables and keys.
    pub example: Vec<(String, String)>,
    /// The access levels that it applies to; empty if it does not depend on the level.
    pub levels: Vec<AccessLevel>,
    /// The sort key: the index of the task among the root and the tasks that it manages, and the
    /// index of the step, if the finding is about one.
    pub order: (usize, Option<usize>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingPlace {
    /// The id of the task; empty if a document gives it none.
    pub task: String,
    /// The id of the step; empty for a task.
    pub step: String,
    /// The path of the field. For a document, the path within the request.
    pub path: String,
    pub title: String,
}

impl FindingPlace {
    /// The place of a field of a task, or of one of its steps. An empty path is the task or step
    /// itself. A managed task or wiring step that is not in the document is placed at the value
    /// that manages the task.
    pub fn new(task: &GuideTask, step: Option<&GuideStep>, path: &str) -> Self {
        let (placed, title) = match step {
            None => {
                let placed = task.origin.as_ref().map(|origin| origin.field_path(path));
                (placed, task.task.name.as_str())
            }
            Some(GuideStep { origin, step, .. }) => {
                let placed = origin.as_ref().map(|origin| origin.field_path(path));
                (placed, step.title.as_str())
            }
        };
        Self {
            task: task.guid().map_or_else(String::new, |id| id.to_string()),
            step: (step.and_then(GuideStep::guid)).map_or_else(String::new, |id| id.to_string()),
            path: placed.unwrap_or_else(|| path.to_owned()),
            title: title.to_owned(),
        }
    }

    pub fn at(guide: &Guide, position: StepPosition, path: &str) -> Self {
        Self::new(guide.task(position.task), Some(&guide[position]), path)
    }
}

/// The maximum number of characters of a text in a finding. Names of variables have at most 2,001.
const MAX_TEXT_CHARS: usize = 2_048;
/// The maximum number of texts of a list in facts, and of places.
const MAX_LISTED: usize = 100;
/// The maximum bytes of an example. Longer examples are left out.
const MAX_EXAMPLE_BYTES: usize = 256 * 1024;
/// The approximate memory of a finding in addition to its texts.
const FINDING_BYTES: usize = 1_024;
/// The maximum number of keys in a message or hint, and of characters of each key or suggestion.
const MAX_SHOWN_KEYS: usize = 10;
const MAX_SHOWN_CHARS: usize = 100;

/// A key or name in a message or hint, which may be cut. The facts have all of it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", shortened(name, MAX_SHOWN_CHARS))
}

/// The first keys for a message or hint, and how many more there are.
pub fn quoted_keys<'k>(keys: impl ExactSizeIterator<Item = &'k str>) -> String {
    let more = keys.len().saturating_sub(MAX_SHOWN_KEYS);
    let shown: Vec<String> = keys.take(MAX_SHOWN_KEYS).map(quoted).collect();
    let shown = shown.join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A text, cut to at most `max_chars` characters and marked if it was cut.
fn shortened(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
    }
}

fn shorten(text: &mut String) {
    if let Cow::Owned(short) = shortened(text, MAX_TEXT_CHARS) {
        *text = short;
    }
}

fn shorten_fact(fact: &mut Value) {
    match fact {
        Value::String(text) => shorten(text),
        Value::Array(list) => {
            list.truncate(MAX_LISTED);
            list.iter_mut().for_each(shorten_fact);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

impl Finding {
    /// `facts` is an object.
    pub fn new(
        rule: Rule,
        place: FindingPlace,
        order: (usize, Option<usize>),
        facts: Value,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.text().severity,
            place,
            language: None,
            message: message.into(),
            hint: rule.text().hint.to_owned(),
            facts: match facts {
                Value::Object(facts) => facts,
                _ => Map::new(),
            },
            related: Vec::new(),
            example: Vec::new(),
            levels: Vec::new(),
            order,
        }
    }

    pub fn with_related(self, related: impl Iterator<Item = FindingPlace>) -> Self {
        Self {
            related: related.collect(),
            ..self
        }
    }

    /// Shortens the texts of the finding, which come from the guide and may have any length.
    pub fn shorten(&mut self) {
        shorten(&mut self.message);
        shorten(&mut self.hint);
        self.facts.values_mut().for_each(shorten_fact);
        self.related.truncate(MAX_LISTED);
        if self.example_bytes() > MAX_EXAMPLE_BYTES {
            self.example.clear();
        }
    }

    fn example_bytes(&self) -> usize {
        let example = self.example.iter();
        example.map(|(name, key)| name.len() + key.len()).sum()
    }

    pub fn bytes(&self) -> usize {
        let places = self.related.iter().chain([&self.place]);
        let places = places.map(|place| FINDING_BYTES / 4 + place.path.len() + place.title.len());
        let facts = self.facts.values().map(|fact| fact.to_string().len());
        let texts = self.message.len() + self.hint.len() + self.example_bytes();
        FINDING_BYTES + texts + places.chain(facts).sum::<usize>()
    }

    /// The id of the finding: the same for the same rule, task, step, path and facts.
    pub fn id(&self) -> String {
        let facts = serde_json::to_string(&self.facts).unwrap_or_default();
        let FindingPlace {
            task, step, path, ..
        } = &self.place;
        let mut hash = Sha256::default();
        for part in [self.rule.text().id, task, step, path, &facts] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        format!("{:032x}", u128::from_be_bytes(hash.finish()))
    }

    /// Sorts by the place in the guide, then by path, rule, access levels and message, which are
    /// the same for equal guides. Ids are the tie-breaker.
    pub fn sort(findings: &mut [Self]) {
        findings.sort_by(|one, other| {
            // An id is a digest, so ids are only computed to break ties.
            let by_id = || one.id().cmp(&other.id());
            one.sort_key().cmp(&other.sort_key()).then_with(by_id)
        });
    }

    fn sort_key(&self) -> impl Ord {
        let levels = self.levels.iter().map(|level| level.number());
        let levels: Vec<i32> = levels.collect();
        let (path, rule) = (&self.place.path, self.rule.text().id);
        (self.order, path, rule, levels, &self.message)
    }
}
