//! Checks of the PostgreSQL server: its version, the encoding of the database, and the permissions of
//! the user.

use std::collections::BTreeMap;

use sea_orm::{ConnectionTrait, DbErr, Statement};
use tracing::warn;

use super::{OpenError, message};
use crate::store::schema;

/// The minimum `server_version_num`.
const MIN_VERSION: i32 = 120_000;
/// PostgreSQL's name of the required encoding.
const ENCODING: &str = "UTF8";

/// The permissions on tables, and on the sequence of changes, that a connection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededPermissions {
    /// To read which migrations were run, and the digest of their schema.
    Migrations,
    /// To read all tables, and to change those of accounts.
    Serve,
}

/// The table in which SeaORM lists the migrations that were run.
const MIGRATIONS_TABLE: &str = "seaql_migrations";
/// The table with the digest of the schema.
const KEYS_TABLE: &str = "server_keys";
const READ: &[&str] = &["SELECT"];
/// The permission on a sequence, as the statement compares it.
const USAGE: &str = "USAGE";
const DRAW: &[&str] = &[USAGE];
const CHANGE: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE"];

impl NeededPermissions {
    /// Each table or sequence with its permissions.
    fn tables(self) -> Vec<(&'static str, &'static [&'static str])> {
        let mut tables = vec![(MIGRATIONS_TABLE, READ)];
        if self == Self::Migrations {
            tables.push((KEYS_TABLE, READ));
        } else {
            tables.extend(schema::tables().map(|table| {
                let is_changed = table.is_of_accounts;
                (table.name, if is_changed { CHANGE } else { READ })
            }));
            tables.push((schema::CHANGES_SEQUENCE, DRAW));
        }
        tables
    }
}

/// Fails if the server is too old, or if the database has an encoding that cannot store every text.
pub async fn check_server(db: &impl ConnectionTrait) -> Result<(), OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let sql = "SELECT current_setting('server_version_num')::int, \
               current_setting('server_encoding'), current_setting('server_version')";
    let query = Statement::from_string(db.get_database_backend(), sql);
    let Some(row) = db.query_one_raw(query).await.map_err(failed)? else {
        return Ok(());
    };
    let version: i32 = row.try_get_by_index(0).map_err(failed)?;
    let encoding: String = row.try_get_by_index(1).map_err(failed)?;
    if version < MIN_VERSION {
        let found = row.try_get_by_index(2).map_err(failed)?;
        return Err(OpenError::OldServer { found });
    }
    match encoding == ENCODING {
        true => Ok(()),
        false => Err(OpenError::Encoding { found: encoding }),
    }
}

/// Fails if the user lacks one of the permissions on a table that exists, or may use no schema.
/// PostgreSQL hides tables from users without permissions, so an unreadable table would look like a
/// missing one.
pub async fn check_permissions(
    db: &impl ConnectionTrait,
    needed: NeededPermissions,
) -> Result<(), OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let query =
        Statement::from_string(db.get_database_backend(), "SELECT current_schema() IS NULL");
    let row = db.query_one_raw(query).await.map_err(failed)?;
    let has_no_schema = row.map(|row| row.try_get_by_index(0)).transpose();
    if has_no_schema.map_err(failed)? == Some(true) {
        return Err(OpenError::Schema(
            "this user may use no schema: grant USAGE on the schema to the user".to_owned(),
        ));
    }
    let missing = Statement::from_string(db.get_database_backend(), missing_permissions(needed));
    // Tables by their missing permissions, which are written as in a GRANT.
    let mut tables = BTreeMap::<String, Vec<String>>::new();
    for row in db.query_all_raw(missing).await.map_err(failed)? {
        let table = row.try_get_by_index(0).map_err(failed)?;
        let permissions = row.try_get_by_index(1).map_err(failed)?;
        tables.entry(permissions).or_default().push(table);
    }
    if tables.is_empty() {
        return Ok(());
    }
    let grants = tables.iter();
    let grants =
        grants.map(|(permissions, tables)| format!("{permissions} on {}", tables.join(", ")));
    Err(OpenError::Permissions {
        missing: grants.collect::<Vec<_>>().join("; "),
    })
}

/// Logs a warning if writes will be refused, as the database is a standby or read-only.
pub async fn warn_if_read_only(db: &impl ConnectionTrait) -> Result<(), OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let sql = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
    let state = Statement::from_string(db.get_database_backend(), sql);
    let Some(row) = db.query_one_raw(state).await.map_err(failed)? else {
        return Ok(());
    };
    let is_standby: bool = row.try_get_by_index(0).map_err(failed)?;
    let is_read_only: bool = row.try_get_by_index(1).map_err(failed)?;
    if is_standby {
        warn!(
            "the database is a standby, so writes are refused until it is promoted: this is right \
             for a server of the read fleet; otherwise set EXPERTISE_DATABASE_URL to the primary"
        );
    } else if is_read_only {
        warn!(
            "the database is read-only, so writes are refused: check default_transaction_read_only"
        );
    }
    Ok(())
}

/// A query for the tables on which the user lacks permissions, and which. Tables that do not exist are
/// not returned.
fn missing_permissions(needed: NeededPermissions) -> String {
    let tables = needed.tables();
    let rows = tables.iter().flat_map(|(table, permissions)| {
        let numbered = permissions.iter().enumerate();
        numbered.map(move |(number, permission)| format!("('{table}', '{permission}', {number})"))
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "SELECT name, string_agg(permission, ', ' ORDER BY number) \
         FROM (VALUES {}) AS needed (name, permission, number) \
         WHERE CASE permission WHEN '{USAGE}' \
           THEN NOT has_sequence_privilege(to_regclass(name), permission) \
           ELSE NOT has_table_privilege(to_regclass(name), permission) END \
         GROUP BY name ORDER BY name",
        rows.join(", ")
    )
}
