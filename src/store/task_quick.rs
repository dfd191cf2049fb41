//! Tasks that are updated with one script.

use std::sync::LazyLock;

use sea_orm::{Iden, ModelTrait};

use super::{
    entity::task::Column,
    fault::Fault,
    script::{Script, Words, list, placeholder},
    task_read::STEP_GUID_BYTES,
    task_write::{Order, RESERVE, byte_count, write_row},
    transaction::Tx,
};
use crate::domain::task::Task;

/// What an update may change, the name apart, which others follow.
const COLUMNS: [Column; 8] = [
    Column::Dependencies,
    Column::Published,
    Column::Roles,
    Column::RoleBits,
    Column::Size,
    Column::Version,
    Column::DirtyRecord,
    Column::ModifiedTs,
];

/// `$1` is the account, `$2` the task, `$3` and `$4` are the version and the time
/// that it was read with, `$5` is the largest message and `$6` the size; then come
/// the columns.
static AMEND: LazyLock<Words> = LazyLock::new(|| {
    let set = COLUMNS
        .iter()
        .zip(7..)
        .map(|(column, number)| format!("{} = {}", column.to_string(), placeholder(number)));
    let decides = format!(
        "UPDATE tasks SET {} WHERE account_id = $1 AND guid = $2 \
             AND version = $3 AND modified_ts = $4 \
             AND step_count * {STEP_GUID_BYTES} + {RESERVE} <= $5 - $6",
        list(set),
    );
    Words::of(&Script {
        decides: &decides,
        columns: "guid",
        row: "FROM tasks WHERE account_id = $1 AND guid = $2",
        then: &[],
    })
});

/// Writes what differs between two states of a task, name and translations apart;
/// not when the task is no longer in the first one, or would be too large.
pub(super) async fn amend(tx: &Tx, before: &Task, after: &Task) -> Result<bool, Fault> {
    let row = write_row(after, Order::default());
    let known = [
        row.guid.into(),
        before.version.into(),
        before.modified.0.into(),
        byte_count(tx.max_message_bytes).into(),
        row.size.into(),
    ];
    let values = known
        .into_iter()
        .chain(COLUMNS.map(|column| row.get(column)));
    let changed = tx.run(AMEND.for_database_of(tx), values).await?;
    Ok(changed.is_some())
}
