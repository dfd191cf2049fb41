//! Reads the columns of a row in the order in which they are selected.

use sea_orm::{DbErr, QueryResult, TryGetable};

/// Reads a row column by column. Finding a column by its name costs more than decoding it.
pub struct RowReader<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> RowReader<'r> {
    /// Begins at the first column.
    pub fn new(row: &'r QueryResult) -> Self {
        Self { row, next: 0 }
    }

    pub fn take<T: TryGetable>(&mut self) -> Result<T, DbErr> {
        let value = self.row.try_get_by_index(self.next)?;
        self.next += 1;
        Ok(value)
    }
}
