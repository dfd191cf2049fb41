use std::{cell::LazyCell, collections::BTreeMap};

use sea_orm::{IntoActiveModel, Iterable, PrimaryKeyToColumn, sea_query::ValueTuple};
use uuid::Uuid;

use super::{Batch, Tx};
use crate::{
    domain::{
        decide::Translatable,
        history::TranslatedFrom,
        size::stored_count,
        step::Step,
        task::Task,
        translation::{Language, StepTranslation, TaskTranslation},
        translation_work::SourceDigest,
    },
    store::{
        entity::{AccountEntity, step, step_translation, task, task_translation},
        rows::{step_translation_row, task_translation_row},
    },
};

/// The translations that a write changes.
#[derive(Default)]
pub struct Translations {
    tasks: Rows<task_translation::ActiveModel>,
    steps: Rows<step_translation::ActiveModel>,
}

#[derive(Default)]
struct Rows<M> {
    /// Rows with new texts, which are translated from the current source.
    texts: Vec<M>,
    /// Rows in which only the lock changes.
    locks: Vec<M>,
    /// Keys of deleted translations: (task or step id, language).
    dropped: Vec<ValueTuple>,
}

impl<M> Rows<M> {
    /// Adds each translation that changed or has a recorded `source`. `row` builds its row.
    fn add<T: PartialEq, S>(
        &mut self,
        id: Uuid,
        before: Option<&BTreeMap<Language, T>>,
        after: &BTreeMap<Language, T>,
        same_texts: impl Fn(&T, &T) -> bool,
        source: impl Fn(&Language) -> Option<S>,
        row: impl Fn(&Language, &T, Option<S>) -> M,
    ) {
        for (language, translation) in after {
            let known = before.and_then(|before| before.get(language));
            let source = source(language);
            if source.is_none() && known == Some(translation) {
                continue;
            }
            let is_relocked =
                source.is_none() && known.is_some_and(|known| same_texts(known, translation));
            let row = row(language, translation, source);
            if is_relocked {
                self.locks.push(row);
            } else {
                self.texts.push(row);
            }
        }
        let known = before.into_iter().flat_map(BTreeMap::keys);
        let dropped = known.filter(|language| !after.contains_key(*language));
        let key = |language: &Language| ValueTuple::Two(id.into(), language.as_str().into());
        self.dropped.extend(dropped.map(key));
    }
}

impl Translations {
    /// Adds the translations that differ between two states of a task, and translations of a text
    /// other than the task's current name.
    pub fn add_task(&mut self, before: Option<&Task>, after: &Task, from: &TranslatedFrom) {
        self.tasks.add(
            after.guid.0,
            before.map(|task| &task.content.translations),
            &after.content.translations,
            |a, b| a.name == b.name,
            |language| from.tasks.get(&(after.guid, language.clone())),
            |language, translation, source| {
                let name = source.map_or(after.name.as_str(), String::as_str);
                task_translation_row(&after.account, after.guid, language, translation, name)
            },
        );
    }

    /// The same for a step.
    pub fn add_step(&mut self, before: Option<&Step>, after: &Step, from: &TranslatedFrom) {
        let digest = LazyCell::new(|| SourceDigest::for_step_content(after));
        self.steps.add(
            after.guid.0,
            before.map(|step| &step.content.translations),
            &after.content.translations,
            |a, b| {
                let locked = b.locked;
                StepTranslation {
                    locked,
                    ..a.clone()
                } == *b
            },
            |language| from.steps.get(&(after.guid, language.clone())),
            |language, translation, source| {
                let source = match source {
                    Some((title, digest)) => (title.as_str(), *digest),
                    None => (after.title.as_str(), *digest),
                };
                step_translation_row(&after.account, after.guid, language, translation, source)
            },
        );
    }

    pub fn add_automatic(
        &mut self,
        tasks: &[Translatable<TaskTranslation>],
        steps: &[Translatable<StepTranslation>],
        tx: &Tx<'_>,
    ) {
        let account = &tx.context.account;
        for translated in tasks {
            let (task, name) = (translated.id, &translated.source);
            let rows = translated.written.iter();
            self.tasks.texts.extend(rows.map(|(language, translation)| {
                task_translation_row(account, task, language, translation, name)
            }));
        }
        for translated in steps {
            let (title, content) = &translated.source;
            let source = (title.as_str(), *content);
            let rows = translated.written.iter();
            self.steps.texts.extend(rows.map(|(language, translation)| {
                step_translation_row(account, translated.id, language, translation, source)
            }));
        }
    }
}

impl Batch<'_> {
    pub fn put_translations(&mut self, Translations { tasks, steps }: Translations) {
        use step_translation::Column as StepColumn;
        use task_translation::Column as TaskColumn;
        let key = [TaskColumn::Task, TaskColumn::Language];
        self.put_rows::<task_translation::Entity>(tasks, key, TaskColumn::Locked);
        let key = [StepColumn::Step, StepColumn::Language];
        self.put_rows::<step_translation::Entity>(steps, key, StepColumn::Locked);
    }

    fn put_rows<E: AccountEntity>(
        &mut self,
        rows: Rows<E::ActiveModel>,
        key: [E::Column; 2],
        locked: E::Column,
    ) {
        self.delete_keys::<E>(key, rows.dropped);
        let is_text = |column: &E::Column| E::PrimaryKey::from_column(*column).is_none();
        self.upsert(rows.texts, E::Column::iter().filter(is_text));
        self.upsert(rows.locks, [locked]);
    }

    /// Writes the sizes and versions of tasks and steps with automatic translations.
    pub fn resize_translated(
        &mut self,
        tasks: &[Translatable<TaskTranslation>],
        steps: &[Translatable<StepTranslation>],
    ) {
        let now = self.tx.context.now.0;
        let tasks = tasks.iter().map(|translated| {
            let row = task::Model {
                account_id: self.tx.context.account.as_str().to_owned(),
                guid: translated.id.0,
                size: translated.size.listed,
                language_count: stored_count(translated.languages),
                version: translated.version,
                dirty_record: true,
                modified_ts: now,
                ..task::Model::default()
            };
            row.into_active_model()
        });
        let tasks = Vec::from_iter(tasks);
        let steps = steps.iter().map(|translated| {
            let row = step::Model {
                size: translated.size.listed,
                body_size: translated.size.bodies,
                language_count: stored_count(translated.languages),
                version: translated.version,
                dirty_record: true,
                modified_ts: now,
                ..self.existing_step(translated.id)
            };
            row.into_active_model()
        });
        let steps = Vec::from_iter(steps);
        {
            use task::Column;
            let sizes = [Column::Size, Column::LanguageCount];
            let revised = [Column::Version, Column::DirtyRecord, Column::ModifiedTs];
            self.upsert(tasks, sizes.into_iter().chain(revised));
        }
        use step::Column;
        let sizes = [Column::Size, Column::BodySize, Column::LanguageCount];
        let revised = [Column::Version, Column::DirtyRecord, Column::ModifiedTs];
        self.upsert(steps, sizes.into_iter().chain(revised));
    }
}
