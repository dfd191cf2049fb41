//! Migrations of the schema, when a database is opened.
#![allow(clippy::disallowed_methods)] // Before there are accounts.

use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    EntityTrait, IsolationLevel, SqliteTransactionMode, Statement, TransactionOptions,
    TransactionTrait, sea_query::OnConflict,
};
use sea_orm_migration::MigratorTrait;

use super::{
    OpenError, message,
    postgres_server::{NeededPermissions, check_permissions},
};
use crate::{
    config::TableLayout,
    store::{
        entity::server_key,
        schema::{self, Migrator, with_layout},
    },
};

/// The name of the digest of the schema, in `server_keys`.
const SCHEMA_DIGEST: &str = "schema";
/// The name of the row of `server_keys` that exists while another database is copied into this one.
const UNFINISHED_COPY: &str = "unfinished_copy";

/// Key of the PostgreSQL advisory lock that a server holds while it migrates.
const MIGRATION_LOCK: i64 = 0x6578_7065_7274_6973;

/// What opening a database has done to its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChange {
    /// Nothing: it was current.
    Current,
    /// The database had none.
    Created,
    /// It was brought up to date.
    Migrated,
}

/// What to do with a schema of an earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldSchemaPolicy {
    /// Bring it up to date.
    Migrate,
    /// Fail.
    Refuse,
}

impl OldSchemaPolicy {
    /// What the setting `migrate` says.
    pub fn for_setting(migrate: bool) -> Self {
        match migrate {
            true => Self::Migrate,
            false => Self::Refuse,
        }
    }
}

/// Creates a missing schema. Brings an old one up to date, or refuses it.
pub async fn prepare_schema(
    db: &DatabaseConnection,
    old: OldSchemaPolicy,
) -> Result<SchemaChange, OpenError> {
    let change = needed_change(db, old).await?;
    if change == SchemaChange::Current {
        return Ok(change);
    }
    let (transaction, migrations) = run_migrations(db).await?;
    let committed = transaction.commit().await;
    committed.map_err(|err| message::schema_error(&err))?;
    Ok(match migrations {
        // Another server has migrated meanwhile.
        0 => SchemaChange::Current,
        _ => change,
    })
}

/// What [`prepare_schema`] would do. A missing schema is created and rolled back, to check that this
/// works.
pub async fn check_schema(
    db: &DatabaseConnection,
    old: OldSchemaPolicy,
) -> Result<SchemaChange, OpenError> {
    let change = needed_change(db, old).await?;
    if change == SchemaChange::Created {
        let (transaction, _) = run_migrations(db).await?;
        let rolled_back = transaction.rollback().await;
        rolled_back.map_err(|err| message::schema_error(&err))?;
    }
    Ok(change)
}

async fn needed_change(
    db: &DatabaseConnection,
    old: OldSchemaPolicy,
) -> Result<SchemaChange, OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    // One transaction reads the migrations and the digest, because another server may migrate meanwhile.
    let is_postgres = db.get_database_backend() == DbBackend::Postgres;
    let transaction = db.begin_with_options(TransactionOptions {
        isolation_level: is_postgres.then_some(IsolationLevel::RepeatableRead),
        ..TransactionOptions::default()
    });
    let transaction = transaction.await.map_err(failed)?;
    if transaction.get_database_backend() == DbBackend::Postgres {
        check_permissions(&transaction, NeededPermissions::Migrations).await?;
    }
    let all = Migrator::migrations().len();
    let pending = match pending_migrations(&transaction).await {
        Ok(pending) => pending,
        // The database has migrations that this version does not know.
        Err(DbErr::Custom(_)) => return Err(OpenError::UnknownSchema),
        Err(err) => return Err(failed(err)),
    };
    let is_empty = pending == all;
    if !is_empty {
        let keys = server_key::Entity::find().all(&transaction).await;
        check_keys(&keys.map_err(failed)?, all - pending)?;
    }
    transaction.rollback().await.map_err(failed)?;
    if pending == 0 {
        return Ok(SchemaChange::Current);
    }
    match old {
        OldSchemaPolicy::Refuse if is_empty => Err(OpenError::NoSchema),
        OldSchemaPolicy::Refuse => Err(OpenError::OldSchema { pending }),
        OldSchemaPolicy::Migrate if is_empty => Ok(SchemaChange::Created),
        OldSchemaPolicy::Migrate => Ok(SchemaChange::Migrated),
    }
}

/// Runs the missing migrations. New tables get the layout of the existing ones. Returns the open
/// transaction, and the number of these migrations.
async fn run_migrations(
    db: &DatabaseConnection,
) -> Result<(DatabaseTransaction, usize), OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let transaction = begin_migrations(db).await.map_err(failed)?;
    let pending = pending_migrations(&transaction).await.map_err(failed)?;
    let layout = layout_of_tables(&transaction).await.map_err(failed)?;
    let migrated = migrate(&transaction, layout.unwrap_or_default()).await;
    migrated.map_err(failed)?;
    Ok((transaction, pending))
}

