//! Reads a step with megabytes of text.

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Value};

use super::run_to_end;
use crate::{
    domain::{
        Result,
        ids::{AccountId, StepId},
        order::Place,
        step::Step,
        text::Body,
    },
    store::{
        Account, backend,
        connection::TransactionMode,
        error::StoreError,
        json_columns,
        row_reader::RowReader,
        statement,
        step_row::{StepColumns, read_step},
    },
};

/// Bytes of a piece of a body. The allocator keeps smaller blocks for reuse
/// (`.cargo/config.toml`), which would add up.
const PIECE_BYTES: usize = 2 * 1024 * 1024;

impl Account {
    /// Reads a step of so many bytes under a permit, as the driver holds a row several times.
    pub(super) async fn get_large_step(&self, guid: StepId, bytes: usize) -> Result<Option<Step>> {
        let permit = self.large_read_permit(bytes).await?;
        match backend(self.reader()) {
            DbBackend::Sqlite => {
                let found = find_whole(self.reader(), &self.id, guid).await?;
                Ok(found.map(|(step, _)| step))
            }
            _ => {
                let account = self.clone();
                run_to_end(async move {
                    let _permit = permit;
                    Ok(account.get_in_transaction(guid).await?)
                })
                .await
            }
        }
    }

    async fn get_in_transaction(&self, guid: StepId) -> Result<Option<Step>, StoreError> {
        let db = self.reader().begin(TransactionMode::Snapshot).await?;
        let found = find_whole(&db, &self.id, guid).await?;
        Ok(found.map(|(step, _)| step))
    }
}

/// Reads a step of any size and its place, under a permit. On PostgreSQL this takes two
/// statements, so `db` must be a transaction that sees one state or has locked the step.
pub async fn find_whole(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
) -> Result<Option<(Step, Place)>, StoreError> {
    find(db, account, guid, StepColumns::ALL).await
}

/// Reads these columns of a step of any size, and its place. On PostgreSQL the step's own body
/// comes in pieces, as the driver holds a message three times while it arrives; so `db` must be
/// such a transaction as for [`find_whole`].
pub(super) async fn find(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
    selected: StepColumns,
) -> Result<Option<(Step, Place)>, StoreError> {
    let in_pieces = selected.bodies && backend(db) != DbBackend::Sqlite;
    let selected = StepColumns {
        own_body: !in_pieces,
        ..selected
    };
    let mut found = read(db, account, guid, selected).await?;
    if in_pieces && let Some((step, _)) = &mut found {
        step.content.body = read_body(db, account, guid).await?;
    }
    Ok(found)
}

async fn read(
    db: &impl ConnectionTrait,
    account: &AccountId,
    guid: StepId,
    selected: StepColumns,
) -> Result<Option<(Step, Place)>, StoreError> {
    let columns = selected.columns(backend(db));
    let sql = format!("SELECT {columns} FROM steps s WHERE s.account_id = $1 AND s.guid = $2");
    let statement = statement(backend(db), account, sql, [Value::from(guid.0)]);
    let row = db.query_one_raw(statement).await?;
    row.map(|row| read_step(&mut RowReader::new(&row), account))
        .transpose()
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
