//! A column with JSON text.
//!
//! The column is of type text on both databases, because `jsonb` would change numbers such as −0.0, and
//! the order of keys.

use sea_orm::{
    ColIdx, ColumnType, DbErr, QueryResult, TryGetError, TryGetable, Value,
    sea_query::{ArrayType, ValueType, ValueTypeErr},
};
use serde::{Serialize, de::DeserializeOwned};

/// A value that is stored as JSON text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for Value {
    fn from(Json(value): Json<T>) -> Self {
        // A value that cannot be encoded becomes NULL, which the column rejects.
        Value::String(serde_json::to_string(&value).ok())
    }
}

impl<T: DeserializeOwned> TryGetable for Json<T> {
    fn try_get_by<I: ColIdx>(row: &QueryResult, index: I) -> Result<Self, TryGetError> {
        let text: String = row.try_get_by(index)?;
        decode(&text).map_err(TryGetError::DbErr)
    }
}

impl<T: DeserializeOwned> ValueType for Json<T> {
    fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
        match value {
            Value::String(Some(text)) => decode(&text).map_err(|_| ValueTypeErr),
            _ => Err(ValueTypeErr),
        }
    }

    fn type_name() -> String {
        "Json".to_owned()
    }

    fn array_type() -> ArrayType {
        ArrayType::String
    }

    fn column_type() -> ColumnType {
        ColumnType::Text
    }
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<Json<T>, DbErr> {
    // The driver's text would quote the stored value.
    let value = serde_json::from_str(text).map_err(|_| DbErr::Json("a column".to_owned()));
    value.map(Json)
}
