//! Whether a PostgreSQL and its database can hold what is stored.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use tracing::warn;

use super::{OpenError, message};
use crate::store::backend;

/// The least `server_version_num`: the first version with foreign keys to partitioned tables.
const LEAST_VERSION: i32 = 120_000;
/// The encoding of what is stored, as PostgreSQL names it.
const ENCODING: &str = "UTF8";

/// Fails if the server is too old or the database has another encoding, in which not every
/// text could be stored.
pub async fn check_server(db: &impl ConnectionTrait) -> Result<(), OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let sql = "SELECT current_setting('server_version_num')::int, \
               current_setting('server_encoding'), current_setting('server_version')";
    let query = Statement::from_string(backend(db), sql);
    let Some(row) = db.query_one_raw(query).await.map_err(failed)? else {
        return Ok(());
    };
    let version: i32 = row.try_get_by_index(0).map_err(failed)?;
    let encoding: String = row.try_get_by_index(1).map_err(failed)?;
    if version < LEAST_VERSION {
        let found = row.try_get_by_index(2).map_err(failed)?;
        return Err(OpenError::OldServer { found });
    }
    match encoding == ENCODING {
        true => Ok(()),
        false => Err(OpenError::Encoding { found: encoding }),
    }
}

/// Logs a warning if the database for reads is no standby.
pub async fn warn_if_not_standby(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    let query = Statement::from_string(backend(db), "SELECT pg_is_in_recovery()");
    let row = db.query_one_raw(query).await?;
    let is_standby: Option<bool> = row.map(|row| row.try_get_by_index(0)).transpose()?;
    if is_standby == Some(false) {
        warn!(
            "the database of EXPERTISE_DATABASE_READ_URL is no standby: if it is the primary, use \
             the URL of a standby, or unset it"
        );
    }
    Ok(())
}
