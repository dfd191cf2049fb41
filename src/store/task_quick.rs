//! Tasks that are created or updated with one script.

use std::sync::LazyLock;

use sea_orm::{Iden, Iterable, ModelTrait, Value};

use super::{
    Retry,
    entity::task::{Column, Model},
    fault::Fault,
    script::{Besides, CHANGED, Script, Words, list, placeholder},
    task_read::STEP_GUID_BYTES,
    task_write::{self, Order, RESERVE, byte_count, write_row},
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

/// A task is created. `$1` is the account; then come the columns, the id first.
fn creation() -> Script {
    let columns: Vec<Column> = created().collect();
    let names = list(columns.iter().map(Iden::to_string));
    let values = list((2..).take(columns.len()).map(placeholder));
    Script {
        decides: format!("INSERT INTO tasks (account_id, {names}) SELECT $1, {values} WHERE true"),
        columns: "guid",
        row: "FROM tasks WHERE account_id = $1 AND guid = $2",
        then: Vec::new(),
        wary: false,
    }
}

static CREATE: LazyLock<Words> = LazyLock::new(|| Words::of(&creation()));

/// The columns of a new task beside its account.
fn created() -> impl Iterator<Item = Column> {
    let others =
        Column::iter().filter(|column| !matches!(column, Column::AccountId | Column::Guid));
    std::iter::once(Column::Guid).chain(others)
}

/// `$1` is the account, `$2` the task, `$3` and `$4` are the version and the time
/// that it was read with, `$5` is the largest message and `$6` the size; then come
/// the columns.
fn amendment() -> Script {
    let set = COLUMNS
        .iter()
        .zip(7..)
        .map(|(column, number)| format!("{} = {}", column.to_string(), placeholder(number)));
    Script {
        decides: format!(
            "UPDATE tasks SET {} WHERE account_id = $1 AND guid = $2 \
                 AND version = $3 AND modified_ts = $4 \
                 AND step_count * {STEP_GUID_BYTES} + {RESERVE} <= $5 - $6",
            list(set),
        ),
        columns: "guid",
        row: "FROM tasks WHERE account_id = $1 AND guid = $2",
        then: Vec::new(),
        wary: false,
    }
}

static AMEND: LazyLock<Words> = LazyLock::new(|| Words::of(&amendment()));

/// Adds a task and keeps that as the outcome of a request; not when the request has an
/// outcome.
pub(super) async fn insert(
    tx: &Tx,
    task: &Task,
    row: &Model,
    retry: Option<&Retry<Task>>,
) -> Result<bool, Fault> {
    let mut besides = Besides::from(2 + created().count());
    task_write::overlays(tx, None, task).besides(&mut besides);
    let first = retry.map(|retry| {
        let first = retry.is_first(&mut besides);
        retry.keep_besides(tx, task, &mut besides);
        first
    });
    let made;
    let sql = if besides.then.is_empty() {
        CREATE.for_database_of(tx)
    } else {
        let mut script = creation();
        if let Some(first) = first {
            script.decides.push_str(&format!(" AND {first}"));
        }
        script.then.append(&mut besides.then);
        made = script.sql(tx.backend());
        &made
    };
    let values = created()
        .map(|column| row.get(column))
        .chain(besides.values);
    let changed = tx.run(sql, values).await?;
    Ok(changed.is_some())
}

/// Writes what differs between two states of a task, the name apart; not when the task
/// is no longer in the first one, or would be too large.
pub(super) async fn amend(tx: &Tx, before: &Task, after: &Task) -> Result<bool, Fault> {
    let row = write_row(after, Order::default());
    let mut besides = Besides::from(7 + COLUMNS.len());
    let gone = before
        .translations
        .keys()
        .filter(|language| !after.translations.contains_key(language));
    for language in gone {
        let language = besides.value(language.as_str());
        besides.then.push(format!(
            "DELETE FROM task_translations WHERE account_id = $1 AND task = $2 \
             AND language = {language} AND EXISTS (SELECT 1 FROM {CHANGED})"
        ));
    }
    task_write::overlays(tx, Some(before), after).besides(&mut besides);
    let made;
    let sql = if besides.then.is_empty() {
        AMEND.for_database_of(tx)
    } else {
        let mut script = amendment();
        script.then.append(&mut besides.then);
        made = script.sql(tx.backend());
        &made
    };
    let known: [Value; 5] = [
        row.guid.into(),
        before.version.into(),
        before.modified.0.into(),
        byte_count(tx.max_message_bytes).into(),
        row.size.into(),
    ];
    let values = known
        .into_iter()
        .chain(COLUMNS.map(|column| row.get(column)))
        .chain(besides.values);
    let changed = tx.run(sql, values).await?;
    Ok(changed.is_some())
}
