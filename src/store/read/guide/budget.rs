//! How much of a guide is read.

use crate::{
    call_context::WorkMemory,
    domain::{Error, SizedResource, analysis::MAX_GUIDE_STEPS},
    store::error::StoreError,
};

/// Bytes of memory that a byte of a guide takes while it is analysed: as a row, as a step, and
/// as a compiled condition.
pub const MEMORY_PER_BYTE: usize = 4;
/// Bytes that are read of rows before their size is asked for.
const BYTES_OF_UNKNOWN_ROWS: usize = 64 * 1024;
/// The same for each row. Most have less.
const BYTES_OF_UNKNOWN_ROW: usize = 2 * 1024;
/// Bytes of memory that a task or step takes beside its texts.
const MEMORY_PER_ROW: usize = 1_600;

/// How much of a guide may still be read.
pub struct ReadBudget {
    steps: usize,
    bytes: usize,
    max_bytes: usize,
    rows: usize,
    /// For what was read, and for what is being read.
    memory: WorkMemory,
}

impl ReadBudget {
    /// [`MAX_GUIDE_STEPS`] steps, and tasks and steps of `max_message_bytes` together, without
    /// bodies; less where more would never fit into memory.
    pub fn new(max_message_bytes: usize) -> Self {
        let memory = WorkMemory::of_current_call();
        // The last part is for rows beside their texts, and for the analysis.
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

    /// The memory that what was read takes, counted until it is dropped.
    pub fn into_memory(self) -> WorkMemory {
        self.memory
    }

    /// Reserves memory for rows whose sizes are not known yet, and returns the bytes that they
    /// may have together. Fails with [`Error::Overloaded`] if there is no room.
    pub fn reserve_unknown(&mut self, rows: usize) -> Result<usize, StoreError> {
        let bytes = rows.saturating_mul(BYTES_OF_UNKNOWN_ROW);
        let bytes = bytes.max(BYTES_OF_UNKNOWN_ROWS).min(self.bytes);
        self.reserve(bytes)?;
        Ok(bytes)
    }

    /// Reserves the memory for rows of so many bytes. Fails if the guide has more than a message
    /// may have, or with [`Error::Overloaded`] if there is no room.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), StoreError> {
        if bytes > self.bytes {
            return Err(self.exceeded().into());
        }
        match self.memory.try_grow(bytes.saturating_mul(MEMORY_PER_BYTE)) {
            true => Ok(()),
            false => Err(Error::Overloaded.into()),
        }
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

    /// Takes the bytes of a row. Fails if the guide has more than a message may have.
    pub fn take_row(&mut self, bytes: usize) -> Result<(), Error> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| self.exceeded())?;
        self.rows += 1;
        Ok(())
    }

    /// Gives back what was reserved beyond the rows that were taken.
    pub fn release_unused(&mut self) {
        let of_texts = (self.max_bytes - self.bytes).saturating_mul(MEMORY_PER_BYTE);
        let of_rows = self.rows.saturating_mul(MEMORY_PER_ROW);
        self.memory.shrink_to(of_texts.saturating_add(of_rows));
    }

    /// The error of a guide that has more bytes than a message may have.
    pub fn exceeded(&self) -> Error {
        Error::TooLarge {
            resource: SizedResource::AnalysedGuide,
            limit: self.max_bytes,
        }
    }
}
