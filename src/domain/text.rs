//! Bounded texts. Lengths are counted in Unicode code points, limits are
//! inclusive, and U+0000 is no part of any text, so that every database keeps
//! every text alike.

use std::{fmt, sync::Arc};

use super::violation::Reason;

/// Longest name of a task or role, in code points.
pub const NAME_MAX: usize = 200;
/// Longest title of a step.
pub const TITLE_MAX: usize = 400;
/// Longest body of a step.
pub const BODY_MAX: usize = 16_000_000;
/// Longest path, variable, key, tag and the like.
pub const LABEL_MAX: usize = 1_000;
/// Most instructions, parts, skills or tags of a step.
pub const LIST_MAX: usize = 1_000;

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// Empty or only white space.
    Missing,
    /// More code points than this.
    TooLong(usize),
    /// Contains U+0000.
    Nul,
}

impl TextError {
    /// The reason to report.
    pub fn reason(self) -> Reason {
        match self {
            Self::Missing => Reason::FieldRequired,
            Self::TooLong(_) => Reason::FieldTooLong,
            Self::Nul => Reason::FieldInvalid,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is required"),
            Self::TooLong(max) => write!(f, "has more than {max} code points"),
            Self::Nul => f.write_str("contains U+0000"),
        }
    }
}

/// Checks what every text must keep: at most `max` code points, no U+0000.
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

/// A text that says something: 1 to `MAX` code points, not only white space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NonBlankText<const MAX: usize>(String);

impl<const MAX: usize> NonBlankText<MAX> {
    /// Checks a text.
    pub fn parse(text: String) -> Result<Self, TextError> {
        if text.trim().is_empty() {
            return Err(TextError::Missing);
        }
        check(&text, MAX)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A text that may be empty: at most `MAX` code points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct BoundedText<const MAX: usize>(String);

impl<const MAX: usize> BoundedText<MAX> {
    /// Checks a text.
    pub fn parse(text: String) -> Result<Self, TextError> {
        check(&text, MAX)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// The body of a step, which may be empty: at most [`BODY_MAX`] code points. A clone
/// shares the text: it has megabytes, and a step is cloned when it changes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Body(Arc<String>);

impl Body {
    /// Checks a text.
    pub fn parse(text: String) -> Result<Self, TextError> {
        check(&text, BODY_MAX)?;
        Ok(Self(Arc::new(text)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned; copied while others share it.
    pub fn into_string(self) -> String {
        Arc::unwrap_or_clone(self.0)
    }
}

/// The name of a task or role.
pub type Name = NonBlankText<NAME_MAX>;
/// The title of a step.
pub type Title = NonBlankText<TITLE_MAX>;
/// A name, key or variable.
pub type Label = NonBlankText<LABEL_MAX>;
/// A path, tag or part, which may be empty.
pub type Tag = BoundedText<LABEL_MAX>;
