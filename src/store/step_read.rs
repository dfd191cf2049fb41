//! Reading steps. One statement each, so that what a caller sees is one state.

use sea_orm::{ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryResult, Value};

use super::{
    Account, backend,
    cells::Cells,
    entity::task,
    fault::Fault,
    step_row::{Selected, StepRow},
    transaction::{Tx, statement},
};
use crate::domain::{
    Error, Result,
    ids::{AccountId, StepId, TaskId},
    order::Cursor,
    page::{PAGE_BYTES, Page, PageSize},
    step::Step,
    violation::{Path, Reason},
};

/// Bytes of a step beyond which it is read in turn.
const LARGE: i64 = 1024 * 1024;

/// A step, and the bytes that it has.
struct FoundRow {
    row: StepRow,
    bytes: i64,
}

impl FromQueryResult for FoundRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        let mut cells = Cells::of(row);
        Ok(Self {
            row: StepRow::take(&mut cells)?,
            bytes: cells.take()?,
        })
    }
}

async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
    selected: Selected,
) -> Result<FoundRow, Fault> {
    let backend = backend(db);
    let (columns, bytes) = (selected.columns(backend), selected.bytes());
    let sql =
        format!("SELECT {columns}, {bytes} FROM steps s WHERE s.account_id = $1 AND s.guid = $2");
    let statement = statement(backend, account, sql, [Value::from(guid.0)]);
    let found = FoundRow::find_by_statement(statement).one(db).await?;
    Ok(found.ok_or(Error::StepNotFound(guid))?)
}

/// A page that is asked for.
struct Asked {
    task: TaskId,
    bodies: bool,
    after: Option<Cursor>,
    size: i64,
}

impl Asked {
    /// The bytes up to which a step is small: a page of them is at most twice as large as
    /// it should be.
    fn most(&self) -> i64 {
        2 * PAGE_BYTES as i64 / (self.size + 1)
    }

    /// The condition that the columns of its steps meet, and its values from `$2` on,
    /// with the most that is to be read.
    fn condition(&self) -> (&'static str, Vec<Value>) {
        let mut values = vec![Value::from(self.task.0), Value::from(self.size + 1)];
        match &self.after {
            None => ("s.account_id = $1 AND s.task = $2", values),
            Some(Cursor { place, .. }) => {
                values.push(place.position.into());
                values.push(place.fraction.clone().into());
                let behind = "s.account_id = $1 AND s.task = $2 \
                     AND (s.position, s.fraction) > ($4, $5)";
                (behind, values)
            }
        }
    }
}

/// A step of a listing.
struct ListedRow {
    row: StepRow,
    /// The bytes that it has, or what else is counted.
    bytes: i64,
    epoch: i64,
}

impl FromQueryResult for ListedRow {
    fn from_query_result(row: &QueryResult, _: &str) -> Result<Self, DbErr> {
        let mut cells = Cells::of(row);
        Ok(Self {
            row: StepRow::take(&mut cells)?,
            bytes: cells.take()?,
            epoch: cells.take()?,
        })
    }
}

/// How many of these steps a page holds: about [`PAGE_BYTES`], or one step.
fn fitting(rows: &[ListedRow], limit: usize) -> usize {
    let mut before = 0_i64;
    let fits = |row: &&ListedRow| {
        let fits = before < PAGE_BYTES as i64;
        before = before.saturating_add(row.bytes);
        fits
    };
    rows.iter().take(limit).take_while(fits).count()
}

impl Tx {
    /// A step as it is now; the caller holds its lock.
    pub async fn read_step(&self, guid: StepId) -> Result<Step, Fault> {
        let found = find(&self.db, &self.account, guid, Selected::WHOLE).await?;
        found.row.read(&self.account)
    }
}

