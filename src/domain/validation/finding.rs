//! Findings, their places, and their stable ids.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::domain::{
    analysis::{Guide, GuideStep, GuideTask, StepPosition},
    import::DocumentPath,
    task::AccessLevel,
    translation::Language,
};

use super::rules::{Rule, Severity};

/// A violation of a rule by a task or step.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How much it matters.
    pub severity: Severity,
    /// The task or step, and the field.
    pub place: FindingPlace,
    /// The language that it is about.
    pub language: Option<Language>,
    /// What is wrong, for people. All values in it are in `facts`, too.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// What is wrong, for programs.
    pub facts: Map<String, Value>,
    /// Other places that take part in it.
    pub related: Vec<FindingPlace>,
    /// The answers of an example: names of variables and keys.
    pub example: Vec<(String, String)>,
    /// The access levels that it concerns; empty if it does not depend on the level.
    pub levels: Vec<AccessLevel>,
    /// What findings are sorted by: the index of the task among the root and the tasks that it
    /// manages, and the index of the step, if it is about one.
    pub order: (usize, Option<usize>),
}

/// A task or step, and a field of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingPlace {
    /// The id of the task; empty if a document gives it none.
    pub task: String,
    /// The id of the step; empty for a task.
    pub step: String,
    /// The path of the field. Of a document, it is the path within the request.
    pub path: String,
    /// The title of the step, or the name of the task.
    pub title: String,
}

impl FindingPlace {
    /// A field of a task of a guide, or the task itself for an empty path. A managed task without
    /// a document is not in the request, so its place is the value that manages it.
    pub fn of_task(task: &GuideTask, path: &str) -> Self {
        let path = match task.source.origin.as_ref().map(|origin| &origin.path) {
            None => path.to_owned(),
            Some(DocumentPath::Listed(above)) => full_path(above, path),
            Some(DocumentPath::OfValue(value)) => value.clone(),
            Some(DocumentPath::Unlisted) => full_path("document.task", path),
        };
        Self {
            task: task.guid().map(|guid| guid.to_string()).unwrap_or_default(),
            step: String::new(),
            path,
            title: task.source.task.name.as_str().to_owned(),
        }
    }

    /// A field of a step of a guide, or the step itself for an empty path.
    pub fn of_step(task: &GuideTask, step: &GuideStep, path: &str) -> Self {
        let path = match step.source.origin.as_ref().map(|origin| &origin.path) {
            None => path.to_owned(),
            Some(DocumentPath::Listed(above) | DocumentPath::OfValue(above)) => {
                full_path(above, path)
            }
            Some(DocumentPath::Unlisted) => full_path("document.steps", path),
        };
        Self {
            task: task.guid().map(|guid| guid.to_string()).unwrap_or_default(),
            step: step.guid().map(|guid| guid.to_string()).unwrap_or_default(),
            path,
            title: step.source.step.title.clone(),
        }
    }

    /// A field of a step by its indexes.
    pub fn at(guide: &Guide, position: StepPosition, path: &str) -> Option<Self> {
        let task = guide.tasks.get(position.task)?;
        Some(Self::of_step(task, guide.step(position)?, path))
    }
}

/// The path of a field below that of its resource in a document.
fn full_path(above: &str, path: &str) -> String {
    match path {
        "" => above.to_owned(),
        path => format!("{above}.{path}"),
    }
}

impl Finding {
    /// The id of the finding: the same for the same rule, task, step, path and facts.
    pub fn id(&self) -> String {
        let facts = serde_json::to_string(&self.facts).unwrap_or_default();
        let FindingPlace {
            task,
            step,
            path,
            title: _,
        } = &self.place;
        let mut hash = Sha256::new();
        for part in [self.rule.text().id, task, step, path, &facts] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        let half = digest.first_chunk().copied().unwrap_or_default();
        format!("{:032x}", u128::from_be_bytes(half))
    }

    /// By the place in the guide, then the path, then the rule, then the id.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.order
            .cmp(&other.order)
            .then_with(|| self.place.path.cmp(&other.place.path))
            .then_with(|| self.rule.text().id.cmp(other.rule.text().id))
            .then_with(|| self.id().cmp(&other.id()))
    }
}
