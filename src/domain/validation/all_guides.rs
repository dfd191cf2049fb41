//! Documents that are all guides of an account.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    analysis::{OutsideSetter, OutsideSetters, account_name},
    ids::{StepId, TaskId},
    import::{Document, DocumentStep},
    step::StepType,
    translation::{Language, TaskTranslation},
    violation::{Path, Reason, Violations},
};

/// What the guides of an account have that documents of them may use. Each is added by its index.
#[derive(Debug, Default)]
pub struct AllGuides {
    /// The observations that set each account-wide name, with the index of their guide.
    setters: BTreeMap<String, Vec<(usize, OutsideSetter)>>,
    /// Their tasks, each with its translations.
    tasks: BTreeMap<TaskId, BTreeMap<Language, TaskTranslation>>,
}

#[derive(Clone, Copy, Debug)]
pub struct OneOfAllGuides<'a> {
    pub all: &'a AllGuides,
    pub index: usize,
}

impl AllGuides {
    pub fn add(&mut self, index: usize, document: &Document) {
        for document in document.all() {
            if let Some(guid) = document.task.guid {
                let task = document.task.to_create();
                let translations = task.map(|task| task.content.translations);
                self.tasks.insert(guid, translations.unwrap_or_default());
            }
        }
        for (name, setter) in document.all_steps().filter_map(setter) {
            self.setters.entry(name).or_default().push((index, setter));
        }
    }
}

impl OneOfAllGuides<'_> {
    pub(super) fn translations(&self, task: TaskId) -> BTreeMap<Language, TaskTranslation> {
        self.all.tasks.get(&task).cloned().unwrap_or_default()
    }

    /// The observations of other guides that set a name.
    pub(super) fn setters_elsewhere(&self, name: &str) -> OutsideSetters {
        let setters = self.all.setters.get(name).into_iter().flatten();
        let elsewhere = setters.filter(|(index, _)| *index != self.index);
        OutsideSetters::All(elsewhere.map(|(_, setter)| setter.clone()).collect())
    }

    /// Refuses subtask steps of its document whose tasks no guide has.
    pub(super) fn check_subtasks(&self, document: &Document) -> Result<(), Violations> {
        let mut violations = Violations::new();
        for step in document.all_steps() {
            let is_missing = |task: TaskId| !self.all.tasks.contains_key(&task);
            if step.step_type == Some(StepType::Subtask) && step.subtask_id.is_some_and(is_missing)
            {
                violations.add(
                    &Path::root(&step.path).field("subtask_id"),
                    Reason::FieldInvalid,
                    "is the id of no task of these guides",
                );
            }
        }
        violations.into_result()
    }
}

/// The account-wide name that a step sets, if it is an observation.
fn setter(step: &DocumentStep) -> Option<(String, OutsideSetter)> {
    if step.step_type != Some(StepType::Observation) {
        return None;
    }
    let observation = step.to_create()?;
    let feedback = observation.kind.feedback()?;
    let keys = feedback.values.iter();
    let name = account_name(observation.product, feedback.name.as_str());
    let setter = OutsideSetter {
        task: step.task.unwrap_or(TaskId(Uuid::nil())),
        step: step.guid.unwrap_or(StepId(Uuid::nil())),
        title: observation.title,
        keys: keys.map(|value| value.key.as_str().to_owned()).collect(),
    };
    Some((name, setter))
}
