//! Migrations of the schema, when a database is opened.
#![allow(clippy::disallowed_methods)] // Before there are accounts.

use std::time::{SystemTime, UNIX_EPOCH};

use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    EntityTrait, Schema, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait,
};
use uuid::Uuid;

use super::{
    OpenError,
    open_error::INCOMPLETE,
    postgres_server::{check_permissions, migration_permissions},
};
use crate::{
    config::TableLayout,
    domain::sha256::Sha256,
    store::{
        WriteMode, account,
        entity::{applied_migration, server_key},
        schema::{self, MIGRATIONS},
    },
};

/// The name of the digest of the schema, in `server_keys`.
const SCHEMA_DIGEST: &str = "schema";
/// The name of the secret that signs page tokens, in `server_keys`.
const PAGE_KEY: &str = "page_token";
/// The name of the row of `server_keys` that exists while another database is copied into this one.
const UNFINISHED_COPY: &str = "unfinished_copy";

/// Key of the PostgreSQL advisory lock that a server holds while it migrates.
const MIGRATION_LOCK: i64 = 0x6578_7065_7274_6973;

const UNKNOWN_SCHEMA: &str = "the database has a schema that this version does not know: run the \
    version that created it, or set EXPERTISE_DATABASE_URL to another database";

/// What opening a database did to its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    Current,
    /// The database had no schema.
    Created,
    Migrated,
}

/// Creates a missing schema in a layout, or migrates an old one. Without `migrate`, fails if the
/// schema is missing or old. With [`WriteMode::ValidateOnly`], a missing schema is created and
/// rolled back to check that this works, and an old schema is not changed.
pub async fn prepare_schema(
    db: &DatabaseConnection,
    migrate: bool,
    layout: TableLayout,
    mode: WriteMode,
) -> Result<SchemaChange, OpenError> {
    if layout == TableLayout::Distributed {
        check_distributable(db).await?;
    }
    let change = needed_change(db, migrate).await?;
    let is_run = change == SchemaChange::Created || mode == WriteMode::Store;
    if change == SchemaChange::Current || !is_run {
        return Ok(change);
    }
    let transaction = begin_migrations(db).await?;
    let applied = count_applied(&transaction).await?;
    let distributes = layout == TableLayout::Distributed || is_distributed(&transaction).await?;
    apply_migrations(&transaction, applied).await?;
    if distributes {
        distribute_tables(&transaction).await?;
    }
    write_keys(&transaction).await?;
    match mode {
        WriteMode::Store => transaction.commit().await?,
        WriteMode::ValidateOnly => transaction.rollback().await?,
    }
    Ok(match applied {
        // Another server has migrated meanwhile.
        applied if applied == MIGRATIONS.len() => SchemaChange::Current,
        _ => change,
    })
}

/// What [`prepare_schema`] has to do, unless it refuses the schema.
async fn needed_change(db: &DatabaseConnection, migrate: bool) -> Result<SchemaChange, OpenError> {
    // One transaction reads the migrations and the digest, because another server may migrate meanwhile.
    let transaction = account::begin_snapshot(db).await?;
    if transaction.get_database_backend() == DbBackend::Postgres {
        check_permissions(&transaction, migration_permissions()).await?;
    }
    let applied = count_applied(&transaction).await?;
    if applied > 0 {
        check_keys(&transaction, applied).await?;
    }
    transaction.rollback().await?;
    match MIGRATIONS.len() - applied {
        0 => Ok(SchemaChange::Current),
        _ if migrate && applied == 0 => Ok(SchemaChange::Created),
        _ if migrate => Ok(SchemaChange::Migrated),
        _ if applied == 0 => Err(OpenError::unusable(
            "the database is empty: run `expertise migrate`, or set EXPERTISE_MIGRATE=true",
        )),
        pending => Err(OpenError::unusable(format!(
            "the database schema is older than this version (missing migrations: {pending}): run \
             `expertise migrate`, or set EXPERTISE_MIGRATE=true"
        ))),
    }
}

/// The number of migrations that the database has. Fails if it has one that this version does not know.
async fn count_applied(db: &DatabaseTransaction) -> Result<usize, OpenError> {
    let table = match db.get_database_backend() {
        DbBackend::Sqlite => "SELECT 1 FROM sqlite_master WHERE name = 'seaql_migrations'",
        _ => {
            "SELECT 1 FROM pg_tables \
             WHERE schemaname = current_schema() AND tablename = 'seaql_migrations'"
        }
    };
    if !has_row(db, table).await? {
        return Ok(0);
    }
    let applied = applied_migration::Entity::find().all(db).await?;
    let mut applied: Vec<_> = applied.iter().map(|row| row.version.as_str()).collect();
    applied.sort_unstable();
    let known = MIGRATIONS.map(|migration| migration.name);
    if !known.starts_with(&applied) {
        return Err(OpenError::unusable(UNKNOWN_SCHEMA));
    }
    Ok(applied.len())
}

/// Applies the migrations after the first `applied`, and records them.
async fn apply_migrations(db: &DatabaseTransaction, applied: usize) -> Result<(), DbErr> {
    let backend = db.get_database_backend();
    let mut table = Schema::new(backend).create_table_from_entity(applied_migration::Entity);
    db.execute(table.if_not_exists()).await?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.unwrap_or_default().as_secs().cast_signed();
    for migration in MIGRATIONS.iter().skip(applied) {
        for statement in (migration.statements)(backend) {
            db.execute_unprepared(&statement).await?;
        }
        let record = applied_migration::ActiveModel {
            version: Set(migration.name.to_owned()),
            applied_at: Set(now),
        };
        applied_migration::Entity::insert(record)
            .exec_without_returning(db)
            .await?;
    }
    Ok(())
}

