//! What an update does to a field.

use super::violation::Violation;

/// What an update does to a field.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Edit<T> {
    /// Leaves it.
    #[default]
    Keep,
    /// Returns it to its default.
    Clear,
    /// Replaces it.
    Set(T),
}

impl<T> Edit<T> {
    /// The field after the update, for a field whose default is absence.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }

    /// The field after the update, for a field that has a default.
    pub fn apply_or(self, field: &mut T, default: T) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = default,
            Self::Set(value) => *field = value,
        }
    }
}

/// A value whose violations count only where the field is honored: the title of a
/// subtask step is ignored, whatever it is.
pub type Deferred<T> = Result<T, Violation>;
