//! Writing automatic translations. A locked translation is never changed.

use std::{collections::BTreeMap, fmt::Debug};

use uuid::Uuid;

use crate::domain::{
    Error, Result,
    changes::Changes,
    history::StepSource,
    ids::{StepId, TaskId},
    nesting::translation_depth_limits,
    size::{StepSize, task_translation_size},
    translation::{Language, MAX_LANGUAGES, StepTranslation, TaskTranslation},
    translation_work::{AutomaticTranslation, ResourceId, SourceDigest, TranslationOutcome},
    violation::{Path, Reason, Violations},
};

use super::WriteContext;

const TRANSLATIONS: Path<'static> = Path::root("translations");

/// The texts of a task or step in one language.
pub trait TranslatedTexts: Clone + Debug + PartialEq {
    type Id: Copy + Debug;
    /// What they are translated from.
    type Source: Clone + Debug + PartialEq;

    fn resource(id: Self::Id) -> ResourceId;

    fn digest(source: &Self::Source) -> SourceDigest;

    fn is_locked(&self) -> bool;

    fn size(&self, language: &Language) -> StepSize;
}

impl TranslatedTexts for TaskTranslation {
    type Id = TaskId;
    /// The name of the task.
    type Source = String;

    fn resource(id: TaskId) -> ResourceId {
        ResourceId::Task(id)
    }

    fn digest(name: &String) -> SourceDigest {
        SourceDigest::for_task(name)
    }

    fn is_locked(&self) -> bool {
        self.locked
    }

    fn size(&self, language: &Language) -> StepSize {
        StepSize {
            listed: task_translation_size(language, self),
            bodies: 0,
        }
    }
}

impl TranslatedTexts for StepTranslation {
    type Id = StepId;
    type Source = StepSource;

    fn resource(id: StepId) -> ResourceId {
        ResourceId::Step(id)
    }

    fn digest((title, content): &StepSource) -> SourceDigest {
        SourceDigest::for_step(title, *content)
    }

    fn is_locked(&self) -> bool {
        self.locked
    }

    fn size(&self, language: &Language) -> StepSize {
        StepSize::for_translation(language, self)
    }
}

/// A task, or a step without its bodies, and its stored translations in the languages to write. The
/// write updates this value.
#[derive(Debug)]
pub struct Translatable<T: TranslatedTexts> {
    pub id: T::Id,
    /// The task, or the task of the step.
    pub task: TaskId,
    pub source: T::Source,
    pub size: StepSize,
    /// The number of languages that it is translated into.
    pub languages: usize,
    pub version: i64,
    pub stored: BTreeMap<Language, StoredTranslation<T>>,
    /// What is written.
    pub written: BTreeMap<Language, T>,
}

#[derive(Debug, PartialEq)]
pub struct StoredTranslation<T: TranslatedTexts> {
    /// The texts, without a body that is too large to compare.
    pub translation: T,
    /// The size of the body, in bytes.
    pub body_bytes: i64,
    pub source: T::Source,
}

#[derive(Debug, Default)]
pub struct TranslationSnapshot {
    pub tasks: BTreeMap<Uuid, Translatable<TaskTranslation>>,
    pub steps: BTreeMap<Uuid, Translatable<StepTranslation>>,
}

pub fn write_translations(
    items: &[AutomaticTranslation],
    mut stored: TranslationSnapshot,
    context: &WriteContext,
) -> Result<(Changes, Vec<TranslationOutcome>)> {
    stored.check_texts(items)?;
    let mut changes = Changes::default();
    let mut outcomes = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = TRANSLATIONS.index(index);
        outcomes.push(if let Some(task) = stored.tasks.get_mut(&item.guid) {
            task.write(item, &item.task, &at)?
        } else if let Some(step) = stored.steps.get_mut(&item.guid) {
            let outcome = step.write(item, &item.step, &at)?;
            if let TranslationOutcome::Written(_) = outcome {
                step.size.check(context.max_message_bytes)?;
                changes.limit_depth(step.task, translation_depth_limits(&item.step, &at));
            }
            outcome
        } else {
            TranslationOutcome::NotFound
        });
    }
    let (tasks, steps) = (stored.tasks.into_values(), stored.steps.into_values());
    changes.translated_tasks = tasks.filter(|it| !it.written.is_empty()).collect();
    changes.translated_steps = steps.filter(|it| !it.written.is_empty()).collect();
    Ok((changes, outcomes))
}

impl TranslationSnapshot {
    /// Refuses items that have none of the texts of their task or step.
    fn check_texts(&self, items: &[AutomaticTranslation]) -> Result<()> {
        let mut violations = Violations::new();
        for (index, item) in items.iter().enumerate() {
            let (has_task_text, has_step_text) = (item.has_task_text(), item.has_step_text());
            let (has_text, missing) = if self.tasks.contains_key(&item.guid) {
                (has_task_text, "needs the name of the task")
            } else if self.steps.contains_key(&item.guid) {
                (has_step_text, "needs a text of the step")
            } else {
                (has_task_text || has_step_text, "needs a text")
            };
            if !has_text {
                violations.add(&TRANSLATIONS.index(index), Reason::FieldRequired, missing);
            }
        }
        Ok(violations.into_result()?)
    }
}

impl<T: TranslatedTexts> Translatable<T> {
    fn write(
        &mut self,
        item: &AutomaticTranslation,
        texts: &T,
        at: &Path<'_>,
    ) -> Result<TranslationOutcome> {
        let language = &item.language;
        let known = self.stored.get(language);
        if known.is_some_and(|known| known.translation.is_locked()) {
            return Ok(TranslationOutcome::Locked);
        }
        if item.digest != Some(T::digest(&self.source)) {
            return Ok(TranslationOutcome::Stale);
        }
        let size = texts.size(language);
        let new = StoredTranslation {
            translation: texts.clone(),
            body_bytes: size.bodies,
            source: self.source.clone(),
        };
        let outcome = TranslationOutcome::Written(T::resource(self.id));
        if known == Some(&new) {
            return Ok(outcome);
        }
        let former = known.map_or(StepSize::default(), |known| StepSize {
            bodies: known.body_bytes,
            ..known.translation.size(language)
        });
        if known.is_none() {
            if self.languages >= MAX_LANGUAGES {
                let description =
                    format!("would exceed the {MAX_LANGUAGES} languages that a resource may have");
                let at = at.field("language");
                return Err(Error::invalid(&at, Reason::TooManyElements, description));
            }
            self.languages += 1;
        }
        if self.written.is_empty() {
            self.version += 1;
        }
        self.size = self.size.plus(size).minus(former);
        self.written.insert(language.clone(), texts.clone());
        self.stored.insert(language.clone(), new);
        Ok(outcome)
    }
}
