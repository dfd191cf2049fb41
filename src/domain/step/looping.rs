//! How a step repeats.

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::{json::Json, text::Tag};

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
