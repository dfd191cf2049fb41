//! Bounded texts. Lengths are counted in Unicode code points, and limits are inclusive.
//! No text contains U+0000, which PostgreSQL cannot store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::violation::Reason;

pub const MAX_NAME_CHARS: usize = 200;
pub const MAX_TITLE_CHARS: usize = 400;
pub const MAX_BODY_CHARS: usize = 16_000_000;
pub const MAX_LABEL_CHARS: usize = 1_000;
pub const MAX_LIST_ITEMS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("is required")]
    Missing,
    #[error("has more than {0} code points")]
    TooLong(usize),
    #[error("contains U+0000")]
    Nul,
    #[error("contains a control character")]
    ControlCharacter,
    #[error("has white space at an end")]
    OuterWhiteSpace,
}

impl TextError {
    pub fn reason(self) -> Reason {
        match self {
            Self::Missing => Reason::FieldRequired,
            Self::TooLong(_) => Reason::FieldTooLong,
            Self::Nul | Self::ControlCharacter | Self::OuterWhiteSpace => Reason::FieldInvalid,
        }
    }
}

/// Checks that a text has at most `max` code points and no U+0000.
pub fn check(text: &str, max: usize) -> Result<(), TextError> {
    if text.as_bytes().contains(&0) {
        return Err(TextError::Nul);
    }
    // A code point takes at least a byte, so only long texts are counted.
    if text.len() > max && text.chars().count() > max {
        return Err(TextError::TooLong(max));
    }
    Ok(())
}

/// A text of at most `MAX` code points. A required text has more than white space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Text<const MAX: usize, const REQUIRED: bool>(String);

impl<const MAX: usize, const REQUIRED: bool> Text<MAX, REQUIRED> {
    pub fn parse(text: String) -> Result<Self, TextError> {
        if REQUIRED && text.trim().is_empty() {
            return Err(TextError::Missing);
        }
        check(&text, MAX)?;
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const MAX: usize, const REQUIRED: bool> TryFrom<String> for Text<MAX, REQUIRED> {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

impl<const MAX: usize> Default for Text<MAX, false> {
    fn default() -> Self {
        Self(String::new())
    }
}

pub type NonBlankText<const MAX: usize> = Text<MAX, true>;
pub type BoundedText<const MAX: usize> = Text<MAX, false>;
pub type Name = NonBlankText<MAX_NAME_CHARS>;
pub type Title = NonBlankText<MAX_TITLE_CHARS>;
pub type Label = NonBlankText<MAX_LABEL_CHARS>;
/// A path, tag or part, which may be empty.
pub type Tag = BoundedText<MAX_LABEL_CHARS>;

/// The body of a step: at most [`MAX_BODY_CHARS`] code points, which may be empty. Clones share the
/// text, because it can have megabytes and every update clones steps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Body(Arc<String>);

impl Body {
    pub fn parse(text: String) -> Result<Self, TextError> {
        check(&text, MAX_BODY_CHARS)?;
        Ok(Self(Arc::new(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        Arc::unwrap_or_clone(self.0)
    }
}
