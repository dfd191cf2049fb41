//! Encodes and decodes columns that hold lists and trees as JSON text, which keeps their
//! order and is the same on both databases.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::StoreError;
use crate::domain::{
    dependency::Group,
    feedback::{Feedback, FeedbackValue, TYPE_ENUM},
    ids::{ProductId, TaskId},
    json::{Instruction, Json},
    step::Looping,
    task::AccessLevel,
    text::{Body, Label, Name, Tag, Title},
    translation::{Language, StepOverlay, StepTranslations, TaskOverlay, TaskTranslations},
};

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
    /// The boolean.
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

fn optional<T>(
    text: Option<String>,
    read: impl FnOnce(&str) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    text.map(|text| read(&text)).transpose()
}

fn optional_list<T>(
    text: Option<String>,
    read: impl FnOnce(&str) -> Result<Vec<T>, StoreError>,
) -> Result<Vec<T>, StoreError> {
    text.map_or(Ok(Vec::new()), |text| read(&text))
}

/// Turns an invalid value into [`StoreError::Corrupt`].
pub fn valid<T, E>(value: Result<T, E>, what: &'static str) -> Result<T, StoreError> {
    value.map_err(|_| StoreError::Corrupt(what))
}

/// Reads a product's id.
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

/// Reads [`write_roles`].
pub fn read_roles(text: &str) -> Result<Vec<AccessLevel>, StoreError> {
    parse::<Vec<i32>>(text, "roles")?
        .into_iter()
        .map(|number| AccessLevel::from_number(number).ok_or(StoreError::Corrupt("roles")))
        .collect()
}

/// Dependencies as a JSON tree.
pub fn write_dependencies(group: Option<&Group>) -> Option<String> {
    group.map(|group| group.to_json().to_string())
}

/// Reads [`write_dependencies`].
pub fn read_dependencies(text: Option<String>) -> Result<Option<Group>, StoreError> {
    optional(text, |text| {
        Group::from_json(&parse(text, "dependencies")?).ok_or(StoreError::Corrupt("dependencies"))
    })
}

/// A feedback question as a JSON object.
#[derive(Serialize, Deserialize)]
struct StoredFeedback {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    linked: bool,
    values: Vec<StoredValue>,
}

#[derive(Serialize, Deserialize)]
struct StoredValue {
    key: String,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    link: Option<Uuid>,
}

/// A feedback question as a JSON list with one object.
pub fn write_feedback(feedback: Option<&Feedback>) -> Option<String> {
    let Feedback {
        name,
        linked,
        values,
    } = feedback?;
    let values = values
        .iter()
        .map(|FeedbackValue { key, value, link }| StoredValue {
            key: key.as_str().to_owned(),
            value: value.as_str().to_owned(),
            link: link.map(|task| task.0),
        })
        .collect();
    let stored = StoredFeedback {
        name: name.as_str().to_owned(),
        kind: TYPE_ENUM.to_owned(),
        linked: *linked,
        values,
    };
    serde_json::to_string(&[stored]).ok()
}

