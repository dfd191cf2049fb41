//! Rows that an INSERT reads as a table: arrays on PostgreSQL, one for each column, so that
//! its text and the number of its values do not grow with the rows; VALUES on SQLite, which
//! has no arrays.
//!
//! Only for INSERTs: without statistics, PostgreSQL reads all rows of an account to find
//! those whose id is in an array.

use sea_orm::{DbBackend, Value, sea_query::ArrayType};

use super::{Values, list};

/// The rows, by column.
pub struct GivenRows {
    backend: DbBackend,
    columns: Vec<Vec<Value>>,
}

impl GivenRows {
    /// No columns yet.
    pub fn new(backend: DbBackend) -> Self {
        Self {
            backend,
            columns: Vec::new(),
        }
    }

    /// Adds a column with a cell for each row, all of one type. Returns the expression that
    /// reads it.
    pub fn add(&mut self, mut cells: Vec<Value>) -> String {
        if self.backend == DbBackend::Sqlite || !cells.iter().any(is_null) {
            return self.push(cells);
        }
        // The driver's arrays hold no NULL.
        let present = cells.iter().map(|cell| Value::from(!is_null(cell)));
        let present = present.collect();
        for cell in &mut cells {
            if is_null(cell) {
                *cell = cell.dummy_value();
            }
        }
        let (present, cells) = (self.push(present), self.push(cells));
        format!("CASE WHEN {present} THEN {cells} END")
    }

    fn push(&mut self, cells: Vec<Value>) -> String {
        self.columns.push(cells);
        format!("given.column{}", self.columns.len())
    }

    /// The table `given`, whose values are bound in their order.
    pub fn table(self, values: &mut Values) -> String {
        match self.backend {
            DbBackend::Sqlite => format!("(VALUES {}) AS given", rows(self.columns, values)),
            _ => {
                let names = (1..=self.columns.len()).map(|number| format!("column{number}"));
                let names = list(names);
                let arrays = self.columns.into_iter().map(|cells| {
                    let array = array(cells);
                    let cast = cast(&array);
                    format!("{}{cast}", values.bind(array))
                });
                format!("unnest({}) AS given ({names})", list(arrays))
            }
        }
    }
}

fn is_null(cell: &Value) -> bool {
    *cell == cell.as_null()
}

fn array(cells: Vec<Value>) -> Value {
    let kind = cells.first().map_or_else(
        || Value::String(None).array_type(),
        |cell| cell.array_type(),
    );
    Value::Array(kind, Some(Box::new(cells)))
}

/// The cast of an array, so that its type can be seen in the statement.
fn cast(array: &Value) -> &'static str {
    match array {
        Value::Array(ArrayType::Bool, _) => "::boolean[]",
        Value::Array(ArrayType::SmallInt, _) => "::smallint[]",
        Value::Array(ArrayType::Int, _) => "::integer[]",
        Value::Array(ArrayType::BigInt, _) => "::bigint[]",
        Value::Array(ArrayType::String, _) => "::text[]",
        Value::Array(ArrayType::Bytes, _) => "::bytea[]",
        Value::Array(ArrayType::Uuid, _) => "::uuid[]",
        _ => "",
    }
}

/// The placeholders of rows.
fn rows(columns: Vec<Vec<Value>>, values: &mut Values) -> String {
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let mut rows = Vec::new();
    loop {
        let row: Vec<Value> = columns.iter_mut().filter_map(Iterator::next).collect();
        if row.is_empty() {
            return rows.join(", ");
        }
        rows.push(values.bind_row(row));
    }
}
