use std::collections::BTreeMap;

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, ExprTrait, QueryFilter, QueryTrait,
    sea_query::{Alias, Expr, OnConflict},
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
        entity::{step, step_translation, task, task_translation},
        error::StoreError,
        json::Json,
        rows::{step_translation_row, task_translation_row},
        write::batch::Batch,
    },
};

/// Rows of translations that a write upserts, and translations that it deletes.
#[derive(Default)]
pub struct Rows {
    tasks: TranslationRows<task_translation::ActiveModel>,
    steps: TranslationRows<step_translation::ActiveModel>,
}

struct TranslationRows<M> {
    /// Rows with new texts, which are translated from the current source.
    texts: Vec<M>,
    /// Rows in which only the lock changes.
    locks: Vec<M>,
    dropped: BTreeMap<Language, Vec<Uuid>>,
}

impl<M> Default for TranslationRows<M> {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            locks: Vec::new(),
            dropped: BTreeMap::new(),
        }
    }
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
    pub fn put_translations(&self, rows: Rows, batch: &mut Batch) {
        let Rows { tasks, steps } = rows;
        {
            use task_translation::{Column, Entity};
            // By language: an OR for each row would exceed SQLite's depth of expressions.
            for (language, ids) in &tasks.dropped {
                for ids in parts(ids) {
                    let count = ids.len() + 2;
                    let delete = self.scope().delete::<Entity>();
                    let delete = delete.filter(Column::Language.eq(language.as_str()));
                    batch.delete(delete.filter(Column::Task.is_in(ids)).into_query(), count);
                }
            }
            let key = [Column::AccountId, Column::Task, Column::Language];
            let texts = OnConflict::columns(key)
                .update_columns([Column::Name, Column::Locked, Column::TranslatedFromName])
                .to_owned();
            let locks = OnConflict::columns(key)
                .update_column(Column::Locked)
                .to_owned();
            batch.insert_rows(tasks.texts, Some(texts));
            batch.insert_rows(tasks.locks, Some(locks));
        }
        use step_translation::{Column, Entity};
        for (language, ids) in &steps.dropped {
            for ids in parts(ids) {
                let count = ids.len() + 2;
                let delete = self.scope().delete::<Entity>();
                let delete = delete.filter(Column::Language.eq(language.as_str()));
                batch.delete(delete.filter(Column::Step.is_in(ids)).into_query(), count);
            }
        }
        let key = [Column::AccountId, Column::Step, Column::Language];
        let texts = OnConflict::columns(key)
            .update_columns([
                Column::Locked,
                Column::Content,
                Column::TranslatedFromTitle,
                Column::TranslatedFromRest,
                Column::Body,
            ])
            .to_owned();
        let locks = OnConflict::columns(key)
            .update_column(Column::Locked)
            .to_owned();
        batch.insert_rows(steps.texts, Some(texts));
        batch.insert_rows(steps.locks, Some(locks));
    }

    /// Adds the sizes of automatic translations to their tasks and steps, which get a new
    /// version. These are upserts of rows that exist, as in [`Self::move_steps`].
    pub async fn add_translation_sizes(
        &self,
        tasks: &[TranslatedTask],
        steps: &[TranslatedStep],
    ) -> Result<(), StoreError> {
        let (account, now) = (&self.context.account, self.context.now.0);
        let tasks = tasks.iter().map(|translated| task::ActiveModel {
            account_id: Set(account.as_str().to_owned()),
            guid: Set(translated.task.0),
            name: Set(String::new()),
            product_id: Set(0),
            kind: Set(0),
            published: Set(0),
            role_bits: Set(0),
            external_id: NotSet,
            parent_guid: NotSet,
            idx: Set(0),
            step_count: Set(0),
            last_position: Set(0),
            order_epoch: Set(0),
            size: Set(translated.growth),
            language_count: Set(translated.added_languages),
            version: Set(0),
            dirty_record: Set(true),
            mvn_indexed: Set(false),
            mvn_version: Set(0),
            mvn_info: Set(String::new()),
            mvn_ts: NotSet,
            created_ts: Set(0),
            modified_ts: Set(now),
            content: Set(Json::default()),
        });
        let steps = steps.iter().map(|translated| step::ActiveModel {
            size: Set(translated.growth.listed),
            body_size: Set(translated.growth.bodies),
            language_count: Set(translated.added_languages),
            dirty_record: Set(true),
            modified_ts: Set(now),
            ..existing_step(account, translated.step)
        });
        let mut batch = Batch::new(self);
        {
            use task::Column;
            let sums = [Column::Size, Column::LanguageCount];
            let sums = sums.map(|column| (column, sum("tasks", column)));
            let update = OnConflict::columns([Column::AccountId, Column::Guid])
                .values(sums)
                .value(Column::Version, next_version("tasks"))
                .update_columns([Column::DirtyRecord, Column::ModifiedTs])
                .to_owned();
            batch.insert_rows(tasks.collect(), Some(update));
        }
        use step::Column;
        let sums = [Column::Size, Column::BodySize, Column::LanguageCount];
        let sums = sums.map(|column| (column, sum("steps", column)));
        let update = OnConflict::columns([Column::AccountId, Column::Guid])
            .values(sums)
            .value(Column::Version, next_version("steps"))
            .update_columns([Column::DirtyRecord, Column::ModifiedTs])
            .to_owned();
        batch.insert_rows(steps.collect(), Some(update));
        batch.send(self).await
    }
}

/// The sum of the stored number and the number in the proposed row.
fn sum(table: &str, column: impl sea_orm::Iden + Copy + 'static) -> Expr {
    let stored = Expr::col((Alias::new(table), column));
    stored.add(Expr::col((Alias::new("excluded"), column)))
}

fn next_version(table: &str) -> Expr {
    Expr::col((Alias::new(table), Alias::new("version"))).add(1)
}
