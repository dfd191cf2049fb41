//! Ids that callers give to tasks and steps themselves.

use std::borrow::Cow;

use super::{
    ids::TaskId,
    text::{TextError, check},
    translation_work::ResourceId,
};

pub const MAX_EXTERNAL_ID_CHARS: usize = 200;

/// The caller's own id of a task or step: 1 to 200 code points without control characters and
/// without white space at an end. It is compared byte by byte.
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

/// The id after a write, if it is another one than before.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_printable_text_without_outer_white_space() {
        let longest = "🔧".repeat(MAX_EXTERNAL_ID_CHARS);
        for valid in ["a", "K-17/ü 3", "0", longest.as_str()] {
            assert_eq!(
                ExternalId::parse(valid.to_owned()).map(ExternalId::into_string),
                Ok(valid.to_owned())
            );
        }
        for (invalid, error) in [
            ("", TextError::Missing),
            ("a\0", TextError::Nul),
            ("a\nb", TextError::ControlCharacter),
            ("a\u{7f}", TextError::ControlCharacter),
            ("a\u{85}b", TextError::ControlCharacter),
            (" a", TextError::OuterWhiteSpace),
            ("a\u{3000}", TextError::OuterWhiteSpace),
            (" ", TextError::OuterWhiteSpace),
        ] {
            assert_eq!(
                ExternalId::parse(invalid.to_owned()),
                Err(error),
                "{invalid:?}"
            );
        }
        let too_long = format!("{longest}a");
        let error = TextError::TooLong(MAX_EXTERNAL_ID_CHARS);
        assert_eq!(ExternalId::parse(too_long), Err(error));
    }
}