/// Reads [`write_feedback`].
pub fn read_feedback(text: Option<String>) -> Result<Option<Feedback>, StoreError> {
    const WHAT: &str = "feedback_config";
    optional(text, |text| {
        let [stored]: [StoredFeedback; 1] = parse(text, WHAT)?;
        let StoredFeedback {
            name,
            kind: _,
            linked,
            values,
        } = stored;
        let values = values
            .into_iter()
            .map(|StoredValue { key, value, link }| {
                Ok(FeedbackValue {
                    key: valid(Label::parse(key), WHAT)?,
                    value: valid(Label::parse(value), WHAT)?,
                    link: link.map(TaskId),
                })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(Feedback {
            name: valid(Label::parse(name), WHAT)?,
            linked,
            values,
        })
    })
}

/// Instructions as a JSON list; none as NULL.
pub fn write_instructions(list: &[Instruction]) -> Option<String> {
    if list.is_empty() {
        return None;
    }
    let objects: Vec<&Map<String, Value>> = list.iter().map(|Instruction(map)| map).collect();
    serde_json::to_string(&objects).ok()
}

/// Reads [`write_instructions`].
pub fn read_instructions(text: Option<String>) -> Result<Vec<Instruction>, StoreError> {
    optional_list(text, |text| {
        let objects: Vec<Map<String, Value>> = parse(text, "instructions")?;
        Ok(objects.into_iter().map(Instruction).collect())
    })
}

/// A step's loop as a JSON object. Absent fields are left out; null stays null.
pub fn write_looping(looping: Option<&Looping>) -> Option<String> {
    let Looping {
        alias,
        array,
        iterations,
    } = looping?;
    let mut object = Map::new();
    object.insert("alias".to_owned(), Value::from(alias.as_str()));
    for (name, value) in [("array", array), ("iterations", iterations)] {
        if let Some(Json(value)) = value {
            object.insert(name.to_owned(), value.clone());
        }
    }
    Some(Value::Object(object).to_string())
}

/// Reads [`write_looping`].
pub fn read_looping(text: Option<String>) -> Result<Option<Looping>, StoreError> {
    const WHAT: &str = "looping";
    optional(text, |text| {
        let mut object: Map<String, Value> = parse(text, WHAT)?;
        let Some(Value::String(alias)) = object.remove("alias") else {
            return Err(StoreError::Corrupt(WHAT));
        };
        Ok(Looping {
            alias: valid(Tag::parse(alias), WHAT)?,
            array: object.remove("array").map(Json),
            iterations: object.remove("iterations").map(Json),
        })
    })
}

/// Tags, parts or skills as a JSON list; none as NULL.
pub fn write_tags(tags: &[Tag]) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    Some(Value::from_iter(tags.iter().map(Tag::as_str)).to_string())
}

/// Reads [`write_tags`].
pub fn read_tags(text: Option<String>) -> Result<Vec<Tag>, StoreError> {
    optional_list(text, |text| {
        parse::<Vec<String>>(text, "tags")?
            .into_iter()
            .map(|tag| valid(Tag::parse(tag), "tags"))
            .collect()
    })
}

/// Reads the data of reporting systems.
pub fn read_r_data(text: Option<String>) -> Result<Map<String, Value>, StoreError> {
    text.map_or(Ok(Map::new()), |text| parse(&text, "r_data"))
}

/// Reads a task's translations from a JSON list of `[language, locked, name]`.
pub fn read_task_translations(text: Option<String>) -> Result<TaskTranslations, StoreError> {
    type TaskTranslationRow = (String, JsonBool, Option<String>);
    const WHAT: &str = "task_translations";
    let rows = optional_list(text, |text| parse::<Vec<TaskTranslationRow>>(text, WHAT))?;
    rows.into_iter()
        .map(|(language, locked, name)| {
            let overlay = TaskOverlay {
                name: name
                    .map(|name| valid(Name::parse(name), WHAT))
                    .transpose()?,
                locked: locked.get(),
            };
            Ok((Language::stored(language), overlay))
        })
        .collect()
}

/// Reads a step's translations from a JSON list of
/// `[language, locked, title, instructions, feedback_config, body]`.
pub fn read_step_translations(text: Option<String>) -> Result<StepTranslations, StoreError> {
    type StepTranslationRow = (
        String,
        JsonBool,
        Option<String>,
        Option<String>,
        Option<String>,
        Option<String>,
    );
    const WHAT: &str = "step_translations";
    let rows = optional_list(text, |text| parse::<Vec<StepTranslationRow>>(text, WHAT))?;
    rows.into_iter()
        .map(|(language, locked, title, instructions, feedback, body)| {
            let overlay = StepOverlay {
                title: title
                    .map(|title| valid(Title::parse(title), WHAT))
                    .transpose()?,
                body: body
                    .map(|body| valid(Body::parse(body), WHAT))
                    .transpose()?,
                instructions: read_instructions(instructions)?,
                feedback: read_feedback(feedback)?,
                locked: locked.get(),
            };
            Ok((Language::stored(language), overlay))
        })
        .collect()
}

/// Reads ids separated by commas.
pub fn read_guids(text: Option<&str>) -> Result<Vec<Uuid>, StoreError> {
    text.unwrap_or_default()
        .split(',')
        .filter(|guid| !guid.is_empty())
        .map(|guid| Uuid::try_parse(guid).map_err(|_| StoreError::Corrupt("guid")))
        .collect()
}
