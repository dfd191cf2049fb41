//! How much of a guide is read.

use crate::domain::{Error, SizedResource, analysis::MAX_GUIDE_STEPS};

/// How much of a guide may still be read.
pub struct ReadBudget {
    steps: usize,
    bytes: usize,
    max_bytes: usize,
}

impl ReadBudget {
    /// [`MAX_GUIDE_STEPS`] steps of `max_bytes` together, without bodies.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            steps: MAX_GUIDE_STEPS,
            bytes: max_bytes,
            max_bytes,
        }
    }

    /// The bytes that are left.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the steps of a task from the budget; false if they are too many, and none are
    /// taken.
    pub fn take_steps(&mut self, steps: usize) -> bool {
        let Some(left) = self.steps.checked_sub(steps) else {
            return false;
        };
        self.steps = left;
        true
    }

    /// Takes the bytes of a step. Fails if the guide has more than a message may have.
    pub fn take_bytes(&mut self, bytes: i64) -> Result<(), Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| self.exceeded())?;
        Ok(())
    }

    /// The error of a guide that has more bytes than a message may have.
    pub fn exceeded(&self) -> Error {
        Error::TooLarge {
            resource: SizedResource::AnalysedGuide,
            limit: self.max_bytes,
        }
    }
}
