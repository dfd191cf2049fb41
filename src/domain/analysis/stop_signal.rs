//! How an analysis learns that nobody waits for it any more.

use std::fmt;

/// Tells an analysis to stop. The analysis looks at it between short pieces of work, and then
/// returns nothing.
#[derive(Clone, Copy)]
pub struct StopSignal<'a>(&'a dyn Fn() -> bool);

impl<'a> StopSignal<'a> {
    /// For an analysis that always runs to its end.
    pub const NEVER: Self = Self(&|| false);

    /// A signal that is given once `is_given` returns true. It is called often.
    pub fn new(is_given: &'a dyn Fn() -> bool) -> Self {
        Self(is_given)
    }

    /// Whether to stop.
    pub fn is_given(self) -> bool {
        self.0()
    }
}

impl fmt::Debug for StopSignal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopSignal")
    }
}
