//! Encodes and decodes columns that hold lists and trees as JSON text, which keeps their
//! order and is the same on both databases.

use std::collections::BTreeMap;

use sea_orm::DbBackend;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use super::error::StoreError;
use crate::domain::{
    analysis::TranslationState,
    external_id::ExternalId,
    feedback::Feedback,
    ids::ProductId,
    task::AccessLevel,
    text::{Body, Name, Title},
    translation::{Language, StepTranslation, StepTranslations, TaskTranslation, TaskTranslations},
    translation_work::SourceDigest,
};

/// The SQL functions for a JSON array of values and for one of rows, and the cast of these to text.
pub fn json_functions(backend: DbBackend) -> (&'static str, &'static str, &'static str) {
    match backend {
        DbBackend::Sqlite => ("json_array", "json_group_array", ""),
        _ => ("json_build_array", "json_agg", "::text"),
    }
}

/// A boolean in a JSON aggregate.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum JsonBool {
    /// As PostgreSQL writes it.
    Bool(bool),
    /// As SQLite writes it.
    Number(i64),
}

impl JsonBool {
    pub fn get(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Number(value) => *value != 0,
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str, what: &'static str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Corrupt(what))
}

/// Reads a JSON value; `what` names it in an error.
pub fn optional<T: DeserializeOwned>(
    text: Option<&str>,
    what: &'static str,
) -> Result<Option<T>, StoreError> {
    text.map(|text| parse(text, what)).transpose()
}

/// Reads a JSON list; NULL is an empty one.
pub fn list<T: DeserializeOwned>(
    text: Option<&str>,
    what: &'static str,
) -> Result<Vec<T>, StoreError> {
    text.map_or(Ok(Vec::new()), |text| parse(text, what))
}

/// A list as JSON; an empty one as NULL.
pub fn write_list<T: Serialize>(list: &[T]) -> Option<String> {
    match list {
        [] => None,
        list => serde_json::to_string(list).ok(),
    }
}

/// Turns an invalid value into [`StoreError::Corrupt`].
pub fn valid<T, E>(value: Result<T, E>, what: &'static str) -> Result<T, StoreError> {
    value.map_err(|_| StoreError::Corrupt(what))
}

/// The external id of a task or step.
pub fn external_id(id: Option<String>) -> Result<Option<ExternalId>, StoreError> {
    let id = id.map(ExternalId::parse).transpose();
    valid(id, "external_id")
}

pub fn product(id: i64) -> Result<ProductId, StoreError> {
    ProductId::new(id).ok_or(StoreError::Corrupt("product_id"))
}

/// Access levels as a JSON list of their numbers, in order.
pub fn write_roles(roles: &[AccessLevel]) -> String {
    Value::from_iter(roles.iter().map(|level| level.number())).to_string()
}

/// Access levels as a set of bits.
pub fn role_bits(roles: &[AccessLevel]) -> i32 {
    roles.iter().fold(0, |bits, level| bits | level.bit())
}

pub fn read_roles(text: &str) -> Result<Vec<AccessLevel>, StoreError> {
    parse::<Vec<i32>>(text, "roles")?
        .into_iter()
        .map(|number| AccessLevel::from_number(number).ok_or(StoreError::Corrupt("roles")))
        .collect()
}

/// A value as JSON, if there is one. Absent fields are left out; null stays null.
pub fn write_optional<T: Serialize>(value: Option<&T>) -> Option<String> {
    serde_json::to_string(value?).ok()
}

/// A feedback question as a JSON list with one object.
pub fn write_feedback(feedback: Option<&Feedback>) -> Option<String> {
    serde_json::to_string(&[feedback?]).ok()
}

/// Reads what [`write_feedback`] writes.
pub fn read_feedback(text: Option<&str>) -> Result<Option<Feedback>, StoreError> {
    let stored: Option<[Feedback; 1]> = optional(text, "feedback_config")?;
    Ok(stored.map(|[feedback]| feedback))
}

/// Reads a task's translations from a JSON list of `[language, locked, name]`.
pub fn read_task_translations(text: Option<&str>) -> Result<TaskTranslations, StoreError> {
    let rows: Vec<(String, JsonBool, Option<Name>)> = list(text, "task_translations")?;
    let translation = |(language, locked, name): (_, JsonBool, _)| {
        let locked = locked.get();
        (Language::stored(language), TaskTranslation { name, locked })
    };
    Ok(rows.into_iter().map(translation).collect())
}

/// A row of a step's translations. Instructions and question are JSON texts.
type StepTranslationRow = (
    String,
    JsonBool,
    Option<Title>,
    Option<String>,
    Option<String>,
    Option<Body>,
);

/// Reads a step's translations from a JSON list of
/// `[language, locked, title, instructions, feedback_config, body]`.
pub fn read_step_translations(text: Option<&str>) -> Result<StepTranslations, StoreError> {
    let rows: Vec<StepTranslationRow> = list(text, "step_translations")?;
    rows.into_iter()
        .map(|(language, locked, title, instructions, feedback, body)| {
            let translation = StepTranslation {
                title,
                body,
                instructions: list(instructions.as_deref(), "instructions")?,
                feedback: read_feedback(feedback.as_deref())?,
                locked: locked.get(),
            };
            Ok((Language::stored(language), translation))
        })
        .collect()
}

/// Reads the states of translations from a JSON list of
/// `[language, has_body, outdated_title, outdated_rest]`.
pub fn read_translation_states(
    text: Option<&str>,
) -> Result<BTreeMap<Language, TranslationState>, StoreError> {
    type TranslationStateRow = (String, JsonBool, JsonBool, JsonBool);
    let rows: Vec<TranslationStateRow> = list(text, "translations")?;
    let states = rows.into_iter().map(|(language, body, title, rest)| {
        let state = TranslationState {
            has_body: body.get(),
            outdated_title: title.get(),
            outdated_rest: rest.get(),
        };
        (Language::stored(language), state)
    });
    Ok(states.collect())
}

/// Reads the digest of source texts.
pub fn read_digest(bytes: Vec<u8>, what: &'static str) -> Result<SourceDigest, StoreError> {
    valid(bytes.try_into().map(SourceDigest), what)
}

/// Reads ids separated by commas.
pub fn read_guids(text: Option<&str>) -> Result<Vec<Uuid>, StoreError> {
    text.unwrap_or_default()
        .split(',')
        .filter(|guid| !guid.is_empty())
        .map(|guid| Uuid::try_parse(guid).map_err(|_| StoreError::Corrupt("guid")))
        .collect()
}
