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

/// The fields of every type of step. By default, all are empty and the step is published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepContent {
    /// The text.
    pub body: Option<Body>,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// The caller's own id.
    pub external_id: Option<ExternalId>,
    /// Instructions of the caller's own shape.
    pub instructions: Vec<Instruction>,
    /// How it repeats.
    pub looping: Option<Looping>,
    /// Parts needed.
    pub parts: Vec<Tag>,
    /// Whether it is shown.
    pub published: Published,
    /// Skills needed.
    pub skills: Vec<Tag>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Its texts in other languages.
    pub translations: StepTranslations,
}

/// How a step repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looping {
    /// The name of the current element.
    pub alias: Tag,
    /// The elements.
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
