//! Writing automatic translations. A locked translation is never changed.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::domain::{
    Error, Result,
    changes::{Changes, TranslatedStep, TranslatedTask},
    ids::{StepId, TaskId},
    nesting::{DepthLimit, limits_of_translation},
    size::{StepSize, stored_count, task_translation_size},
    task::LockedTask,
    translation::{Language, MAX_LANGUAGES, StepTranslation, TaskTranslation},
    translation_work::{AutomaticTranslation, ResourceId, SourceDigest, TranslationOutcome},
    violation::{Path, Reason, Violations},
};

use super::WriteContext;

const TRANSLATIONS: Path<'static> = Path::root("translations");

#[derive(Debug, Default)]
pub struct TranslationSnapshot {
    pub tasks: BTreeMap<Uuid, TaskTranslationSnapshot>,
    pub steps: BTreeMap<Uuid, StepTranslationSnapshot>,
}

/// A task, and its stored translations in the languages to write.
#[derive(Debug)]
pub struct TaskTranslationSnapshot {
    pub locked_task: LockedTask,
    pub rows: BTreeMap<Language, StoredTranslation<TaskTranslation, String>>,
}

/// A step without its bodies, and its stored translations in the languages to write.
#[derive(Debug)]
pub struct StepTranslationSnapshot {
    pub task: TaskId,
    pub title: String,
    pub content_digest: SourceDigest,
    pub size: StepSize,
    pub languages: usize,
    pub version: i64,
    /// Its translations, with the title and the digest of the other texts that each was
    /// translated from.
    pub rows: BTreeMap<Language, StoredTranslation<StepTranslation, (String, SourceDigest)>>,
}

#[derive(Debug, PartialEq)]
pub struct StoredTranslation<O, S> {
    /// The texts, without a body that is too large to compare.
    pub translation: O,
    pub body_bytes: i64,
    pub source: S,
}

pub fn write_translations(
    items: &[AutomaticTranslation],
    mut stored: TranslationSnapshot,
    context: &WriteContext,
) -> Result<(Changes, Vec<TranslationOutcome>)> {
    let mut tasks = BTreeMap::new();
    let mut steps = BTreeMap::new();
    let mut depth_limits = Vec::new();
    let mut outcomes = Vec::with_capacity(items.len());
    stored.check_texts(items)?;
    for (index, item) in items.iter().enumerate() {
        let outcome = if let Some(task) = stored.tasks.get_mut(&item.guid) {
            task.write(index, item, &mut tasks)?
        } else if let Some(step) = stored.steps.get_mut(&item.guid) {
            step.write(index, item, &mut steps, &mut depth_limits, context)?
        } else {
            TranslationOutcome::NotFound
        };
        outcomes.push(outcome);
    }
    let changes = Changes {
        translated_tasks: tasks.into_values().collect(),
        translated_steps: steps.into_values().collect(),
        depth_limits,
        ..Changes::default()
    };
    Ok((changes, outcomes))
}

impl TranslationSnapshot {
    /// Refuses items without any text that their task or step has.
    fn check_texts(&self, items: &[AutomaticTranslation]) -> Result<()> {
        let mut violations = Violations::new();
        for (index, item) in items.iter().enumerate() {
            let (of_task, of_step) = (item.has_task_text(), item.has_step_text());
            let (has_text, missing) = if self.tasks.contains_key(&item.guid) {
                (of_task, "needs the name of the task")
            } else if self.steps.contains_key(&item.guid) {
                (of_step, "needs a text of the step")
            } else {
                (of_task || of_step, "needs a text")
            };
            if !has_text {
                violations.add(&TRANSLATIONS.index(index), Reason::FieldRequired, missing);
            }
        }
        Ok(violations.into_result()?)
    }
}

