//! What updates may change of a row: its columns, its version, and the list of steps of a task; and the
//! keys of the tables.

use crate::{
    domain::{
        changes::StepListChange,
        decide::WriteContext,
        order::{GAP, OrderChange},
        size::{RESERVED_BYTES, STEP_ID_BYTES, stored_count},
        task::MAX_TASK_STEPS,
    },
    store::write::sql::{Placeholder, Values},
};

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

/// The UPDATE of a task whose list of steps changes, and the placeholder of its id. It matches no
/// row if the task would be too large or have too many steps, or has another version than the
/// change is based on.
pub fn change_step_list(
    order: StepListChange,
    values: &mut Values,
    context: &WriteContext,
) -> (String, Placeholder) {
    let StepListChange {
        task,
        change,
        task_version,
    } = order;
    let row_version = next_row_version("tasks", values, context);
    let (added, numbering): (i64, String) = match change {
        OrderChange::Append => (1, format!(", last_position = last_position + {GAP}")),
        OrderChange::Insert { position } => {
            let at = values.bind(position);
            let numbering = format!(
                ", last_position = CASE WHEN last_position < {at} THEN {at} ELSE last_position END"
            );
            (1, numbering)
        }
        OrderChange::Renumber { last_position } => {
            let last = values.bind(last_position);
            (
                1,
                format!(", last_position = {last}, order_epoch = order_epoch + 1"),
            )
        }
        OrderChange::Remove => (-1, String::new()),
    };
    let added_steps = values.bind(added);
    let task = values.bind(task.0);
    let mut sql = format!(
        "UPDATE tasks SET {row_version}, step_count = step_count + {added_steps}{numbering} \
         WHERE account_id = $1 AND guid = {task}"
    );
    if added > 0 {
        let limit = values.bind(stored_count(context.max_message_bytes));
        sql.push_str(&format!(
            " AND size + (step_count + {added_steps}) * {STEP_ID_BYTES} + {RESERVED_BYTES} <= {limit} \
             AND step_count < {MAX_TASK_STEPS} AND last_position <= {}",
            i64::MAX - GAP,
        ));
    }
    if let Some(version) = task_version {
        sql.push_str(&format!(" AND version = {}", values.bind(version)));
    }
    (sql, task)
}
