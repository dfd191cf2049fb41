//! Edits of single fields.

use super::violation::{Path, Reason, Violation, Violations};

/// The edit of a field by an update.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Edit<T> {
    /// Keeps the value.
    #[default]
    Keep,
    /// Sets the default.
    Clear,
    /// Sets a new value.
    Set(T),
}

impl<T> Edit<T> {
    /// Edits a field whose default is `None`.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }

    /// Edits a field that has a default.
    pub fn apply_or(self, field: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = default,
            Self::Set(value) => *field = value,
        }
    }
}

impl<T> Edit<Deferred<T>> {
    /// The new value of a required field, if there is one. Adds a violation if the field is
    /// cleared or the value is invalid.
    pub fn required(self, path: &Path<'_>, violations: &mut Violations) -> Option<T> {
        match self {
            Self::Keep => None,
            Self::Clear => {
                violations.add(path, Reason::FieldRequired, "is required");
                None
            }
            Self::Set(Ok(value)) => Some(value),
            Self::Set(Err(violation)) => {
                violations.push(violation);
                None
            }
        }
    }
}

/// A value whose violation counts only if the field is honored. A subtask step, for
/// example, ignores any title.
pub type Deferred<T> = Result<T, Violation>;
