//! Reading steps. One statement each, so that what a caller sees is one state.

use sea_orm::{ConnectionTrait, EntityTrait, QueryResult, Value};

use super::{
    row_reader::RowReader,
    step_row::{Selected, read_step},
};
use crate::{
    domain::{
        Error, Result,
        ids::{AccountId, StepId, TaskId},
        order::{Place, StepCursor},
        page::{PAGE_BYTES, Page, PageSize},
        step::Step,
        violation::{Path, Reason},
    },
    store::{Account, backend, error::StoreError, schema::entity::task, statement},
};

/// Bytes of a step beyond which it is read by a second statement.
const LARGE_STEP_BYTES: i64 = 1024 * 1024;

/// A step, undecoded, and its bytes.
struct FoundRow {
    row: QueryResult,
    bytes: i64,
}

impl FoundRow {
    async fn of(
        db: &impl ConnectionTrait,
        account: &AccountId,
        guid: StepId,
        selected: Selected,
    ) -> Result<Option<Self>, StoreError> {
        let backend = backend(db);
        let (columns, bytes) = (selected.columns(backend), selected.bytes());
        let sql = format!(
            "SELECT {bytes}, {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2"
        );
        let statement = statement(backend, account, sql, [Value::from(guid.0)]);
        let Some(row) = db.query_one_raw(statement).await? else {
            return Ok(None);
        };
        let bytes = RowReader::of(&row).take()?;
        Ok(Some(Self { row, bytes }))
    }

    fn read(&self, account: &AccountId) -> Result<(Step, Place), StoreError> {
        let mut row = RowReader::of(&self.row);
        row.take::<i64>()?;
        read_step(&mut row, account)
    }
}

/// A step as it is now, and its place.
pub async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    let found = FoundRow::of(db, account, guid, Selected::WHOLE).await?;
    found.map(|found| found.read(account)).transpose()
}

/// A page that is asked for.
struct StepPage {
    task: TaskId,
    bodies: bool,
    after: Option<StepCursor>,
    size: i64,
}

impl StepPage {
    /// The bytes up to which a step is small: a page of small ones is at most twice as
    /// large as it should be.
    fn small_step_bytes(&self) -> i64 {
        2 * PAGE_BYTES as i64 / (self.size + 1)
    }

    /// The condition that the columns of its steps meet, and its values from `$2` on,
    /// with the most that is to be read.
    fn condition(&self) -> (&'static str, Vec<Value>) {
        let mut values = vec![Value::from(self.task.0), Value::from(self.size + 1)];
        match &self.after {
            None => ("s.account_id = $1 AND s.task = $2", values),
            Some(StepCursor { place, .. }) => {
                values.push(place.position.into());
                values.push(place.fraction.clone().into());
                let behind = "s.account_id = $1 AND s.task = $2 \
                     AND (s.position, s.fraction) > ($4, $5)";
                (behind, values)
            }
        }
    }
}

/// A step of a listing, undecoded.
struct ListedRow {
    row: QueryResult,
    /// The bytes that it has, or how many steps were found.
    count: i64,
    epoch: i64,
}

impl ListedRow {
    fn of(row: QueryResult) -> Result<Self, StoreError> {
        let mut columns = RowReader::of(&row);
        let (count, epoch) = (columns.take()?, columns.take()?);
        Ok(Self { row, count, epoch })
    }

    fn read(&self, account: &AccountId) -> Result<(Step, StepCursor), StoreError> {
        let mut row = RowReader::of(&self.row);
        row.take::<i64>()?;
        let epoch = row.take()?;
        let (step, place) = read_step(&mut row, account)?;
        Ok((step, StepCursor { epoch, place }))
    }
}

/// How many of these steps a page holds: about [`PAGE_BYTES`], or one step.
fn fitting(rows: &[ListedRow], limit: usize) -> usize {
    let mut before = 0_i64;
    let fits = |row: &&ListedRow| {
        let fits = before < PAGE_BYTES as i64;
        before = before.saturating_add(row.count);
        fits
    };
    rows.iter().take(limit).take_while(fits).count()
}

