//! Rows that are read column by column, in the order in which they were selected.

use sea_orm::{DbErr, QueryResult, TryGetable};

/// The columns of a row, taken one after the other. A name would be put together
/// and looked up for each of them, which cost more than decoding what stands in it.
pub(super) struct Cells<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> Cells<'r> {
    /// All columns of a row.
    pub fn of(row: &'r QueryResult) -> Self {
        Self { row, next: 0 }
    }

    /// The next column.
    pub fn take<T: TryGetable>(&mut self) -> Result<T, DbErr> {
        let cell = self.row.try_get_by_index(self.next)?;
        self.next += 1;
        Ok(cell)
    }
}
