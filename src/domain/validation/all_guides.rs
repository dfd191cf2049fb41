//! Documents that are all guides of an account.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    analysis::{Outside, OutsideSetter, account_name},
    external_id::ExternalId,
    ids::{StepId, TaskId},
    import::{Document, DocumentStep},
    step::{SentSubtask, StepType},
    task::TaskContent,
    translation::{Language, TaskTranslation},
    violation::{Path, Reason, Violations},
};

type TaskTranslations = BTreeMap<Language, TaskTranslation>;

/// What the guides of an account have that documents of them may use. Each is added by its index.
#[derive(Debug, Default)]
pub struct AllGuides {
    /// The observations that set each account-wide name, with the index of their guide.
    setters: BTreeMap<String, Vec<(usize, OutsideSetter)>>,
    /// Their tasks by id, each with its translations.
    tasks: BTreeMap<TaskId, TaskTranslations>,
    /// The same by external id.
    named: BTreeMap<ExternalId, TaskTranslations>,
}

#[derive(Clone, Copy, Debug)]
pub struct OneOfAllGuides<'a> {
    pub all: &'a AllGuides,
    pub index: usize,
}

impl AllGuides {
    pub fn add(&mut self, index: usize, document: &Document) {
        for document in document.all() {
            let task = document.task.to_create();
            let content = task.map_or_else(TaskContent::default, |task| task.content);
            let (guid, external_id) = (document.task.guid, content.external_id);
            let translations = || content.translations.clone();
            self.tasks.extend(guid.map(|id| (id, translations())));
            self.named
                .extend(external_id.map(|id| (id, translations())));
        }
        for (name, setter) in document.all_steps().filter_map(setter) {
            self.setters.entry(name).or_default().push((index, setter));
        }
    }
}

impl<'a> OneOfAllGuides<'a> {
    pub(super) fn find_translations(self, task: &SentSubtask) -> Option<&'a TaskTranslations> {
        match &task.external_id {
            Some(id) => self.all.named.get(id),
            None => self.all.tasks.get(&task.guid?),
        }
    }

    pub(super) fn setters_elsewhere(&self, name: &str) -> Outside<OutsideSetter> {
        let setters = self.all.setters.get(name).into_iter().flatten();
        let elsewhere = setters.filter(|(index, _)| *index != self.index);
        Outside {
            list: elsewhere.map(|(_, setter)| setter.clone()).collect(),
            is_complete: true,
        }
    }

    /// Refuses subtask steps of its document whose tasks no guide has.
    pub(super) fn check_subtasks(&self, document: &Document) -> Result<(), Violations> {
        let mut violations = Violations::new();
        for step in document.all_steps() {
            let subtask = &step.subtask;
            if step.step_type == Some(StepType::Subtask)
                && subtask.names_task()
                && self.find_translations(subtask).is_none()
            {
                let (field, description) = match subtask.external_id {
                    Some(_) => (
                        "subtask_external_id",
                        "is the external id of no task of these guides",
                    ),
                    None => ("subtask_id", "is the id of no task of these guides"),
                };
                let path = Path::root(&step.path);
                violations.add(&path.field(field), Reason::FieldInvalid, description);
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