/// Runs the missing migrations in a layout, and stores the digest.
async fn migrate(transaction: &DatabaseTransaction, layout: TableLayout) -> Result<(), DbErr> {
    with_layout(layout, Migrator::up(transaction, None)).await?;
    write_digest(transaction).await
}

/// Stores the digest of this version's schema.
async fn write_digest(db: &DatabaseTransaction) -> Result<(), DbErr> {
    let digest = server_key::ActiveModel {
        name: Set(SCHEMA_DIGEST.to_owned()),
        value: Set(schema::digest(Migrator::migrations().len()).to_vec()),
    };
    let replace = OnConflict::column(server_key::Column::Name)
        .update_column(server_key::Column::Value)
        .to_owned();
    let insert = server_key::Entity::insert(digest).on_conflict(replace);
    insert.exec_without_returning(db).await.map(drop)
}

/// Checks that no copy is unfinished, and that the schema is what the first `migrations` migrations of
/// this version create. A later check reports a database without any keys.
fn check_keys(keys: &[server_key::Model], migrations: usize) -> Result<(), OpenError> {
    let find = |name| keys.iter().find(|key| key.name == name);
    if find(UNFINISHED_COPY).is_some() {
        return Err(OpenError::UnfinishedCopy);
    }
    let expected = schema::digest(migrations);
    let is_known = find(SCHEMA_DIGEST).map_or(keys.is_empty(), |digest| digest.value == expected);
    is_known.then_some(()).ok_or(OpenError::UnknownSchema)
}

/// Marks the database, so that no program opens it until the copied keys replace the mark.
pub async fn mark_unfinished_copy(db: &DatabaseConnection) -> Result<(), DbErr> {
    let mark = server_key::ActiveModel {
        name: Set(UNFINISHED_COPY.to_owned()),
        value: Set(Vec::new()),
    };
    let insert = server_key::Entity::insert(mark);
    insert.exec_without_returning(db).await.map(drop)
}

/// Creates the schema with distributed tables, or brings such a schema up to date. Refuses tables
/// that are not distributed.
pub async fn prepare_distributed_schema(
    db: &DatabaseConnection,
) -> Result<SchemaChange, OpenError> {
    let failed = |err: DbErr| message::schema_error(&err);
    let transaction = begin_migrations(db).await.map_err(failed)?;
    if !has_citus(&transaction).await.map_err(failed)? {
        return Err(OpenError::NoCitus);
    }
    match layout_of_tables(&transaction).await.map_err(failed)? {
        None => {
            let migrated = migrate(&transaction, TableLayout::Distributed).await;
            migrated.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            Ok(SchemaChange::Created)
        }
        Some(TableLayout::Distributed) => {
            transaction.rollback().await.map_err(failed)?;
            prepare_schema(db, OldSchemaPolicy::Migrate).await
        }
        Some(TableLayout::Plain) => Err(OpenError::NotDistributed),
    }
}

/// Whether the tables of a database are distributed.
pub async fn is_distributed(db: &DatabaseConnection) -> Result<bool, OpenError> {
    let layout = layout_of_tables(db).await;
    let layout = layout.map_err(|err| message::schema_error(&err))?;
    Ok(layout == Some(TableLayout::Distributed))
}

async fn has_citus(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    const CITUS: &str = "SELECT 1 FROM pg_extension WHERE extname = 'citus'";
    let statement = Statement::from_string(DbBackend::Postgres, CITUS);
    Ok(db.query_one_raw(statement).await?.is_some())
}

/// The layout of the table of tasks, which all tables of account data share. `None` if there is no
/// table, and on SQLite.
async fn layout_of_tables(db: &impl ConnectionTrait) -> Result<Option<TableLayout>, DbErr> {
    if db.get_database_backend() == DbBackend::Sqlite {
        return Ok(None);
    }
    // The table of Citus is there only if Citus is.
    let distributed = match has_citus(db).await? {
        true => "EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = tasks.oid)",
        false => "false",
    };
    let layout = format!(
        "SELECT {distributed} AS distributed FROM pg_tables, \
         (SELECT to_regclass(quote_ident(current_schema()) || '.tasks') AS oid) AS tasks \
         WHERE schemaname = current_schema() LIMIT 1"
    );
    let statement = Statement::from_string(DbBackend::Postgres, layout);
    let Some(row) = db.query_one_raw(statement).await? else {
        return Ok(None);
    };
    Ok(Some(match row.try_get("", "distributed")? {
        true => TableLayout::Distributed,
        false => TableLayout::Plain,
    }))
}

/// Begins the transaction of migrations. When several servers start together, one migrates while the
/// others wait here.
async fn begin_migrations(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let transaction = db.begin_with_options(TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    });
    let transaction = transaction.await?;
    if transaction.get_database_backend() == DbBackend::Postgres {
        // Migrations of another server may take longer than `lock_timeout`.
        let lock =
            format!("SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction.execute_unprepared(&lock).await?;
    }
    Ok(transaction)
}

/// The number of migrations that the database lacks.
async fn pending_migrations(db: &DatabaseTransaction) -> Result<usize, DbErr> {
    let pending = Migrator::get_pending_migrations_read_only(db).await?;
    Ok(pending.len())
}
