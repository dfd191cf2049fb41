//! The first schema. Names are written out, as later changes of the entities must not
//! change this migration.

use sea_orm_migration::{
    prelude::*,
    sea_orm::{DbBackend, Statement},
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{PARTITIONS, SchemaTable};

pub struct Migration;

/// The name of the key that signs page tokens, in `server_keys`.
const PAGE_KEY: &str = "page_token";

/// All tables. `{text}` is text that is compared byte by byte; `{uuid}` and `{bytes}` are
/// types that differ between the databases. `{by_key}` has SQLite store rows in the key only.
const TABLES: [&str; 10] = [
    "CREATE TABLE accounts (
        account_id {text} NOT NULL PRIMARY KEY,
        last_role_id bigint NOT NULL
    )",
    "CREATE TABLE server_keys (
        name {text} NOT NULL PRIMARY KEY,
        value {bytes} NOT NULL
    )",
    "CREATE TABLE roles (
        account_id {text} NOT NULL,
        id bigint NOT NULL,
        name text NOT NULL,
        PRIMARY KEY (account_id, id)
    )",
    "CREATE TABLE request_outcomes (
        account_id {text} NOT NULL,
        request_id {uuid} NOT NULL,
        digest {bytes} NOT NULL,
        outcome {bytes} NOT NULL,
        created_ts bigint NOT NULL,
        PRIMARY KEY (account_id, request_id)
    )",
    "CREATE TABLE tasks (
        account_id {text} NOT NULL,
        guid {uuid} NOT NULL,
        name text NOT NULL,
        product_id bigint NOT NULL,
        kind integer NOT NULL,
        published integer NOT NULL,
        roles text NOT NULL,
        role_bits integer NOT NULL,
        dependencies text,
        parent_guid {uuid},
        idx integer NOT NULL,
        step_count bigint NOT NULL,
        last_position bigint NOT NULL,
        order_epoch bigint NOT NULL,
        size bigint NOT NULL,
        language_count bigint NOT NULL,
        version bigint NOT NULL,
        dirty_record boolean NOT NULL,
        mvn_indexed boolean NOT NULL,
        mvn_version bigint NOT NULL,
        mvn_info text NOT NULL,
        mvn_ts bigint,
        created_ts bigint NOT NULL,
        modified_ts bigint NOT NULL,
        PRIMARY KEY (account_id, guid),
        CONSTRAINT tasks_parent FOREIGN KEY (account_id, parent_guid)
            REFERENCES tasks (account_id, guid)
    )",
    "CREATE TABLE task_translations (
        account_id {text} NOT NULL,
        task {uuid} NOT NULL,
        language {text} NOT NULL,
        locked boolean NOT NULL,
        name text,
        made_name text NOT NULL,
        PRIMARY KEY (account_id, task, language),
        CONSTRAINT task_translations_task FOREIGN KEY (account_id, task)
            REFERENCES tasks (account_id, guid) ON DELETE CASCADE
    )",
    // The body comes last, so that SQLite reads the other columns without reading it. A link is
    // the subtask, whose foreign key it shares.
    "CREATE TABLE steps (
        account_id {text} NOT NULL,
        guid {uuid} NOT NULL,
        task {uuid} NOT NULL,
        position bigint NOT NULL,
        fraction {bytes} NOT NULL,
        kind integer NOT NULL,
        product_id bigint NOT NULL,
        title text NOT NULL,
        cost integer NOT NULL,
        published integer NOT NULL,
        dependencies text,
        feedback_config text,
        instructions text,
        looping text,
        parts text,
        skills text,
        tags text,
        subtask_id {uuid},
        subtask_pid bigint,
        link {uuid},
        r_data text,
        size bigint NOT NULL,
        body_size bigint NOT NULL,
        rest_digest {bytes} NOT NULL,
        language_count bigint NOT NULL,
        version bigint NOT NULL,
        dirty_record boolean NOT NULL,
        created_ts bigint NOT NULL,
        modified_ts bigint NOT NULL,
        body text,
        PRIMARY KEY (account_id, guid),
        CONSTRAINT steps_task FOREIGN KEY (account_id, task)
            REFERENCES tasks (account_id, guid),
        CONSTRAINT steps_subtask FOREIGN KEY (account_id, subtask_id)
            REFERENCES tasks (account_id, guid),
        CONSTRAINT steps_link CHECK
            (link IS NULL OR (link = subtask_id AND subtask_id IS NOT NULL))
    )",
    "CREATE TABLE step_translations (
        account_id {text} NOT NULL,
        step {uuid} NOT NULL,
        language {text} NOT NULL,
        locked boolean NOT NULL,
        title text,
        instructions text,
        feedback_config text,
        made_title text NOT NULL,
        made_rest {bytes} NOT NULL,
        body text,
        PRIMARY KEY (account_id, step, language),
        CONSTRAINT step_translations_step FOREIGN KEY (account_id, step)
            REFERENCES steps (account_id, guid) ON DELETE CASCADE
    )",
    // Without foreign keys, which PostgreSQL checks row by row: the write that deletes a task or
    // step deletes its rows.
    "CREATE TABLE task_symbols (
        account_id {text} NOT NULL,
        symbol {bytes} NOT NULL,
        role integer NOT NULL,
        task {uuid} NOT NULL,
        PRIMARY KEY (account_id, symbol, role, task)
    ){by_key}",
    "CREATE TABLE step_symbols (
        account_id {text} NOT NULL,
        symbol {bytes} NOT NULL,
        role integer NOT NULL,
        step {uuid} NOT NULL,
        PRIMARY KEY (account_id, symbol, role, step)
    ){by_key}",
];

