//! Reads pages of steps with megabytes of text.

use sea_orm::{ConnectionTrait, QueryResult};

use super::{
    large_step, run_to_end,
    steps::{LARGE_STEP_BYTES, StepPageRead, StepPageRequest},
};
use crate::{
    domain::{
        Result,
        ids::{AccountId, StepId},
        order::StepCursor,
        page::PAGE_BYTES,
    },
    store::{
        Account, backend,
        connection::TransactionMode,
        error::StoreError,
        row_reader::RowReader,
        statement,
        step_row::{StepColumns, read_step},
    },
};

impl Account {
    /// Reads a page of so many bytes with medium steps, none above [`LARGE_STEP_BYTES`], by one
    /// statement under a permit.
    pub(super) async fn read_page(
        &self,
        page: &StepPageRequest,
        bytes: usize,
    ) -> Result<StepPageRead> {
        let _permit = self.large_read_permit(bytes).await?;
        let db = self.reader();
        Ok(self.read_steps_of_page(db, page, None).await?)
    }

    /// Reads a page of so many bytes with large steps under a permit, each of these by a statement of its own
    /// in one transaction.
    pub(super) async fn read_page_of_large_steps(
        &self,
        page: StepPageRequest,
        bytes: usize,
    ) -> Result<StepPageRead> {
        let permit = self.large_read_permit(bytes).await?;
        let account = self.clone();
        run_to_end(async move {
            let _permit = permit;
            Ok(account.read_page_in_transaction(&page).await?)
        })
        .await
    }

    async fn read_page_in_transaction(
        &self,
        page: &StepPageRequest,
    ) -> Result<StepPageRead, StoreError> {
        let db = &self.reader().begin(TransactionMode::Snapshot).await?;
        self.read_steps_of_page(db, page, Some(LARGE_STEP_BYTES))
            .await
    }

    /// Reads the steps of a page. Each with more than `max_bytes` is read by a statement of its own.
    async fn read_steps_of_page(
        &self,
        db: &impl ConnectionTrait,
        page: &StepPageRequest,
        max_bytes: Option<i64>,
    ) -> Result<StepPageRead, StoreError> {
        let mut read = StepPageRead {
            found: 0,
            steps: Vec::new(),
        };
        for row in rows(db, &self.id, page, max_bytes).await? {
            let mut row = RowReader::new(&row);
            let (found, bytes, epoch): (i64, i64, i64) = (row.take()?, row.take()?, row.take()?);
            let (step, place) = if max_bytes.is_some_and(|max| bytes > max) {
                let guid = StepId(row.take()?);
                let columns = StepColumns {
                    bodies: page.bodies,
                    ..StepColumns::ALL
                };
                let step = large_step::find(db, &self.id, guid, columns).await?;
                step.ok_or(StoreError::Corrupt("guid"))?
            } else {
                read_step(&mut row, &self.id)?
            };
            read.found = usize::try_from(found).unwrap_or(usize::MAX);
            read.steps.push((step, StepCursor { epoch, place }));
        }
        Ok(read)
    }
}

/// Rows with the steps of a page, as far as they fit into it; not the one after it. Steps with
/// more than `max_bytes` come without their large columns.
async fn rows(
    db: &impl ConnectionTrait,
    account: &AccountId,
    page: &StepPageRequest,
    max_bytes: Option<i64>,
) -> Result<Vec<QueryResult>, StoreError> {
    let selected = StepColumns {
        bodies: page.bodies,
        max_bytes,
        ..StepColumns::ALL
    };
    let (columns, bytes) = (selected.columns(backend(db)), selected.size_sql());
    let (condition, values) = page.condition();
    // The innermost query finds the page, the next one sums the bytes before each
    // step, and the outer one reads the steps that fit.
    let sql = format!(
        "SELECT p.found, {bytes}, t.order_epoch, {columns} FROM ( \
           SELECT guid, CAST(SUM(bytes) OVER (ORDER BY position, fraction) - bytes AS bigint) \
                    AS before, \
                  ROW_NUMBER() OVER (ORDER BY position, fraction) AS number, \
                  COUNT(*) OVER () AS found \
           FROM (SELECT s.guid, s.position, s.fraction, {bytes} AS bytes FROM steps s \
                 WHERE {condition} ORDER BY s.position, s.fraction LIMIT $3) f \
         ) p JOIN steps s ON s.account_id = $1 AND s.guid = p.guid \
         JOIN tasks t ON t.account_id = $1 AND t.guid = $2 \
         WHERE p.before < {PAGE_BYTES} AND p.number < $3 ORDER BY s.position, s.fraction"
    );
    let statement = statement(backend(db), account, sql, values);
    Ok(db.query_all_raw(statement).await?)
}
