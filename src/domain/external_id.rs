//! Ids that callers assign to tasks and steps.

use std::borrow::Cow;

use super::{
    ids::TaskId,
    text::{TextError, check},
    translation_work::ResourceId,
};

pub const MAX_EXTERNAL_ID_CHARS: usize = 200;

/// The caller's own id of a task or step: 1 to 200 code points without control characters and
/// without leading or trailing white space. It is compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExternalId(String);

impl ExternalId {
    pub fn parse(text: String) -> Result<Self, TextError> {
        if text.is_empty() {
            return Err(TextError::Missing);
        }
        check(&text, MAX_EXTERNAL_ID_CHARS)?;
        if text.chars().any(char::is_control) {
            return Err(TextError::ControlCharacter);
        }
        if text.trim().len() < text.len() {
            return Err(TextError::OuterWhiteSpace);
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// An external id that a write assigns to a task or step. No other task of the account, or step of the
/// task, may have it.
#[derive(Clone, Debug)]
pub struct ClaimedId {
    pub id: ExternalId,
    pub owner: ClaimedBy,
    pub field: Cow<'static, str>,
}

#[derive(Clone, Copy, Debug)]
pub enum ClaimedBy {
    Task(TaskId),
    StepOf(TaskId),
}

/// The id after a write, if it has changed.
pub fn new_id<'a>(
    before: Option<&ExternalId>,
    after: Option<&'a ExternalId>,
) -> Option<&'a ExternalId> {
    after.filter(|id| before != Some(*id))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenId {
    pub owner: ResourceId,
    pub field: Cow<'static, str>,
    /// Whether the call is an import that would change the owner with `match_external_ids`.
    pub is_matchable: bool,
}
