use std::collections::BTreeMap;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ExprTrait, Iden, IntoActiveModel, Iterable, PrimaryKeyToColumn, QueryFilter,
    QueryTrait,
    sea_query::{Expr, OnConflict},
};
use uuid::Uuid;

use super::{Tx, parts, steps::existing_step};
use crate::{
    domain::{
        changes::{TranslatedStep, TranslatedTask},
        history::TranslatedFrom,
        step::Step,
        task::Task,
        translation::{Language, StepTranslation},
        translation_work::SourceDigest,
    },
    store::{
        entity::{AccountEntity, step, step_translation, task, task_translation},
        rows::{step_translation_row, task_translation_row},
        write::batch::{Batch, existing},
    },
};

/// Rows of translations that a write upserts, and translations that it deletes.
#[derive(Default)]
pub struct Rows {
    tasks: TranslationRows<task_translation::ActiveModel>,
    steps: TranslationRows<step_translation::ActiveModel>,
}

#[derive(Default)]
struct TranslationRows<M> {
    /// Rows with new texts, which are translated from the current source.
    texts: Vec<M>,
    /// Rows in which only the lock changes.
    locks: Vec<M>,
    dropped: BTreeMap<Language, Vec<Uuid>>,
}

impl<M> TranslationRows<M> {
    fn add<T: PartialEq>(
        &mut self,
        guid: Uuid,
        before: Option<&BTreeMap<Language, T>>,
        after: &BTreeMap<Language, T>,
        same_texts: impl Fn(&T, &T) -> bool,
        has_new_source: impl Fn(&Language) -> bool,
        row: impl Fn(&Language, &T) -> M,
    ) {
        for (language, translation) in after {
            match before.and_then(|rows| rows.get(language)) {
                _ if has_new_source(language) => self.texts.push(row(language, translation)),
                Some(known) if known == translation => {}
                Some(known) if same_texts(known, translation) => {
                    self.locks.push(row(language, translation))
                }
                Some(_) | None => self.texts.push(row(language, translation)),
            }
        }
        let known = before.into_iter().flat_map(BTreeMap::keys);
        for language in known.filter(|language| !after.contains_key(*language)) {
            self.dropped.entry(language.clone()).or_default().push(guid);
        }
    }
}

impl Rows {
    /// Adds the translations that differ between two states of a task, and those that were made from
    /// another text than the task's current name.
    pub fn add_task(&mut self, before: Option<&Task>, after: &Task, from: &TranslatedFrom) {
        let source = |language: &Language| from.tasks.get(&(after.guid, language.clone()));
        self.tasks.add(
            after.guid.0,
            before.map(|task| &task.content.translations),
            &after.content.translations,
            |a, b| a.name == b.name,
            |language| !from.is_empty() && source(language).is_some(),
            |language, translation| {
                let name = source(language).map_or(after.name.as_str(), String::as_str);
                task_translation_row(&after.account, after.guid, language, translation, name)
            },
        );
    }

    /// The same for a step.
    pub fn add_step(&mut self, before: Option<&Step>, after: &Step, from: &TranslatedFrom) {
        if after.content.translations.is_empty()
            && before.is_none_or(|step| step.content.translations.is_empty())
        {
            return;
        }
        let own = (after.title.as_str(), SourceDigest::of_step_content(after));
        let source = |language: &Language| from.steps.get(&(after.guid, language.clone()));
        let same_texts = |a: &StepTranslation, b: &StepTranslation| {
            let relocked = StepTranslation {
                locked: b.locked,
                ..a.clone()
            };
            relocked == *b
        };
        self.steps.add(
            after.guid.0,
            before.map(|step| &step.content.translations),
            &after.content.translations,
            same_texts,
            |language| !from.is_empty() && source(language).is_some(),
            |language, translation| {
                let source = source(language).map_or(own, |(title, rest)| (title, *rest));
                step_translation_row(&after.account, after.guid, language, translation, source)
            },
        );
    }

