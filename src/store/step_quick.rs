//! Steps that are added, updated or deleted with one script.

use std::sync::LazyLock;

use sea_orm::{Iden, Iterable, ModelTrait, Value};

use super::{
    Retry,
    entity::step::{Column, Model},
    fault::Fault,
    script::{Besides, CHANGED, Script, Words, list, placeholder},
    step_write::{self, write_row},
    task_read::STEP_GUID_BYTES,
    task_write::{RESERVE, byte_count},
    transaction::Tx,
};
use crate::domain::{
    Error,
    order::{GAP, Place},
    step::Step,
};

/// How a script finds the place of a new step. `$1` is the account, `$2` the task,
/// `$3` now, `$4` the largest message; then come what [`Spot::values`] has, the columns
/// and the body.
struct Finding {
    /// The task's last position, once the step is there.
    last: String,
    /// What must hold of the task.
    condition: String,
    /// The step's position.
    position: &'static str,
    /// The number of the first column's value.
    first: usize,
}

impl Finding {
    /// Behind all others.
    fn of_the_end() -> Self {
        Self {
            last: format!("last_position + {GAP}"),
            condition: format!("last_position <= {}", i64::MAX - GAP),
            position: "last_position",
            first: 5,
        }
    }

    /// At a number, `$5`, that was found in a version of the task, `$6`.
    fn of_a_place() -> Self {
        Self {
            last: "CASE WHEN last_position < $5 THEN $5 ELSE last_position END".to_owned(),
            condition: "version = $6".to_owned(),
            position: "$5",
            first: 7,
        }
    }

    /// The number of the first value behind the columns and the body.
    fn end(&self, body: bool) -> usize {
        self.first + inserted().count() + usize::from(body)
    }

    fn script(&self, body: bool) -> Script {
        let Self {
            last,
            condition,
            position,
            first,
        } = self;
        let columns: Vec<Column> = inserted().collect();
        let names = list(columns.iter().map(Iden::to_string));
        let values = list((*first..).take(columns.len()).map(placeholder));
        let mut then = vec![format!(
            "INSERT INTO steps (account_id, task, position, {names}) \
             SELECT $1, $2, {position}, {values} FROM {CHANGED}"
        )];
        if body {
            let guid = columns
                .iter()
                .position(|column| matches!(column, Column::Guid));
            then.push(format!(
                "INSERT INTO step_bodies (account_id, step, body) SELECT $1, {}, {} FROM {CHANGED}",
                placeholder(first + guid.unwrap_or_default()),
                placeholder(first + columns.len()),
            ));
        }
        Script {
            decides: format!(
                "UPDATE tasks SET version = version + 1, step_count = step_count + 1, \
                     last_position = {last}, dirty_record = true, modified_ts = $3 \
                 WHERE account_id = $1 AND guid = $2 AND {condition} \
                     AND size + (step_count + 1) * {STEP_GUID_BYTES} + {RESERVE} <= $4"
            ),
            columns: "last_position",
            row: "FROM tasks WHERE account_id = $1 AND guid = $2",
            then,
            wary: false,
        }
    }
}

/// A step is appended, without and with a body.
static APPEND: LazyLock<[Words; 2]> =
    LazyLock::new(|| [false, true].map(|body| Words::of(&Finding::of_the_end().script(body))));

/// A step is put at a place that was found for it, without and with a body.
static PUT: LazyLock<[Words; 2]> =
    LazyLock::new(|| [false, true].map(|body| Words::of(&Finding::of_a_place().script(body))));

/// What becomes of a step's body.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Put,
    Dropped,
}

/// A step is updated, and its body kept, put or dropped.
static AMEND: LazyLock<[Words; 3]> = LazyLock::new(|| {
    [Fate::Kept, Fate::Put, Fate::Dropped].map(|body| Words::of(&amendment(body)))
});

/// `$1` is the account, `$2` the step, `$3` and `$4` are the version and the time that
/// it was read with; then come the columns and the body.
fn amendment(body: Fate) -> Script {
    let columns: Vec<Column> = amended().collect();
    let set = columns
        .iter()
        .zip(5..)
        .map(|(column, number)| format!("{} = {}", column.to_string(), placeholder(number)));
    let then = match body {
        Fate::Kept => Vec::new(),
        Fate::Put => vec![format!(
            "INSERT INTO step_bodies (account_id, step, body) SELECT $1, $2, {} FROM {CHANGED} \
             WHERE true ON CONFLICT (account_id, step) DO UPDATE SET body = excluded.body",
            placeholder(5 + columns.len()),
        )],
        Fate::Dropped => vec![format!(
            "DELETE FROM step_bodies WHERE account_id = $1 AND step = $2 \
             AND EXISTS (SELECT 1 FROM {CHANGED})"
        )],
    };
    Script {
        decides: format!(
            "UPDATE steps SET {} \
             WHERE account_id = $1 AND guid = $2 AND version = $3 AND modified_ts = $4",
            list(set),
        ),
        columns: "guid",
        row: "FROM steps WHERE account_id = $1 AND guid = $2",
        then,
        wary: false,
    }
}