impl TaskTranslationSnapshot {
    fn write(
        &mut self,
        index: usize,
        item: &AutomaticTranslation,
        written: &mut BTreeMap<Uuid, TranslatedTask>,
    ) -> Result<TranslationOutcome> {
        let Self { locked_task, rows } = self;
        let known = rows.get(&item.language);
        if known.is_some_and(|row| row.translation.locked) {
            return Ok(TranslationOutcome::Locked);
        }
        if item.digest != Some(SourceDigest::of_task(locked_task.name.as_str())) {
            return Ok(TranslationOutcome::Stale);
        }
        let outcome = TranslationOutcome::Written(ResourceId::Task(locked_task.guid));
        let row = StoredTranslation {
            translation: item.task_translation(),
            body_bytes: 0,
            source: locked_task.name.as_str().to_owned(),
        };
        if known == Some(&row) {
            return Ok(outcome);
        }
        let language = &item.language;
        let size =
            |row: &StoredTranslation<_, _>| task_translation_size(language, &row.translation);
        let change = written.entry(item.guid).or_insert_with(|| TranslatedTask {
            task: locked_task.guid,
            name: locked_task.name.clone(),
            by_language: Vec::new(),
            languages: locked_task.languages,
            size: locked_task.size,
            version: locked_task.row_version.version + 1,
        });
        if known.is_none() {
            count_language(&mut change.languages, index)?;
        }
        change.size += size(&row) - known.map_or(0, size);
        put(&mut change.by_language, language, row.translation.clone());
        rows.insert(language.clone(), row);
        Ok(outcome)
    }
}

impl StepTranslationSnapshot {
    fn write(
        &mut self,
        index: usize,
        item: &AutomaticTranslation,
        written: &mut BTreeMap<Uuid, TranslatedStep>,
        depth_limits: &mut Vec<(TaskId, DepthLimit)>,
        context: &WriteContext,
    ) -> Result<TranslationOutcome> {
        let known = self.rows.get(&item.language);
        if known.is_some_and(|row| row.translation.locked) {
            return Ok(TranslationOutcome::Locked);
        }
        if item.digest != Some(SourceDigest::of_step(&self.title, self.content_digest)) {
            return Ok(TranslationOutcome::Stale);
        }
        let step = StepId(item.guid);
        let outcome = TranslationOutcome::Written(ResourceId::Step(step));
        let translation = item.step_translation();
        let row = StoredTranslation {
            body_bytes: stored_count(
                translation
                    .body
                    .as_ref()
                    .map_or(0, |body| body.as_str().len()),
            ),
            translation,
            source: (self.title.clone(), self.content_digest),
        };
        if known == Some(&row) {
            return Ok(outcome);
        }
        let language = &item.language;
        let size = |row: &StoredTranslation<StepTranslation, _>| StepSize {
            bodies: row.body_bytes,
            ..StepSize::of_translation(language, &row.translation)
        };
        let change = written.entry(item.guid).or_insert_with(|| TranslatedStep {
            step,
            task: self.task,
            title: self.title.clone(),
            content_digest: self.content_digest,
            by_language: Vec::new(),
            languages: self.languages,
            size: self.size,
            version: self.version + 1,
        });
        if known.is_none() {
            count_language(&mut change.languages, index)?;
        }
        let limits = limits_of_translation(&row.translation, &TRANSLATIONS.index(index));
        depth_limits.extend(limits.into_iter().map(|limit| (self.task, limit)));
        let growth = size(&row).minus(known.map_or(StepSize::default(), size));
        change.size = change.size.plus(growth);
        change.size.check(context.max_message_bytes)?;
        put(&mut change.by_language, language, row.translation.clone());
        self.rows.insert(language.clone(), row);
        Ok(outcome)
    }
}

/// Adds a language's texts, or replaces those of an earlier item.
fn put<O>(rows: &mut Vec<(Language, O)>, language: &Language, translation: O) {
    rows.retain(|(known, _)| known != language);
    rows.push((language.clone(), translation));
}

/// Counts one more language, or refuses it.
fn count_language(languages: &mut usize, index: usize) -> Result<()> {
    if *languages >= MAX_LANGUAGES {
        return Err(Error::invalid(
            &TRANSLATIONS.index(index).field("language"),
            Reason::TooManyElements,
            format!("is one more than the {MAX_LANGUAGES} languages that a resource may have"),
        ));
    }
    *languages += 1;
    Ok(())
}
