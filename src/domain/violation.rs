//! Violations: invalid fields of a request.

use std::fmt::{self, Write};

use strum_macros::IntoStaticStr;

/// Why a field is invalid, with the names of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// Missing, empty or only white space.
    FieldRequired,
    FieldTooLong,
    /// Malformed, or not one of the allowed values.
    FieldInvalid,
    FieldOutOfRange,
    TooManyElements,
    NestingTooDeep,
    /// An update mask names a field that the message does not have.
    MaskPathUnknown,
    ShorthandInvalid,
    /// A shorthand and dependencies that differ.
    ShorthandConflict,
    /// A page token of another list or filter, or a malformed one.
    PageTokenInvalid,
    /// A cursor of another account, or a malformed one.
    CursorInvalid,
    ExternalIdTaken,
}

/// The path of a field in a request, such as `step.translations["de"].title`.
///
/// It borrows its parent and is formatted only when a violation is reported.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
    Member(&'a str),
}

impl<'a> Path<'a> {
    pub const fn root(field: &'a str) -> Self {
        Self {
            parent: None,
            part: Part::Field(field),
        }
    }

    pub const fn field(&'a self, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Field(name),
        }
    }

    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Index(index),
        }
    }

    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Key(key),
        }
    }

    /// A member of the JSON object at this path: `.key`, or `["key"]` if the key is not an
    /// identifier.
    pub const fn member(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            part: Part::Member(key),
        }
    }
}

/// Whether a key can follow a dot: letters, digits and underscores, and no leading digit.
fn is_identifier(key: &str) -> bool {
    let is_word = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word && key.starts_with(|first: char| !first.is_ascii_digit())
}

/// The maximum number of characters of a caller's text that a path or description repeats.
const MAX_CLIP_CHARS: usize = 64;

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.part {
            Part::Field(name) if self.parent.is_none() => f.write_str(name),
            Part::Field(name) => write!(f, ".{}", clip(name)),
            Part::Member(key) if is_identifier(key) => write!(f, ".{}", clip(key)),
            Part::Index(index) => write!(f, "[{index}]"),
            Part::Key(key) | Part::Member(key) => write!(f, "[\"{}\"]", clip(key)),
        }
    }
}

/// A caller's text for an error: escaped, and cut to 64 characters.
pub fn clip(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CLIP_CHARS {
            out.push('…');
            break;
        }
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "{}", c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub path: String,
    /// Why it is invalid, for programs.
    pub reason: Reason,
    /// Why it is invalid, for people. It repeats sent texts only as cut by [`clip`].
    pub description: String,
}

impl Violation {
    pub fn new(path: &Path<'_>, reason: Reason, description: impl Into<String>) -> Self {
        Self {
            path: path.to_string(),
            reason,
            description: description.into(),
        }
    }
}

/// The violations of a request: the first [`Violations::MAX_VIOLATIONS`], and the total number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    kept: Vec<Violation>,
    total: usize,
}

impl Violations {
    pub const MAX_VIOLATIONS: usize = 50;

    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&mut self, path: &Path<'_>, reason: Reason, description: impl Into<String>) {
        self.total += 1;
        if self.kept.len() < Self::MAX_VIOLATIONS {
            self.kept.push(Violation::new(path, reason, description));
        }
    }

    pub fn push(&mut self, violation: Violation) {
        self.total += 1;
        if self.kept.len() < Self::MAX_VIOLATIONS {
            self.kept.push(violation);
        }
    }

    pub fn append(&mut self, other: Violations) {
        let Self { kept, total } = other;
        let room = Self::MAX_VIOLATIONS.saturating_sub(self.kept.len());
        self.kept.extend(kept.into_iter().take(room));
        self.total += total;
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The number of all violations, including those that are not kept.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The kept violations, in the order they were added.
    pub fn kept(&self) -> &[Violation] {
        &self.kept
    }
}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Self {
            kept: vec![violation],
            total: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clipped_text_is_escaped_and_has_sixty_four_characters_at_most() {
        assert_eq!(clip("a\"b\\c\nd\u{7f}é"), r#"a\"b\\c\nd\u{7f}é"#);
        let full = "é".repeat(64);
        assert_eq!(clip(&full), full);
        assert_eq!(clip(&format!("{full}é")), format!("{full}…"));
    }
}
