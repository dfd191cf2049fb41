//! The rows of a task and a translation. There is one builder for each, whoever writes
//! them; that of a step is in `step_row.rs`.

use std::collections::BTreeMap;

use sea_orm::{ActiveValue::Set, IntoActiveModel};
use uuid::Uuid;

use crate::{
    domain::{
        changes::{TranslatedStep, TranslatedTask},
        decide::WriteContext,
        history::TranslatedFrom,
        ids::{AccountId, StepId, TaskId},
        size::{stored_count, task_size},
        step::Step,
        task::{Task, TaskContent},
        translation::{Language, StepTranslation, TaskTranslation},
        translation_work::SourceDigest,
    },
    store::{
        json_columns,
        read::tasks::KIND_LINKED,
        schema::entity::{step_translation, task, task_translation},
    },
};

/// The row of a task.
pub fn task_row(task: &Task) -> task::ActiveModel {
    let Task {
        guid,
        account,
        name,
        product,
        content:
            TaskContent {
                dependencies,
                published,
                roles,
                external_id,
                translations,
            },
        managed,
        steps,
        numbering,
        index,
        row_version,
    } = task;
    task::Model {
        account_id: account.as_str().to_owned(),
        guid: guid.0,
        name: name.as_str().to_owned(),
        product_id: product.get(),
        kind: if managed.is_some() { KIND_LINKED } else { 0 },
        published: published.get(),
        roles: json_columns::write_roles(roles),
        role_bits: json_columns::role_bits(roles),
        dependencies: json_columns::write_optional(dependencies.as_ref()),
        external_id: external_id.as_ref().map(|id| id.as_str().to_owned()),
        parent_guid: managed.map(|managed| managed.parent.0),
        idx: managed.map_or(0, |managed| managed.idx),
        step_count: stored_count(steps.len()),
        last_position: numbering.last_position,
        order_epoch: numbering.epoch,
        size: task_size(task),
        language_count: stored_count(translations.len()),
        version: row_version.version,
        dirty_record: row_version.dirty,
        mvn_indexed: index.indexed,
        mvn_version: index.version,
        mvn_info: index.info.clone(),
        mvn_ts: index.at.map(|at| at.0),
        created_ts: row_version.created.0,
        modified_ts: row_version.modified.0,
    }
    .into_active_model()
}

/// Rows of translations that a write upserts, and translations that it deletes.
pub struct TranslationRows<M> {
    /// Rows with new texts, which are translated from the present source.
    pub texts: Vec<M>,
    /// Rows of which the lock alone changes.
    pub locks: Vec<M>,
    /// Translations to delete.
    pub dropped: Vec<(Uuid, Language)>,
}

impl<M> Default for TranslationRows<M> {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            locks: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

impl<M> TranslationRows<M> {
    fn add<O: PartialEq>(
        &mut self,
        guid: Uuid,
        before: Option<&BTreeMap<Language, O>>,
        after: &BTreeMap<Language, O>,
        same_texts: impl Fn(&O, &O) -> bool,
        has_new_source: impl Fn(&Language) -> bool,
        row: impl Fn(&Language, &O) -> M,
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
        let gone = known.filter(|language| !after.contains_key(*language));
        self.dropped
            .extend(gone.map(|language| (guid, language.clone())));
    }
}

impl TranslationRows<task_translation::ActiveModel> {
    /// Adds automatic translations.
    pub fn add_translated_tasks(&mut self, tasks: &[TranslatedTask], context: &WriteContext) {
        for translated in tasks {
            let TranslatedTask {
                task,
                name,
                by_language,
                added_languages: _,
                growth: _,
                version: _,
            } = translated;
            let rows = by_language.iter();
            self.texts.extend(rows.map(|(language, translation)| {
                task_translation_row(
                    &context.account,
                    *task,
                    name.as_str(),
                    language,
                    translation,
                )
            }));
        }
    }

    /// Adds the rows in which two states of a task differ, and those that are made from other
    /// texts than the task's own.
    pub fn add_task(&mut self, before: Option<&Task>, after: &Task, from: &TranslatedFrom) {
        let source = |language: &Language| from.tasks.get(&(after.guid, language.clone()));
        self.add(
            after.guid.0,
            before.map(|task| &task.content.translations),
            &after.content.translations,
            |a, b| a.name == b.name,
            |language| !from.is_empty() && source(language).is_some(),
            |language, translation| {
                let name = source(language).map_or(after.name.as_str(), String::as_str);
                task_translation_row(&after.account, after.guid, name, language, translation)
            },
        );
    }
}

impl TranslationRows<step_translation::ActiveModel> {
    /// Adds automatic translations.
    pub fn add_translated_steps(&mut self, steps: &[TranslatedStep], context: &WriteContext) {
        for translated in steps {
            let TranslatedStep {
                step,
                task: _,
                title,
                content_digest,
                by_language,
                added_languages: _,
                growth: _,
                version: _,
            } = translated;
            let source = (title.as_str(), *content_digest);
            let rows = by_language.iter();
            self.texts.extend(rows.map(|(language, translation)| {
                step_translation_row(&context.account, *step, source, language, translation)
            }));
        }
    }

    /// Adds the rows in which two states of a step differ, and those that are made from other
    /// texts than the step's own.
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
        self.add(
            after.guid.0,
            before.map(|step| &step.content.translations),
            &after.content.translations,
            same_texts,
            |language| !from.is_empty() && source(language).is_some(),
            |language, translation| {
                let source = source(language).map_or(own, |(title, rest)| (title, *rest));
                step_translation_row(&after.account, after.guid, source, language, translation)
            },
        );
    }
}

/// The row of a task's texts in one language, which are translated from the name `translated_from`.
fn task_translation_row(
    account: &AccountId,
    task: TaskId,
    translated_from: &str,
    language: &Language,
    translation: &TaskTranslation,
) -> task_translation::ActiveModel {
    let TaskTranslation { name, locked } = translation;
    task_translation::ActiveModel {
        account_id: Set(account.as_str().to_owned()),
        task: Set(task.0),
        language: Set(language.as_str().to_owned()),
        locked: Set(*locked),
        name: Set(name.as_ref().map(|name| name.as_str().to_owned())),
        translated_from_name: Set(translated_from.to_owned()),
    }
}

/// The row of a step's texts in one language, which are translated from `translated_from`: the
/// title, and the digest of the other texts.
fn step_translation_row(
    account: &AccountId,
    step: StepId,
    translated_from: (&str, SourceDigest),
    language: &Language,
    translation: &StepTranslation,
) -> step_translation::ActiveModel {
    let StepTranslation {
        title,
        body,
        instructions,
        feedback,
        locked,
    } = translation;
    let (translated_from_title, translated_from_rest) = translated_from;
    step_translation::ActiveModel {
        account_id: Set(account.as_str().to_owned()),
        step: Set(step.0),
        language: Set(language.as_str().to_owned()),
        locked: Set(*locked),
        title: Set(title.as_ref().map(|title| title.as_str().to_owned())),
        instructions: Set(json_columns::write_list(instructions)),
        feedback_config: Set(json_columns::write_feedback(feedback.as_ref())),
        translated_from_title: Set(translated_from_title.to_owned()),
        translated_from_rest: Set(translated_from_rest.0.to_vec()),
        body: Set(body.as_ref().map(|body| body.as_str().to_owned())),
    }
}