/// All indexes. All but the last are partial, on a column that their queries compare.
///
/// Without statistics, PostgreSQL prefers a newer index that begins with `account_id` to
/// the primary key, even to find a row by its id. It uses a partial index only for queries
/// that compare the index's column.
const INDEXES: [&str; 8] = [
    "CREATE INDEX tasks_product ON tasks (account_id, product_id, guid)
     WHERE product_id IS NOT NULL",
    "CREATE INDEX tasks_parent_guid ON tasks (account_id, parent_guid)
     WHERE parent_guid IS NOT NULL",
    // It holds the id, so that the list of a task's steps is read without their rows.
    "CREATE INDEX steps_order ON steps (account_id, task, position, fraction, guid)
     WHERE task IS NOT NULL",
    "CREATE INDEX steps_subtask_id ON steps (account_id, subtask_id, guid)
     WHERE subtask_id IS NOT NULL",
    "CREATE INDEX steps_link_task ON steps (account_id, link)
     WHERE link IS NOT NULL",
    "CREATE INDEX task_symbols_task ON task_symbols (account_id, task)
     WHERE task IS NOT NULL",
    "CREATE INDEX step_symbols_step ON step_symbols (account_id, step)
     WHERE step IS NOT NULL",
    "CREATE INDEX request_outcomes_age ON request_outcomes (account_id, created_ts)",
];

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0001"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        let (text, uuid, bytes, by_key) = match manager.get_database_backend() {
            // SQLite compares text byte by byte by default. WITHOUT ROWID stores narrow rows
            // in the primary key only.
            DbBackend::Sqlite => ("text", "uuid_text", "blob", " WITHOUT ROWID"),
            _ => ("text COLLATE \"C\"", "uuid", "bytea", ""),
        };
        let partitions = PARTITIONS.try_with(|partitions| *partitions).unwrap_or(0);
        for table in TABLES {
            let table = table
                .replace("{text}", text)
                .replace("{uuid}", uuid)
                .replace("{bytes}", bytes)
                .replace("{by_key}", by_key);
            for statement in partitioned(table, partitions) {
                db.execute_unprepared(&statement).await?;
            }
        }
        for index in INDEXES {
            db.execute_unprepared(index).await?;
        }
        let insert = "INSERT INTO server_keys (name, value) VALUES ($1, $2)";
        let values = [PAGE_KEY.into(), secret().into()];
        let backend = manager.get_database_backend();
        db.execute_raw(Statement::from_sql_and_values(backend, insert, values))
            .await?;
        Ok(())
    }

    async fn down(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Err(DbErr::Migration(
            "the first schema cannot be undone: restore a backup".to_owned(),
        ))
    }
}

/// The tables that it creates.
pub fn tables() -> impl Iterator<Item = SchemaTable> {
    TABLES.iter().map(|table| SchemaTable {
        name: table_name(table),
        is_of_accounts: is_of_accounts(table),
    })
}

/// The name of a table by the statement that creates it.
fn table_name(table: &str) -> &str {
    table.split_whitespace().nth(2).unwrap_or_default()
}

fn is_of_accounts(table: &str) -> bool {
    table.contains("account_id")
}

/// The statements that create a table. A table of account data has partitions, unless
/// their number is 0.
fn partitioned(table: String, partitions: u16) -> Vec<String> {
    let name = table_name(&table);
    if partitions == 0 || !is_of_accounts(&table) {
        return vec![table];
    }
    let part = |number| {
        format!(
            "CREATE TABLE {name}_p{number} PARTITION OF {name} \
             FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
        )
    };
    let parts: Vec<String> = (0..partitions).map(part).collect();
    let whole = format!("{table} PARTITION BY HASH (account_id)");
    [vec![whole], parts].concat()
}

/// 32 random bytes.
fn secret() -> Vec<u8> {
    Sha256::new()
        .chain_update(Uuid::new_v4())
        .chain_update(Uuid::new_v4())
        .finalize()
        .to_vec()
}
