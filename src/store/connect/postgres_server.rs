//! Checks of the PostgreSQL server: its version, the encoding of the database, and the permissions of
//! the user.

use sea_orm::{ConnectionTrait, DbBackend, FromQueryResult, Statement};
use tracing::warn;

use super::OpenError;
use crate::store::schema;

/// The minimum `server_version_num`.
const MIN_VERSION: i32 = 120_000;
/// PostgreSQL's name of the required encoding.
const ENCODING: &str = "UTF8";

#[derive(FromQueryResult)]
struct Server {
    version_number: i32,
    version: String,
    encoding: String,
    has_schema: bool,
    is_standby: bool,
    is_read_only: bool,
}

const SERVER: &str = "SELECT current_setting('server_version_num')::int AS version_number, \
    current_setting('server_version') AS version, current_setting('server_encoding') AS encoding, \
    current_schema() IS NOT NULL AS has_schema, pg_is_in_recovery() AS is_standby, \
    current_setting('transaction_read_only') = 'on' AS is_read_only";

/// Fails if the server is too old, if the database has an encoding that cannot store every text, or if
/// the user may use no schema. Logs a warning if calls are served and writes will be refused.
pub async fn check_server(db: &impl ConnectionTrait, serves: bool) -> Result<(), OpenError> {
    let query = Statement::from_string(DbBackend::Postgres, SERVER);
    let Some(server) = Server::find_by_statement(query).one(db).await? else {
        return Ok(());
    };
    if server.version_number < MIN_VERSION {
        return Err(OpenError::unusable(format!(
            "PostgreSQL {} is too old: use version 12 or later",
            server.version
        )));
    }
    if server.encoding != ENCODING {
        return Err(OpenError::unusable(format!(
            "the database has the encoding {}, which cannot store every text: create one with \
             `CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`, and set EXPERTISE_DATABASE_URL \
             to it",
            server.encoding
        )));
    }
    if !server.has_schema {
        return Err(OpenError::schema(
            "the user can use no schema of its search_path: create one, or grant USAGE on a schema to the user",
        ));
    }
    if serves && server.is_standby {
        warn!(
            "the database is a standby, so writes are refused until it is promoted: this is right \
             for a server of the read fleet; otherwise set EXPERTISE_DATABASE_URL to the primary"
        );
    } else if serves && server.is_read_only {
        warn!(
            "the database is read-only, so writes are refused: check default_transaction_read_only"
        );
    }
    Ok(())
}

/// A permission on a table or sequence, as in a GRANT.
type Permission = (&'static str, &'static str);

/// The permissions to read the list of applied migrations and the digest of their schema.
/// PostgreSQL hides tables from users without permissions, so an unreadable table would look like a
/// missing one.
pub fn migration_permissions() -> Vec<Permission> {
    vec![("seaql_migrations", "SELECT"), ("server_keys", "SELECT")]
}

/// The permissions to read all tables, and to change the tables of accounts.
pub fn serving_permissions() -> Vec<Permission> {
    let mut needed = vec![(schema::CHANGES_SEQUENCE, "USAGE")];
    for table in schema::tables() {
        needed.push((table.name, "SELECT"));
        if table.belongs_to_accounts {
            needed.extend(["INSERT", "UPDATE", "DELETE"].map(|change| (table.name, change)));
        }
    }
    needed
}

/// Fails if the user lacks one of these permissions on a table or sequence that exists.
pub async fn check_permissions(
    db: &impl ConnectionTrait,
    needed: Vec<Permission>,
) -> Result<(), OpenError> {
    let rows = needed
        .iter()
        .enumerate()
        .map(|(number, (name, permission))| format!("('{name}', '{permission}', {number})"))
        .collect::<Vec<_>>()
        .join(", ");
    // Groups tables by their missing permissions, which are written as in a GRANT.
    let missing = format!(
        "SELECT permissions || ' on ' || string_agg(name, ', ' ORDER BY name) FROM ( \
           SELECT name, string_agg(permission, ', ' ORDER BY number) AS permissions \
           FROM (VALUES {rows}) AS needed (name, permission, number) \
           WHERE CASE permission WHEN 'USAGE' \
             THEN NOT has_sequence_privilege(to_regclass(name), permission) \
             ELSE NOT has_table_privilege(to_regclass(name), permission) END \
           GROUP BY name) AS missing \
         GROUP BY permissions ORDER BY permissions"
    );
    let missing = Statement::from_string(DbBackend::Postgres, missing);
    let missing: Vec<String> = db
        .query_all_raw(missing)
        .await?
        .iter()
        .map(|row| row.try_get_by_index(0))
        .collect::<Result<_, _>>()?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(OpenError::unusable(format!(
        "the user of EXPERTISE_DATABASE_URL lacks permissions: grant it {}",
        missing.join("; ")
    )))
}
