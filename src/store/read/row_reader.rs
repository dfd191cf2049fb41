//! Rows that are read column by column, in the order in which they are selected.

use sea_orm::{DbErr, QueryResult, TryGetable};

/// Takes the columns of a row one after the other. Looking each of them up by its name
/// costs more than decoding it.
pub struct RowReader<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> RowReader<'r> {
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
