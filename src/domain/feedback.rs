//! The question of an observation.

use super::{ids::TaskId, text::Label};

/// Most values of one question.
pub const VALUES_MAX: usize = 1_000;
/// The only way a question is answered so far.
pub const TYPE_ENUM: &str = "enum";

/// A question with its possible answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    /// The variable that holds the answer.
    pub name: Label,
    /// Whether each value manages a task of its own.
    pub linked: bool,
    /// The answers in order: 1 to [`VALUES_MAX`], their keys unique.
    pub values: Vec<FeedbackValue>,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedbackValue {
    /// What is stored when it is chosen.
    pub key: Label,
    /// What is shown.
    pub value: Label,
    /// The task it manages.
    pub link: Option<TaskId>,
}
