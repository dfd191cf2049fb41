use sea_orm::IntoActiveModel;

use super::valid;
use crate::{
    domain::{
        ids::{AccountId, StepId, TaskId},
        text::{Body, Name},
        translation::{Language, StepTranslation, TaskTranslation},
        translation_work::SourceDigest,
    },
    store::{
        entity::{step_translation, task_translation},
        error::StoreError,
        json::Json,
    },
};

pub fn read_step_translation(
    row: step_translation::Model,
) -> Result<(Language, StepTranslation), StoreError> {
    let translation = StepTranslation {
        body: valid(row.body.map(Body::parse).transpose(), "body")?,
        locked: row.locked,
        ..row.content.0
    };
    Ok((read_language(&row.language)?, translation))
}

pub fn read_task_translation(
    row: task_translation::Model,
) -> Result<(Language, TaskTranslation), StoreError> {
    let translation = TaskTranslation {
        name: valid(row.name.map(Name::parse).transpose(), "name")?,
        locked: row.locked,
    };
    Ok((read_language(&row.language)?, translation))
}

/// A stored tag becomes part of the paths of errors, so it must be well-formed.
fn read_language(tag: &str) -> Result<Language, StoreError> {
    Language::parse(tag).ok_or(StoreError::Corrupt("language"))
}

/// The row of a task's translation. `source` is the name that was translated.
pub fn task_translation_row(
    account: &AccountId,
    task: TaskId,
    language: &Language,
    translation: &TaskTranslation,
    source: &str,
) -> task_translation::ActiveModel {
    task_translation::Model {
        account_id: account.as_str().to_owned(),
        task: task.0,
        language: language.as_str().to_owned(),
        name: translation
            .name
            .as_ref()
            .map(|name| name.as_str().to_owned()),
        locked: translation.locked,
        translated_from_name: source.to_owned(),
    }
    .into_active_model()
}

/// The row of a step's translation. `source` is what was translated: the title, and the digest of the
/// other texts.
pub fn step_translation_row(
    account: &AccountId,
    step: StepId,
    language: &Language,
    translation: &StepTranslation,
    source: (&str, SourceDigest),
) -> step_translation::ActiveModel {
    let (source_title, source_rest) = source;
    let mut content = translation.clone();
    step_translation::Model {
        account_id: account.as_str().to_owned(),
        step: step.0,
        language: language.as_str().to_owned(),
        locked: translation.locked,
        body: content.body.take().map(Body::into_string),
        content: Json(content),
        translated_from_title: source_title.to_owned(),
        translated_from_rest: source_rest.0.to_vec(),
    }
    .into_active_model()
}
