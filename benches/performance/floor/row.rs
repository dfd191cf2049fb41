//! Converts rows to messages.

use expertise::proto::v1;
use prost_types::Timestamp;
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type};
use uuid::Uuid;

use super::values::timestamp;

/// A step, with its body if that is selected.
pub struct StepRow(pub v1::Step);

/// A step of a guide, without its body.
pub struct GuideStepRow {
    pub step: StepRow,
    pub dependencies: Option<String>,
    pub feedback_config: Option<String>,
}

/// A task, with the ids of its steps in one column, separated by commas.
pub struct TaskRow(pub v1::Task);

/// Columns that are NULL in every measured row of the floor are selected but not decoded.
impl<'r, R> FromRow<'r, R> for StepRow
where
    R: Row,
    usize: ColumnIndex<R>,
    Uuid: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    i32: Decode<'r, R::Database> + Type<R::Database>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        const BODY: usize = 23;
        let body = (row.len() > BODY)
            .then(|| row.try_get(BODY))
            .transpose()?
            .flatten();
        Ok(Self(v1::Step {
            guid: row.try_get::<Uuid, _>(0)?.to_string(),
            task: row.try_get::<Uuid, _>(1)?.to_string(),
            r#type: row.try_get(2)?,
            product_id: row.try_get(3)?,
            title: row.try_get(4)?,
            cost: row.try_get(5)?,
            published: row.try_get(6)?,
            etag: row.try_get(7)?,
            dirty_record: row.try_get(8)?,
            created_ts: time(row.try_get(9)?),
            modified_ts: time(row.try_get(10)?),
            account_id: super::values::ACCOUNT.to_owned(),
            body,
            ..v1::Step::default()
        }))
    }
}

impl<'r, R> FromRow<'r, R> for GuideStepRow
where
    R: Row,
    StepRow: FromRow<'r, R>,
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            step: StepRow::from_row(row)?,
            dependencies: row.try_get(11)?,
            feedback_config: row.try_get(12)?,
        })
    }
}

impl<'r, R> FromRow<'r, R> for TaskRow
where
    R: Row,
    usize: ColumnIndex<R>,
    Uuid: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    i32: Decode<'r, R::Database> + Type<R::Database>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let roles: Vec<u8> = row.try_get(5)?;
        let steps: Option<String> = row.try_get(17)?;
        Ok(Self(v1::Task {
            guid: row.try_get::<Uuid, _>(0)?.to_string(),
            name: row.try_get(1)?,
            product_id: row.try_get(2)?,
            r#type: row.try_get(3)?,
            published: row.try_get(4)?,
            roles: roles.into_iter().map(i32::from).collect(),
            etag: row.try_get(6)?,
            dirty_record: row.try_get(7)?,
            created_ts: time(row.try_get(8)?),
            modified_ts: time(row.try_get(9)?),
            account_id: super::values::ACCOUNT.to_owned(),
            steps: guids(steps.as_deref()),
            ..v1::Task::default()
        }))
    }
}

fn time(micros: i64) -> Option<Timestamp> {
    Some(timestamp(micros))
}

/// PostgreSQL formats ids with hyphens, SQLite without.
fn guids(list: Option<&str>) -> Vec<String> {
    let list = list.unwrap_or_default().split(',');
    let list = list.filter(|guid| !guid.is_empty());
    list.map(|guid| match guid.len() {
        32 => Uuid::try_parse(guid).expect("an id").to_string(),
        _ => guid.to_owned(),
    })
    .collect()
}