    /// Adds automatic translations.
    pub fn add_translated(
        &mut self,
        tasks: &[TranslatedTask],
        steps: &[TranslatedStep],
        tx: &Tx<'_>,
    ) {
        let account = &tx.context.account;
        for translated in tasks {
            let (task, name) = (translated.task, translated.name.as_str());
            let rows = translated.by_language.iter();
            self.tasks.texts.extend(rows.map(|(language, translation)| {
                task_translation_row(account, task, language, translation, name)
            }));
        }
        for translated in steps {
            let source = (translated.title.as_str(), translated.content_digest);
            let rows = translated.by_language.iter();
            self.steps.texts.extend(rows.map(|(language, translation)| {
                step_translation_row(account, translated.step, language, translation, source)
            }));
        }
    }
}

impl Tx<'_> {
    pub fn put_translations(&self, Rows { tasks, steps }: Rows, batch: &mut Batch) {
        {
            use task_translation::{Column, Entity};
            self.put_rows::<Entity>(
                tasks,
                [Column::Task, Column::Language, Column::Locked],
                batch,
            );
        }
        use step_translation::{Column, Entity};
        self.put_rows::<Entity>(
            steps,
            [Column::Step, Column::Language, Column::Locked],
            batch,
        );
    }

    fn put_rows<E: AccountEntity>(
        &self,
        rows: TranslationRows<E::ActiveModel>,
        [owner, language, locked]: [E::Column; 3],
        batch: &mut Batch,
    ) {
        // By language: an OR for each row would exceed SQLite's depth of expressions.
        for (dropped, ids) in &rows.dropped {
            for ids in parts(ids) {
                let delete = self.scope().delete::<E>();
                let delete = delete.filter(language.eq(dropped.as_str()));
                batch.add(delete.filter(owner.is_in(ids)).into_query());
            }
        }
        let is_text = |column: &E::Column| E::PrimaryKey::from_column(*column).is_none();
        batch.upsert(rows.texts, E::Column::iter().filter(is_text));
        batch.upsert(rows.locks, [locked]);
    }

    /// Adds the sizes of automatic translations to their tasks and steps, which get a new
    /// version. These are upserts of rows that exist, as in [`Self::update_rows`].
    pub fn add_translation_sizes(
        &self,
        tasks: &[TranslatedTask],
        steps: &[TranslatedStep],
        batch: &mut Batch,
    ) {
        let (account, now) = (&self.context.account, self.context.now.0);
        let tasks = tasks.iter().map(|translated| {
            let row = task::Model {
                account_id: account.as_str().to_owned(),
                guid: translated.task.0,
                size: translated.growth,
                language_count: translated.added_languages,
                dirty_record: true,
                modified_ts: now,
                ..task::Model::default()
            };
            row.into_active_model()
        });
        let steps = steps.iter().map(|translated| step::ActiveModel {
            size: Set(translated.growth.listed),
            body_size: Set(translated.growth.bodies),
            language_count: Set(translated.added_languages),
            dirty_record: Set(true),
            modified_ts: Set(now),
            ..existing_step(account, translated.step)
        });
        {
            use task::Column;
            let update = add_sizes(
                existing::<task::ActiveModel>(),
                "tasks",
                [Column::Size, Column::LanguageCount],
            );
            batch.insert_rows(tasks.collect(), Some(update));
        }
        use step::Column;
        let update = add_sizes(
            existing::<step::ActiveModel>(),
            "steps",
            [Column::Size, Column::BodySize, Column::LanguageCount],
        );
        batch.insert_rows(steps.collect(), Some(update));
    }
}

/// Adds the proposed sizes to the stored ones, and gives the rows a new version.
fn add_sizes<C: Iden + Copy + 'static>(
    mut existing: OnConflict,
    table: &'static str,
    sizes: impl IntoIterator<Item = C>,
) -> OnConflict {
    let version = Expr::col((table, "version")).add(1);
    let sizes = sizes.into_iter().map(|size| {
        let stored = Expr::col((table, size));
        (size, stored.add(Expr::col(("excluded", size))))
    });
    existing
        .values(sizes)
        .value("version", version)
        .update_columns(["dirty_record", "modified_ts"])
        .to_owned()
}