impl Account {
    /// A step with its body. A large step takes a second statement under a permit, as
    /// the driver holds an answer whole before it hands it on.
    pub async fn get_step(&self, guid: StepId) -> Result<Step> {
        let db = self.reader();
        let small = Selected {
            max_bytes: Some(LARGE_STEP_BYTES),
            ..Selected::WHOLE
        };
        let mut found = FoundRow::of(db, &self.id, guid, small).await?;
        if found
            .as_ref()
            .is_some_and(|row| row.bytes > LARGE_STEP_BYTES)
        {
            let _permit = self.large_read_permit().await;
            found = FoundRow::of(db, &self.id, guid, Selected::WHOLE).await?;
        }
        let (step, _) = found.ok_or(Error::StepNotFound(guid))?.read(&self.id)?;
        Ok(step)
    }

    /// A task's steps in their order, each with the cursor behind it. A page
    /// holds about [`PAGE_BYTES`], or one step.
    pub async fn list_steps(
        &self,
        task: TaskId,
        bodies: bool,
        after: Option<StepCursor>,
        size: PageSize,
    ) -> Result<Page<(Step, StepCursor)>> {
        let limit = size.get() as usize;
        let epoch = after.as_ref().map(|cursor| cursor.epoch);
        let page = StepPage {
            task,
            bodies,
            after,
            size: i64::from(size.get()),
        };
        let mut rows = self.small_steps(&page).await?;
        let small = page.small_step_bytes();
        let mut found = rows.len();
        rows.truncate(fitting(&rows, limit));
        if rows.iter().any(|row| row.count > small) {
            let _permit = self.large_read_permit().await;
            (rows, found) = self.large_steps(&page).await?;
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
                "the steps have been numbered anew since; start again from the first page",
            ));
        }
        let more = found > rows.len();
        let items = rows.iter().map(|listed| listed.read(&self.id));
        let items = items.collect::<Result<_, StoreError>>()?;
        Ok(Page { items, more })
    }

    /// The steps of a page and the one behind it, all read at once. Of those that are
    /// not small, what may be large is left out.
    async fn small_steps(&self, page: &StepPage) -> Result<Vec<ListedRow>, StoreError> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            max_bytes: Some(page.small_step_bytes()),
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        let sql = format!(
            "SELECT {bytes}, (SELECT t.order_epoch FROM tasks t \
                              WHERE t.account_id = $1 AND t.guid = $2), {columns} \
             FROM steps s WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3"
        );
        let statement = statement(backend(db), &self.id, sql, values);
        let rows = db.query_all_raw(statement).await?;
        rows.into_iter().map(ListedRow::of).collect()
    }

    /// The steps that fit into a page, whole, and how many there are with those that do
    /// not.
    async fn large_steps(&self, page: &StepPage) -> Result<(Vec<ListedRow>, usize), StoreError> {
        let db = &self.lagging();
        let selected = Selected {
            bodies: page.bodies,
            max_bytes: None,
        };
        let (columns, bytes) = (selected.columns(backend(db)), selected.bytes());
        let (condition, values) = page.condition();
        // The innermost query finds the page; around it, the bytes before each
        // step are counted; and only what fits is read whole.
        let sql = format!(
            "SELECT p.found, t.order_epoch, {columns} FROM ( \
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
        let rows = db.query_all_raw(statement).await?;
        let rows: Vec<ListedRow> = rows
            .into_iter()
            .map(ListedRow::of)
            .collect::<Result<_, _>>()?;
        let found = rows.first().map_or(0, |row| row.count);
        Ok((rows, usize::try_from(found).unwrap_or(usize::MAX)))
    }

    /// The numbering of a task's steps, or that there is no such task, which a
    /// replica cannot say.
    pub(in crate::store) async fn order_epoch(&self, task: TaskId) -> Result<i64> {
        let row = task::Entity::find_by_id((self.id.as_str().to_owned(), task.0))
            .one(self.reader())
            .await
            .map_err(StoreError::from)?;
        Ok(row.ok_or(Error::TaskNotFound(task))?.order_epoch)
    }
}