impl Account {
    /// A step with its body. Large steps are read a few at a time, as the driver holds
    /// an answer whole before it hands it on: that takes a second statement.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let db = self.reader();
        let small = Selected {
            most: Some(LARGE),
            ..Selected::WHOLE
        };
        let mut found = find(db, &self.id, guid, small).await?;
        if found.bytes > LARGE {
            let _turn = self.large_read().await;
            found = find(db, &self.id, guid, Selected::WHOLE).await?;
        }
        Ok(found.row.read(&self.id)?)
    }

    /// A task's steps in their order, each with the cursor behind it. A page
    /// holds about [`PAGE_BYTES`], or one step.
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<Cursor>,
        size: PageSize,
    ) -> Result<Page<(Step, Cursor)>> {
        let limit = size.get() as usize;
        let epoch = after.as_ref().map(|cursor| cursor.epoch);
        let page = Asked {
            task,
            bodies,
            after,
            size: i64::from(size.get()),
        };
        let mut rows = self.small_steps(&page).await?;
        let most = page.most();
        let mut found = rows.len();
        rows.truncate(fitting(&rows, limit));
        if rows.iter().any(|row| row.bytes > most) {
            let _turn = self.large_read().await;
            (rows, found) = self.steps(&page).await?;
            rows.truncate(limit);
        }
        let current = match rows.first() {
            Some(row) => row.epoch,
            None => self.order_epoch(task).await?,
        };
        if epoch.is_some_and(|epoch| epoch != current) {
            return Err(Error::invalid(
                &Path::root("page_token"),
                Reason::PageTokenInvalid,
                "the order of the steps was made anew; start again from the first page",
            ));
        }
        let more = found > rows.len();
        let items = rows.into_iter().map(|listed| listed.read(&self.id));
        let items = items.collect::<Result<_, Fault>>()?;
        Ok(Page { items, more })
    }

    /// The steps of a page and the one behind it, all read at once: of those that have
    /// more than [`Asked::most`] bytes, what may be large is left out.
    async fn small_steps(&self, page: &Asked) -> Result<Vec<ListedRow>, Fault> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            most: Some(page.most()),
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        let sql = format!(
            "SELECT {columns}, {bytes}, (SELECT t.order_epoch FROM tasks t \
                                         WHERE t.account_id = $1 AND t.guid = $2) \
             FROM steps s WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        Ok(ListedRow::find_by_statement(statement).all(db).await?)
    }

    /// The steps that fit into a page, whole, and how many there are with those that do
    /// not.
    async fn steps(&self, page: &Asked) -> Result<(Vec<ListedRow>, usize), Fault> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            most: None,
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        // The innermost query finds the page; around it, the bytes before each
        // step are counted; and only what fits is read whole.
        let sql = format!(
            "SELECT {columns}, p.found, t.order_epoch FROM ( \
               SELECT guid, CAST(SUM(bytes) OVER (ORDER BY position, fraction) - bytes AS bigint) \
                        AS before, \
                      COUNT(*) OVER () AS found \
               FROM (SELECT s.guid, s.position, s.fraction, {bytes} AS bytes FROM steps s \
                     WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3) f \
             ) p JOIN steps s ON s.account_id = $1 AND s.guid = p.guid \
             JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
             WHERE p.before < {PAGE_BYTES} ORDER BY s.position, s.fraction"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = ListedRow::find_by_statement(statement).all(db).await?;
        let found = rows.first().map_or(0, |row| row.bytes);
        Ok((rows, usize::try_from(found).unwrap_or(usize::MAX)))
    }

    /// The numbering of a task's steps, or that there is no such task, which a
    /// replica cannot say.
    pub(super) async fn order_epoch(&self, task: TaskId) -> Result<i64> {
        let row = task::Entity::find_by_id((self.id.as_str().to_owned(), task.0))
            .one(self.reader())
            .await
            .map_err(Fault::from)?;
        Ok(row.ok_or(Error::TaskNotFound(task))?.order_epoch)
    }
}

impl ListedRow {
    fn read(self, account: &AccountId) -> Result<(Step, Cursor), Fault> {
        let cursor = Cursor {
            epoch: self.epoch,
            place: self.row.place(),
        };
        Ok((self.row.read(account)?, cursor))
    }
}
