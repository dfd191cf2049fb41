//! Steps that are appended or updated with one script.

use std::sync::LazyLock;

use sea_orm::{Iden, Iterable, ModelTrait, Value};

use super::{
    entity::step::{Column, Model},
    fault::Fault,
    script::{CHANGED, Script, Words, list, placeholder},
    step_write::write_row,
    task_read::STEP_GUID_BYTES,
    task_write::{RESERVE, byte_count},
    transaction::Tx,
};
use crate::domain::{
    Error,
    order::{GAP, Place},
    step::Step,
};

/// A step is appended, without and with a body. `$1` is the account, `$2` the task,
/// `$3` now, `$4` the largest message; then come the columns and the body.
static APPEND: LazyLock<[Words; 2]> = LazyLock::new(|| {
    let last = format!("last_position + {GAP}");
    let room = format!("last_position <= {}", i64::MAX - GAP);
    insertion(&last, &room, "last_position", 5)
});

/// A step is put at a place that was found for it. `$5` is the place's number, and
/// `$6` the version of the task in which it was found; the rest is as for
/// [`APPEND`].
static PUT: LazyLock<[Words; 2]> = LazyLock::new(|| {
    let last = "CASE WHEN last_position < $5 THEN $5 ELSE last_position END";
    insertion(last, "version = $6", "$5", 7)
});

fn insertion(last: &str, condition: &str, position: &str, first: usize) -> [Words; 2] {
    let decides = format!(
        "UPDATE tasks SET version = version + 1, step_count = step_count + 1, \
             last_position = {last}, dirty_record = true, modified_ts = $3 \
         WHERE account_id = $1 AND guid = $2 AND {condition} \
             AND size + (step_count + 1) * {STEP_GUID_BYTES} + {RESERVE} <= $4"
    );
    let columns: Vec<Column> = inserted().collect();
    let names = list(columns.iter().map(Iden::to_string));
    let values = list((first..).take(columns.len()).map(placeholder));
    let step = format!(
        "INSERT INTO steps (account_id, task, position, {names}) \
         SELECT $1, $2, {position}, {values} FROM {CHANGED}"
    );
    let guid = columns
        .iter()
        .position(|column| matches!(column, Column::Guid));
    let body = format!(
        "INSERT INTO step_bodies (account_id, step, body) SELECT $1, {}, {} FROM {CHANGED}",
        placeholder(first + guid.unwrap_or_default()),
        placeholder(first + columns.len()),
    );
    [vec![step.as_str()], vec![step.as_str(), body.as_str()]].map(|then| {
        Words::of(&Script {
            decides: &decides,
            columns: "last_position",
            row: "FROM tasks WHERE account_id = $1 AND guid = $2",
            then: &then,
        })
    })
}

/// A step is updated, and its body kept, put or dropped. `$1` is the account, `$2`
/// the step, `$3` and `$4` are the version and the time that it was read with; then
/// come the columns and the body.
static AMEND: LazyLock<[Words; 3]> = LazyLock::new(amendment);

fn amendment() -> [Words; 3] {
    let columns: Vec<Column> = amended().collect();
    let set = columns
        .iter()
        .zip(5..)
        .map(|(column, number)| format!("{} = {}", column.to_string(), placeholder(number)));
    let decides = format!(
        "UPDATE steps SET {} \
         WHERE account_id = $1 AND guid = $2 AND version = $3 AND modified_ts = $4",
        list(set),
    );
    let put = format!(
        "INSERT INTO step_bodies (account_id, step, body) SELECT $1, $2, {} FROM {CHANGED} \
         WHERE true ON CONFLICT (account_id, step) DO UPDATE SET body = excluded.body",
        placeholder(5 + columns.len()),
    );
    let dropped = format!(
        "DELETE FROM step_bodies WHERE account_id = $1 AND step = $2 \
         AND EXISTS (SELECT 1 FROM {CHANGED})"
    );
    [vec![], vec![put.as_str()], vec![dropped.as_str()]].map(|then| {
        Words::of(&Script {
            decides: &decides,
            columns: "guid",
            row: "FROM steps WHERE account_id = $1 AND guid = $2",
            then: &then,
        })
    })
}

/// The columns of a new step that its row in memory has.
fn inserted() -> impl Iterator<Item = Column> {
    use Column::{AccountId, Position, Task};
    Column::iter().filter(|column| !matches!(column, AccountId | Task | Position))
}

/// The columns that an update may change.
fn amended() -> impl Iterator<Item = Column> {
    use Column::{AccountId, CreatedTs, Fraction, Guid, Kind, Position, ProductId, Task};
    Column::iter().filter(|column| {
        !matches!(
            column,
            AccountId | Guid | Task | Position | Fraction | Kind | ProductId | CreatedTs
        )
    })
}

/// Where a new step goes.
pub(super) enum Spot {
    /// Behind all others, wherever they are.
    End,
    /// To a place that was found when the task was in a version.
    Found(Place, i64),
}

/// Adds a step without translations to its task; not when the task is not there, has
/// no room, or is no longer in the version in which the spot was found.
pub(super) async fn insert(tx: &Tx, step: &Step, spot: Spot) -> Result<bool, Fault> {
    let (words, spot, fraction) = match spot {
        Spot::End => (&*APPEND, None, Vec::new()),
        Spot::Found(Place { position, fraction }, version) => {
            (&*PUT, Some([position.into(), version.into()]), fraction)
        }
    };
    let place = Place {
        position: 0,
        fraction,
    };
    let Some(row) = row(tx, step, place)? else {
        return Ok(false);
    };
    let [without, with] = words;
    let body = step.content.body.as_ref();
    let words = if body.is_some() { with } else { without };
    let largest = byte_count(tx.max_message_bytes);
    let values = [row.task.into(), tx.now.0.into(), largest.into()]
        .into_iter()
        .chain(spot.into_iter().flatten())
        .chain(inserted().map(|column| row.get(column)))
        .chain(body.map(|body| Value::from(body.as_str())));
    let changed = tx.run(words.for_database_of(tx), values).await?;
    Ok(changed.is_some())
}

/// Writes what differs between two states of a step, translations apart; not when
/// the step is no longer in the first one.
pub(super) async fn amend(tx: &Tx, before: &Step, after: &Step) -> Result<bool, Fault> {
    // Where the step stands is not the update's affair.
    let Some(row) = row(tx, after, Place::nth(0))? else {
        return Ok(false);
    };
    let body = after.content.body.as_ref();
    let [kept, put, dropped] = &*AMEND;
    let (words, body) = match body {
        same if same == before.content.body.as_ref() => (kept, None),
        Some(body) => (put, Some(body)),
        None => (dropped, None),
    };
    let read = [
        row.guid.into(),
        before.version.into(),
        before.modified.0.into(),
    ];
    let values = read
        .into_iter()
        .chain(amended().map(|column| row.get(column)))
        .chain(body.map(|body| Value::from(body.as_str())));
    let changed = tx.run(words.for_database_of(tx), values).await?;
    Ok(changed.is_some())
}

/// The step's row; `None` when it is too large.
fn row(tx: &Tx, step: &Step, place: Place) -> Result<Option<Model>, Fault> {
    match write_row(tx, step, place) {
        Err(Fault::Domain(Error::TooLarge { .. })) => Ok(None),
        row => row.map(Some),
    }
}
