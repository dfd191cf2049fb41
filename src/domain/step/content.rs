//! The fields that steps of every type have.

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::{
    dependency::Group,
    external_id::ExternalId,
    json::{Instruction, Json},
    task::Published,
    text::{Body, Tag},
    translation::StepTranslations,
};

/// The fields of every type of step. By default, all are empty and the step is published. The JSON form
/// is for the database, which stores some fields elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepContent {
    #[serde(skip)]
    pub body: Option<Body>,
    /// When it is visible; `None` is always.
    #[serde(skip)]
    pub dependencies: Option<Group>,
    #[serde(skip)]
    pub external_id: Option<ExternalId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looping: Option<Looping>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Tag>,
    #[serde(skip)]
    pub published: Published,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Tag>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    #[serde(skip)]
    pub translations: StepTranslations,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looping {
    pub alias: Tag,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub array: Option<Json>,
    /// The number of iterations, or a list of them.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub iterations: Option<Json>,
}

/// Reads a member that is present, so that null becomes `Some` and only an absent member is
/// `None`.
fn present<'de, D: Deserializer<'de>>(member: D) -> std::result::Result<Option<Json>, D::Error> {
    Json::deserialize(member).map(Some)
}
