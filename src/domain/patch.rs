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
    /// A value was sent that is refused; its violation is noted.
    Refused,
}

impl<T> Edit<T> {
    /// Edits a field whose default is `None`.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep | Self::Refused => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }

    /// Edits a field that has a default.
    pub fn apply_or(self, field: &mut T, default: T) {
        match self {
            Self::Keep | Self::Refused => {}
            Self::Clear => *field = default,
            Self::Set(value) => *field = value,
        }
    }

    /// The new value, if one is set.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear | Self::Refused => None,
        }
    }

    /// The new value of a required field, if there is one. Adds a violation if the field is
    /// cleared, or has no value yet and gets none.
    pub fn required(
        self,
        has_value: bool,
        path: &Path<'_>,
        violations: &mut Violations,
    ) -> Option<T> {
        match self {
            Self::Set(value) => return Some(value),
            Self::Keep if has_value => {}
            Self::Keep | Self::Clear => {
                violations.add(path, Reason::FieldRequired, "is required");
            }
            Self::Refused => {}
        }
        None
    }
}

impl<T> Edit<Deferred<T>> {
    /// The edit of a field that is honored. Adds the violation of an invalid value.
    pub fn honored(self, violations: &mut Violations) -> Edit<T> {
        match self {
            Self::Keep => Edit::Keep,
            Self::Clear => Edit::Clear,
            Self::Set(Ok(value)) => Edit::Set(value),
            Self::Set(Err(violation)) => {
                violations.push(violation);
                Edit::Refused
            }
            Self::Refused => Edit::Refused,
        }
    }

    /// The new value, if one was sent; `Some(None)` if it is invalid.
    pub fn sent(&self) -> Option<Option<&T>> {
        match self {
            Self::Set(value) => Some(value.as_ref().ok()),
            Self::Keep | Self::Clear | Self::Refused => None,
        }
    }

    /// The new value, if it is valid.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Set(value) => value.as_ref().ok(),
            Self::Keep | Self::Clear | Self::Refused => None,
        }
    }
}

/// A value whose violation counts only if the field is honored. A subtask step, for
/// example, ignores any title.
pub type Deferred<T> = Result<T, Violation>;
