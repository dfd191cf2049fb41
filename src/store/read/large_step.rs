//! Reads a step with megabytes of text.

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use super::{
    row_reader::RowReader,
    run_to_end,
    step_row::{StepColumns, read_step},
};
use crate::{
    domain::{
        Result,
        ids::{AccountId, StepId},
        step::Step,
        text::Body,
    },
    store::{Account, backend, connection::Purpose, error::StoreError, json_columns, statement},
};

/// Bytes of a piece of a body. The allocator keeps smaller blocks for reuse
/// (`.cargo/config.toml`), which would add up.
const PIECE_BYTES: usize = 2 * 1024 * 1024;

impl Account {
    /// Reads a step of any size under a permit, as the driver holds a row several times.
    pub(super) async fn get_large_step(&self, guid: StepId) -> Result<Option<Step>> {
        let account = self.clone();
        match backend(self.reader()) {
            DbBackend::Sqlite => {
                let _permit = self.large_read_permit().await;
                Ok(read(self.reader(), &self.id, guid, StepColumns::ALL).await?)
            }
            _ => run_to_end(async move { Ok(account.read_in_pieces(guid).await?) }).await,
        }
    }

    /// Reads the body in pieces, and all else by another statement of the same transaction.
    /// While a message of PostgreSQL arrives, the driver holds it three times.
    async fn read_in_pieces(&self, guid: StepId) -> Result<Option<Step>, StoreError> {
        let _permit = self.large_read_permit().await;
        let db = self.reader().begin(Purpose::Snapshot).await?;
        let columns = StepColumns {
            own_body: false,
            ..StepColumns::ALL
        };
        let Some(mut step) = read(&db, &self.id, guid, columns).await? else {
            return Ok(None);
        };
        step.content.body = read_body(&db, &self.id, guid).await?;
        Ok(Some(step))
    }
}

async fn read(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
    selected: StepColumns,
) -> Result<Option<Step>, StoreError> {
    let columns = selected.columns(backend(db));
    let sql = format!("SELECT {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2");
    let statement = statement(backend(db), account, sql, [Value::from(guid.0)]);
    let row = db.query_one_raw(statement).await?;
    let step = row.map(|row| read_step(&mut RowReader::new(&row), account));
    Ok(step.transpose()?.map(|(step, _)| step))
}

/// Reads the body of a step from PostgreSQL.
async fn read_body(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
) -> Result<Option<Body>, StoreError> {
    // OFFSET 0 keeps the inner query apart, so that the body is fetched once for all pieces.
    let sql = format!(
        "SELECT n, substring(b.body FROM n * {PIECE_BYTES} + 1 FOR {PIECE_BYTES}) FROM ( \
           SELECT convert_to(s.body, 'UTF8') AS body FROM steps s \
           WHERE s.account_id = $1 AND s.guid = $2 OFFSET 0 \
         ) b CROSS JOIN generate_series(0, (octet_length(b.body) - 1) / {PIECE_BYTES}) n"
    );
    let statement = statement(backend(db), account, sql, [Value::from(guid.0)]);
    let mut pieces = Vec::new();
    for row in db.query_all_raw(statement).await? {
        let number: i32 = RowReader::new(&row).take()?;
        pieces.push((number, row));
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    pieces.sort_by_key(|(number, _)| *number);
    let mut body = Vec::with_capacity(pieces.len() * PIECE_BYTES);
    for (_, row) in pieces {
        // Each piece is freed once it is copied.
        body.extend_from_slice(piece(&row)?);
    }
    let body = json_columns::valid(String::from_utf8(body), "body")?;
    Ok(Some(json_columns::valid(Body::parse(body), "body")?))
}

/// The bytes of a piece, which stand behind its number.
fn piece(row: &QueryResult) -> Result<&[u8], StoreError> {
    let mut row = RowReader::new(row);
    row.take::<i32>()?;
    Ok(row.take()?)
}
