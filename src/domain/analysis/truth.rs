//! Kleene's three-valued logic.

use std::ops::Not;

/// Whether something holds, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// It holds for no possible value.
    False,
    /// It may depend on an unknown value.
    Unknown,
    /// It holds for every possible value.
    True,
}

impl Truth {
    /// FALSE if any is FALSE, TRUE if all are TRUE, otherwise UNKNOWN.
    pub fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        truths.into_iter().min().unwrap_or(Self::True)
    }

    /// TRUE if any is TRUE, FALSE if all are FALSE, otherwise UNKNOWN.
    pub fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        truths.into_iter().max().unwrap_or(Self::False)
    }
}

impl Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}
