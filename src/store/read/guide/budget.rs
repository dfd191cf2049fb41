//! The limits on how much of a guide is read.

use crate::{
    call_context::WorkMemory,
    domain::{Error, SizedResource, analysis::MAX_GUIDE_STEPS},
    store::error::StoreError,
};

/// Bytes of memory per byte of a guide during the analysis: as a row, as a step, and as a compiled
/// condition.
pub const MEMORY_PER_BYTE: usize = 4;
/// Bytes that are reserved for rows whose sizes are unknown.
const MIN_UNKNOWN_BYTES: usize = 64 * 1024;
/// The same for each row. Most rows are smaller.
const UNKNOWN_ROW_BYTES: usize = 2 * 1024;
/// Bytes of memory that a task or step takes in addition to its texts.
const MEMORY_PER_ROW: usize = 1_600;

/// How much of a guide may still be read.
pub struct ReadBudget {
    steps: usize,
    bytes: usize,
    max_bytes: usize,
    rows: usize,
    /// Reserved for what was read and for what is being read.
    memory: WorkMemory,
}

impl ReadBudget {
    /// [`MAX_GUIDE_STEPS`] steps, and `max_message_bytes` of tasks and steps without bodies, or less if
    /// so much would never fit into memory.
    pub fn new(max_message_bytes: usize) -> Self {
        let memory = WorkMemory::of_current_call();
        // The last part is for the fixed size of rows, and for the analysis.
        let max_bytes = memory.limit() / (MEMORY_PER_BYTE + 1);
        let max_bytes = max_bytes.min(max_message_bytes);
        Self {
            steps: MAX_GUIDE_STEPS,
            bytes: max_bytes,
            max_bytes,
            rows: 0,
            memory,
        }
    }

    /// The memory of what was read, which is reserved until it is dropped.
    pub fn into_memory(self) -> WorkMemory {
        self.memory
    }

    /// Reserves memory for rows whose sizes are not known yet, and returns the maximum of their total
    /// size in bytes. Fails with [`Error::Overloaded`] if there is no memory.
    pub fn reserve_unknown(&mut self, rows: usize) -> Result<usize, StoreError> {
        let bytes = rows.saturating_mul(UNKNOWN_ROW_BYTES);
        let bytes = bytes.max(MIN_UNKNOWN_BYTES).min(self.bytes);
        self.reserve(bytes)?;
        Ok(bytes)
    }

    /// Reserves the memory for rows of so many bytes. Fails if the guide has more bytes than a message
    /// may have, or with [`Error::Overloaded`] if there is no memory.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), StoreError> {
        if bytes > self.bytes {
            return Err(self.exceeded().into());
        }
        if self.memory.try_grow(bytes.saturating_mul(MEMORY_PER_BYTE)) {
            Ok(())
        } else {
            Err(Error::Overloaded.into())
        }
    }

    /// Takes the steps of a task from the budget, or returns false if they are too many.
    pub fn take_steps(&mut self, steps: usize) -> bool {
        let Some(left) = self.steps.checked_sub(steps) else {
            return false;
        };
        self.steps = left;
        true
    }

    /// Takes the bytes of a row. Fails if the guide has more bytes than a message may have.
    pub fn take_row(&mut self, size: i64) -> Result<(), Error> {
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| self.exceeded())?;
        self.rows += 1;
        Ok(())
    }

    /// Releases reserved memory beyond what the taken rows need.
    pub fn release_unused(&mut self) {
        let of_texts = (self.max_bytes - self.bytes).saturating_mul(MEMORY_PER_BYTE);
        let of_rows = self.rows.saturating_mul(MEMORY_PER_ROW);
        self.memory.shrink_to(of_texts.saturating_add(of_rows));
    }

    /// The error of a guide that has more bytes than a message may have.
    fn exceeded(&self) -> Error {
        Error::TooLarge {
            resource: SizedResource::AnalysedGuide,
            limit: self.max_bytes,
        }
    }
}
