//! Three-valued truth, combined as Kleene does.

use std::ops::Not;

/// Whether something holds, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds for every possible value.
    True,
    /// It holds for no possible value.
    False,
    /// It may depend on a value that is not known.
    Unknown,
}

impl Truth {
    /// FALSE with one FALSE, TRUE with all TRUE, else UNKNOWN.
    pub fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut result = Self::True;
        for truth in truths {
            match truth {
                Self::False => return Self::False,
                Self::Unknown => result = Self::Unknown,
                Self::True => {}
            }
        }
        result
    }

    /// TRUE with one TRUE, FALSE with all FALSE, else UNKNOWN.
    pub fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        !Self::all(truths.into_iter().map(Not::not))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_kleene() {
        use Truth::{False, True, Unknown};
        for (one, other, and, or) in [
            (True, True, True, True),
            (True, False, False, True),
            (True, Unknown, Unknown, True),
            (False, False, False, False),
            (False, Unknown, False, Unknown),
            (Unknown, Unknown, Unknown, Unknown),
        ] {
            for pair in [[one, other], [other, one]] {
                assert_eq!(Truth::all(pair), and, "{pair:?}");
                assert_eq!(Truth::any(pair), or, "{pair:?}");
            }
        }
    }
}