/// A step is deleted. `$1` is the account, `$2` the task, `$3` now, `$4` the step, `$5`
/// and `$6` are the version and the time that it was read with. The task is locked
/// before the step, as always.
static DELETE: LazyLock<Words> = LazyLock::new(|| {
    let step = "account_id = $1 AND guid = $4 AND version = $5 AND modified_ts = $6";
    Words::of(&Script {
        decides: format!(
            "UPDATE tasks SET version = version + 1, step_count = step_count - 1, \
                 dirty_record = true, modified_ts = $3 \
             WHERE account_id = $1 AND guid = $2 AND EXISTS (SELECT 1 FROM steps WHERE {step})"
        ),
        columns: "guid",
        row: "FROM tasks WHERE account_id = $1 AND guid = $2",
        then: vec![format!(
            "DELETE FROM steps WHERE {step} AND EXISTS (SELECT 1 FROM {CHANGED})"
        )],
        wary: true,
    })
});

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

/// Adds a step to its task and keeps that as the outcome of a request; not when the
/// task is not there, has no room, or is no longer in the version in which the spot was
/// found, and not when the request has an outcome.
pub(super) async fn insert<T>(
    tx: &Tx,
    step: &Step,
    spot: Spot,
    outcome: Option<(&Retry<T>, &T)>,
) -> Result<bool, Fault> {
    let (finding, words, spot, fraction) = match spot {
        Spot::End => (Finding::of_the_end(), &*APPEND, None, Vec::new()),
        Spot::Found(Place { position, fraction }, version) => {
            let found = Some([position.into(), version.into()]);
            (Finding::of_a_place(), &*PUT, found, fraction)
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
    let mut besides = Besides::from(finding.end(body.is_some()));
    step_write::overlays(tx, None, step).besides(&mut besides);
    let first = outcome.map(|(retry, outcome)| {
        let first = retry.is_first(&mut besides);
        retry.keep_besides(tx, outcome, &mut besides);
        first
    });
    let made;
    let sql = match (besides.then.is_empty(), body) {
        (true, None) => without.for_database_of(tx),
        (true, Some(_)) => with.for_database_of(tx),
        (false, body) => {
            let mut script = finding.script(body.is_some());
            if let Some(first) = first {
                script.decides.push_str(&format!(" AND {first}"));
            }
            script.then.append(&mut besides.then);
            made = script.sql(tx.backend());
            &made
        }
    };
    let largest = byte_count(tx.max_message_bytes);
    let values = [row.task.into(), tx.now.0.into(), largest.into()]
        .into_iter()
        .chain(spot.into_iter().flatten())
        .chain(inserted().map(|column| row.get(column)))
        .chain(body.map(|body| Value::from(body.as_str())))
        .chain(besides.values);
    let changed = tx.run(sql, values).await?;
    Ok(changed.is_some())
}

/// Writes what differs between two states of a step; not when the step is no longer in
/// the first one.
pub(super) async fn amend(tx: &Tx, before: &Step, after: &Step) -> Result<bool, Fault> {
    // Where the step stands is not the update's affair.
    let Some(row) = row(tx, after, Place::nth(0))? else {
        return Ok(false);
    };
    let [kept, put, dropped] = &*AMEND;
    let (fate, words, body) = match after.content.body.as_ref() {
        same if same == before.content.body.as_ref() => (Fate::Kept, kept, None),
        Some(body) => (Fate::Put, put, Some(body)),
        None => (Fate::Dropped, dropped, None),
    };
    let mut besides = Besides::from(5 + amended().count() + usize::from(body.is_some()));
    let gone = before
        .content
        .translations
        .keys()
        .filter(|language| !after.content.translations.contains_key(language));
    for language in gone {
        let language = besides.value(language.as_str());
        besides.then.push(format!(
            "DELETE FROM step_translations WHERE account_id = $1 AND step = $2 \
             AND language = {language} AND EXISTS (SELECT 1 FROM {CHANGED})"
        ));
    }
    step_write::overlays(tx, Some(before), after).besides(&mut besides);
    let made;
    let sql = if besides.then.is_empty() {
        words.for_database_of(tx)
    } else {
        let mut script = amendment(fate);
        script.then.append(&mut besides.then);
        made = script.sql(tx.backend());
        &made
    };
    let read = [
        row.guid.into(),
        before.version.into(),
        before.modified.0.into(),
    ];
    let values = read
        .into_iter()
        .chain(amended().map(|column| row.get(column)))
        .chain(body.map(|body| Value::from(body.as_str())))
        .chain(besides.values);
    let changed = tx.run(sql, values).await?;
    Ok(changed.is_some())
}

/// Deletes a step; not when it is no longer in this state.
pub(super) async fn delete(tx: &Tx, step: &Step) -> Result<bool, Fault> {
    let values: [Value; 5] = [
        step.task.0.into(),
        tx.now.0.into(),
        step.guid.0.into(),
        step.version.into(),
        step.modified.0.into(),
    ];
    let changed = tx.run(DELETE.for_database_of(tx), values).await?;
    Ok(changed.is_some())
}

/// The step's row; `None` when it is too large.
fn row(tx: &Tx, step: &Step, place: Place) -> Result<Option<Model>, Fault> {
    match write_row(tx, step, place) {
        Err(Fault::Domain(Error::TooLarge { .. })) => Ok(None),
        row => row.map(Some),
    }
}
