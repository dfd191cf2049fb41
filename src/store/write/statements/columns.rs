//! Which columns an update may change, and the keys of the tables.

use crate::{domain::decide::WriteContext, store::write::sql::Values};

pub const TASK_KEY: [&str; 2] = ["account_id", "guid"];
pub const STEP_KEY: [&str; 2] = ["account_id", "guid"];
pub const TASK_TRANSLATION_KEY: [&str; 3] = ["account_id", "task", "language"];
pub const STEP_TRANSLATION_KEY: [&str; 3] = ["account_id", "step", "language"];

/// Whether an update may change a column of a task.
pub fn is_updated_task_column(column: &str) -> bool {
    !matches!(column, "account_id" | "guid" | "product_id" | "created_ts")
}

/// Whether an update may change a column of a step whose body stays the same.
pub fn is_updated_step_column(column: &str) -> bool {
    !matches!(
        column,
        "account_id" | "guid" | "task" | "kind" | "product_id" | "created_ts" | "body"
    )
}

/// Whether an update may change a column of a step whose body changes.
pub fn is_updated_step_or_body_column(column: &str) -> bool {
    column == "body" || is_updated_step_column(column)
}

/// Whether an update may change a column of a translation.
pub fn is_updated_translation_column(column: &str) -> bool {
    !matches!(column, "account_id" | "task" | "step" | "language")
}

/// The assignments that give a row its next version, as [`RowVersion::next`] does in memory.
///
/// [`RowVersion::next`]: crate::domain::row_version::RowVersion::next
pub fn next_row_version(table: &str, values: &mut Values, context: &WriteContext) -> String {
    let now = values.bind(context.now.0);
    format!("version = {table}.version + 1, dirty_record = true, modified_ts = {now}")
}