/// Checks that no copy is unfinished, and that the schema is what the first `migrations` migrations of
/// this version create. A later check reports a database without any keys.
async fn check_keys(db: &DatabaseTransaction, migrations: usize) -> Result<(), OpenError> {
    let keys = server_key::Entity::find().all(db).await?;
    let find = |name| keys.iter().find(|key| key.name == name);
    if find(UNFINISHED_COPY).is_some() {
        return Err(OpenError::unusable(
            "EXPERTISE_DATABASE_URL names a database with an unfinished copy, which has only part \
             of the data: copy into a new database",
        ));
    }
    match find(SCHEMA_DIGEST) {
        Some(digest) if digest.value == schema::digest(migrations) => Ok(()),
        None if keys.is_empty() => Ok(()),
        _ => Err(OpenError::unusable(UNKNOWN_SCHEMA)),
    }
}

/// Begins the transaction of migrations. When several servers start together, one migrates while the
/// others wait here.
async fn begin_migrations(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = db.begin_with_options(options).await?;
    if transaction.get_database_backend() == DbBackend::Postgres {
        // Migrations of another server may take longer than `lock_timeout`.
        let lock =
            format!("SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction.execute_unprepared(&lock).await?;
    }
    Ok(transaction)
}

/// Stores the digest of this version's schema, and the secret of page tokens if there is none.
async fn write_keys(db: &DatabaseTransaction) -> Result<(), DbErr> {
    let digest = schema::digest(MIGRATIONS.len());
    let secret: [u8; 32] = Sha256::default()
        .with(Uuid::new_v4())
        .with(Uuid::new_v4())
        .finish();
    server_key::Entity::delete_by_id(SCHEMA_DIGEST)
        .exec(db)
        .await?;
    for (name, value) in [(SCHEMA_DIGEST, digest), (PAGE_KEY, secret)] {
        server_key::Entity::insert(key(name, value.to_vec()))
            .on_conflict_do_nothing()
            .exec_without_returning(db)
            .await?;
    }
    Ok(())
}

fn key(name: &str, value: Vec<u8>) -> server_key::ActiveModel {
    server_key::ActiveModel {
        name: Set(name.to_owned()),
        value: Set(value),
    }
}

pub async fn page_key(db: &DatabaseConnection) -> Result<[u8; 32], OpenError> {
    let key = server_key::Entity::find_by_id(PAGE_KEY).one(db).await?;
    key.and_then(|key| key.value.try_into().ok())
        .ok_or_else(|| {
            OpenError::schema(format!(
                "the table server_keys has no valid key: {INCOMPLETE}"
            ))
        })
}

/// Marks the database so that no program opens it until the copied keys replace the mark. Fails if
/// another copy has marked it.
pub async fn mark_unfinished_copy(db: &DatabaseConnection) -> Result<(), DbErr> {
    let mark = server_key::Entity::insert(key(UNFINISHED_COPY, Vec::new()));
    mark.exec_without_returning(db).await.map(drop)
}

/// Fails if Citus cannot distribute the tables of the database.
async fn check_distributable(db: &DatabaseConnection) -> Result<(), OpenError> {
    if !has_citus(db).await? {
        return Err(OpenError::unusable(
            "--distribute needs Citus in this database: run CREATE EXTENSION citus there, or leave \
             out --distribute",
        ));
    }
    const ANY_TABLE: &str = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() LIMIT 1";
    if has_row(db, ANY_TABLE).await? && !is_distributed(db).await? {
        return Err(OpenError::unusable(
            "--distribute is for an empty database, and this one has tables that were created \
             without it: use an empty database, or leave out --distribute",
        ));
    }
    Ok(())
}

/// Whether Citus distributes the tables of account data.
pub async fn is_distributed(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    // The catalog table of Citus exists only if Citus is installed.
    Ok(has_citus(db).await? && is_table_distributed(db, "tasks").await?)
}

async fn is_table_distributed(db: &impl ConnectionTrait, name: &str) -> Result<bool, DbErr> {
    let sql = format!(
        "SELECT 1 FROM pg_dist_partition \
         WHERE logicalrelid = to_regclass(quote_ident(current_schema()) || '.{name}')"
    );
    has_row(db, &sql).await
}

async fn has_citus(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    let is_postgres = db.get_database_backend() == DbBackend::Postgres;
    Ok(is_postgres && has_row(db, "SELECT 1 FROM pg_extension WHERE extname = 'citus'").await?)
}

async fn has_row(db: &impl ConnectionTrait, sql: &str) -> Result<bool, DbErr> {
    let query = Statement::from_string(db.get_database_backend(), sql);
    Ok(db.query_one_raw(query).await?.is_some())
}

/// Distributes the tables that Citus does not distribute yet. All rows of an account are on one
/// node, and the server keys are on every node. Referenced tables come first.
async fn distribute_tables(db: &DatabaseTransaction) -> Result<(), DbErr> {
    for table in schema::tables() {
        let name = table.name;
        let distribute = match (table.belongs_to_accounts, name) {
            _ if is_table_distributed(db, name).await? => continue,
            (false, _) => format!("create_reference_table('{name}')"),
            (true, "accounts") => format!("create_distributed_table('{name}', 'account_id')"),
            (true, _) => format!(
                "create_distributed_table('{name}', 'account_id', colocate_with => 'accounts')"
            ),
        };
        db.execute_unprepared(&format!("SELECT {distribute}"))
            .await?;
    }
    Ok(())
}
