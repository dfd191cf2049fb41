//! The question of a step and its possible answers.

use serde::{Deserialize, Serialize};

use super::{ids::TaskId, text::Label};

pub const MAX_FEEDBACK_VALUES: usize = 1_000;
/// The type of every question: one of its values is chosen.
pub const TYPE_ENUM: &str = "enum";

/// A question with its possible answers. It is stored with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "enum")]
pub struct Feedback {
    /// The variable that holds the answer.
    pub name: Label,
    /// Whether each value manages a task of its own.
    pub linked: bool,
    /// The answers in order: 1 to [`MAX_FEEDBACK_VALUES`], their keys unique.
    pub values: Vec<FeedbackValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedbackValue {
    pub key: Label,
    pub value: Label,
    /// The task that it manages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<TaskId>,
}
