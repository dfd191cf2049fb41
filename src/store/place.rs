//! Finding a place for a new step. The caller holds the lock of the task.

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Value,
};
use uuid::Uuid;

use super::{entity::step, fault::Fault, transaction::Tx};
use crate::domain::{
    ids::{StepId, TaskId},
    order::{GAP, Place},
    step::Placement,
};

/// The step itself and the one behind it. The inner query finds nothing, and so
/// does the outer one, when the step is not of the task.
const NEIGHBOURS: &str = "SELECT position, fraction FROM steps \
    WHERE account_id = $1 AND task = $2 AND (position, fraction) >= \
        (SELECT position, fraction FROM steps \
         WHERE account_id = $1 AND guid = $3 AND task = $2) \
    ORDER BY position, fraction LIMIT 2";

/// The same with the version that the task is in.
const VERSIONED: &str = "SELECT s.position, s.fraction, t.version FROM steps s \
    JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
    WHERE s.account_id = $1 AND s.task = $2 AND (s.position, s.fraction) >= \
        (SELECT position, fraction FROM steps \
         WHERE account_id = $1 AND guid = $3 AND task = $2) \
    ORDER BY s.position, s.fraction LIMIT 2";

const LAST: &str = "SELECT position, fraction FROM steps \
    WHERE account_id = $1 AND task = $2 \
    ORDER BY position DESC, fraction DESC LIMIT 1";

/// Numbers a task's steps anew in their order.
const RENUMBER: &str = "UPDATE steps SET position = r.n * $3, fraction = $4 \
    FROM (SELECT guid, row_number() OVER (ORDER BY position, fraction) AS n \
          FROM steps WHERE account_id = $1 AND task = $2) r \
    WHERE steps.account_id = $1 AND steps.guid = r.guid";

/// Notes on the task where its last step stands now.
const RENUMBERED: &str = "UPDATE tasks SET last_position = COALESCE( \
      (SELECT MAX(position) FROM steps WHERE account_id = $1 AND task = $2), 0) \
    WHERE account_id = $1 AND guid = $2";

#[derive(FromQueryResult)]
struct PlaceRow {
    position: i64,
    fraction: Vec<u8>,
}

impl From<PlaceRow> for Place {
    fn from(PlaceRow { position, fraction }: PlaceRow) -> Self {
        Self { position, fraction }
    }
}

/// A place that was found.
pub(super) struct Found {
    /// The place.
    pub place: Place,
    /// How it relates to what was asked for.
    pub placement: Placement,
    /// Whether the task's steps were numbered anew to make room.
    pub renumbered: bool,
}

/// What is right behind a step.
pub(super) enum Behind {
    /// There is no such step in the task.
    Nothing,
    /// A place, found in this version of the task.
    Found(Place, i64),
    /// No place: the task's steps are to be numbered anew.
    NoRoom,
}

#[derive(FromQueryResult)]
struct VersionedRow {
    #[sea_orm(nested)]
    place: PlaceRow,
    version: i64,
}

/// Looks for the place right after `prevstep` without a lock of the task.
pub(super) async fn behind(tx: &Tx, task: TaskId, prevstep: StepId) -> Result<Behind, Fault> {
    let values = [Value::from(task.0), Value::from(prevstep.0)];
    let rows = VersionedRow::find_by_statement(tx.statement(VERSIONED, values))
        .all(&tx.db)
        .await?;
    let mut neighbours = rows.into_iter();
    let Some(VersionedRow { place, version }) = neighbours.next() else {
        return Ok(Behind::Nothing);
    };
    let low = Place::from(place);
    let place = match neighbours.next() {
        Some(high) => Place::between(&low, &Place::from(high.place)),
        None => Place::after(Some(&low)),
    };
    Ok(place.map_or(Behind::NoRoom, |place| Behind::Found(place, version)))
}

/// Finds the place right after `prevstep`, or at the end.
pub(super) async fn find(tx: &Tx, task: TaskId, prevstep: Option<StepId>) -> Result<Found, Fault> {
    for renumbered in [false, true] {
        let (place, placement) = look(tx, task, prevstep).await?;
        if let Some(place) = place {
            return Ok(Found {
                place,
                placement,
                renumbered,
            });
        }
        renumber(tx, task).await?;
    }
    Err(Fault::Corrupt("no room in a fresh order"))
}

async fn look(
    tx: &Tx,
    task: TaskId,
    prevstep: Option<StepId>,
) -> Result<(Option<Place>, Placement), Fault> {
    let mut placement = Placement::Appended;
    if let Some(prevstep) = prevstep {
        let values = [Value::from(task.0), Value::from(prevstep.0)];
        let rows = PlaceRow::find_by_statement(tx.statement(NEIGHBOURS, values))
            .all(&tx.db)
            .await?;
        let mut neighbours = rows.into_iter().map(Place::from);
        placement = match (neighbours.next(), neighbours.next()) {
            (Some(low), Some(high)) => {
                return Ok((Place::between(&low, &high), Placement::AfterPrevstep));
            }
            (Some(last), None) => {
                return Ok((Place::after(Some(&last)), Placement::AfterPrevstep));
            }
            (None, _) => Placement::AppendedPrevstepUnknown,
        };
    }
    let last = PlaceRow::find_by_statement(tx.statement(LAST, [Value::from(task.0)]))
        .one(&tx.db)
        .await?
        .map(Place::from);
    Ok((Place::after(last.as_ref()), placement))
}

async fn renumber(tx: &Tx, task: TaskId) -> Result<(), Fault> {
    step::Entity::find()
        .select_only()
        .column(step::Column::Guid)
        .filter(step::Column::AccountId.eq(tx.account_id()))
        .filter(step::Column::Task.eq(task.0))
        .order_by_asc(step::Column::Guid)
        .lock_exclusive()
        .into_tuple::<Uuid>()
        .all(&tx.db)
        .await?;
    let values = [
        Value::from(task.0),
        Value::from(GAP),
        Value::from(Vec::<u8>::new()),
    ];
    tx.db.execute_raw(tx.statement(RENUMBER, values)).await?;
    let last = tx.statement(RENUMBERED, [Value::from(task.0)]);
    tx.db.execute_raw(last).await?;
    Ok(())
}
