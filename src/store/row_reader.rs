//! Reads the columns of a row in the order in which they are selected.

use sea_orm::{DbErr, QueryResult, RuntimeErr};
use sqlx::{Decode, Postgres, Row, Sqlite, Type};

use crate::domain::{row_version::RowVersion, time::Timestamp};

/// A type to which columns of both databases are decoded. A `&str` borrows from the row.
pub trait ColumnValue<'r>:
    Decode<'r, Postgres> + Type<Postgres> + Decode<'r, Sqlite> + Type<Sqlite>
{
}

impl<'r, T> ColumnValue<'r> for T where
    T: Decode<'r, Postgres> + Type<Postgres> + Decode<'r, Sqlite> + Type<Sqlite>
{
}

/// Reads all rows. A `collect` into a result would not know how many there are, and grow and copy
/// its list again and again.
pub fn read_all<R, T, E>(
    rows: impl ExactSizeIterator<Item = R>,
    mut read: impl FnMut(R) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(read(row)?);
    }
    Ok(all)
}

/// Reads a row column by column. Finding a column by its name costs more than decoding it.
///
/// Columns are taken from the driver's row: SeaORM looks up each value twice and formats an
/// error for each NULL, which takes several times as long.
pub struct RowReader<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> RowReader<'r> {
    /// Begins at the first column.
    pub fn new(row: &'r QueryResult) -> Self {
        Self::at(row, 0)
    }

    /// Begins at the column with this index.
    pub fn at(row: &'r QueryResult, next: usize) -> Self {
        Self { row, next }
    }

    pub fn take<T: ColumnValue<'r>>(&mut self) -> Result<T, DbErr> {
        let index = self.next;
        self.next += 1;
        let value = if let Some(row) = self.row.try_as_pg_row() {
            // PostgreSQL enforces the types of columns, so only debug builds, as in tests,
            // check them. SQLite may store any type in any column.
            if cfg!(debug_assertions) {
                row.try_get(index)
            } else {
                row.try_get_unchecked(index)
            }
        } else if let Some(row) = self.row.try_as_sqlite_row() {
            row.try_get(index)
        } else {
            return Err(DbErr::Type("a row of an unknown database".to_owned()));
        };
        value.map_err(|error| DbErr::Query(RuntimeErr::SqlxError(error.into())))
    }

    /// Takes the columns `version`, `dirty_record`, `created_ts` and `modified_ts`.
    pub fn take_row_version(&mut self) -> Result<RowVersion, DbErr> {
        Ok(RowVersion {
            version: self.take()?,
            dirty: self.take()?,
            created: Timestamp(self.take()?),
            modified: Timestamp(self.take()?),
        })
    }
}
