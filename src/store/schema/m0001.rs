//! The first schema. Names are written out, because later changes of the entities must not change
//! this migration.

use sea_orm::DbBackend;

use super::{Migration, SchemaTable};

pub const MIGRATION: Migration = Migration {
    name: "m0001",
    templates: &[&TABLES, &INDEXES],
    statements,
};

/// All tables. `{text}` is text that is compared byte by byte; `{uuid}` and `{bytes}` are types that
/// differ between the databases. `{seq}` is an increasing number that the database draws. `{seq_key}` is
/// the primary key that contains it; on SQLite `{seq}` alone is the key. `{by_key}` makes SQLite store
/// rows only in the primary key.
const TABLES: [&str; 17] = [
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
        role_bits integer NOT NULL,
        external_id {text},
        parent_guid {uuid},
        idx integer NOT NULL,
        step_count bigint NOT NULL,
        last_position bigint NOT NULL,
        order_epoch bigint NOT NULL,
        size bigint NOT NULL,
        language_count bigint NOT NULL,
        version bigint NOT NULL,
        dirty_record boolean NOT NULL,
        listed boolean NOT NULL DEFAULT false,
        mvn_indexed boolean NOT NULL,
        mvn_version bigint NOT NULL,
        mvn_info text NOT NULL,
        mvn_ts bigint,
        created_ts bigint NOT NULL,
        modified_ts bigint NOT NULL,
        kept_ts bigint NOT NULL DEFAULT 0,
        content text NOT NULL,
        PRIMARY KEY (account_id, guid),
        CONSTRAINT tasks_parent_guid_fkey FOREIGN KEY (account_id, parent_guid)
            REFERENCES tasks (account_id, guid)
    )",
    "CREATE TABLE task_translations (
        account_id {text} NOT NULL,
        task {uuid} NOT NULL,
        language {text} NOT NULL,
        locked boolean NOT NULL,
        name text,
        translated_from_name text NOT NULL,
        PRIMARY KEY (account_id, task, language),
        CONSTRAINT task_translations_task_fkey FOREIGN KEY (account_id, task)
            REFERENCES tasks (account_id, guid) ON DELETE CASCADE
    )",
    // The body comes last, so that SQLite reads the other columns without reading it. The managed
    // task of a wiring step is always its subtask, so the flag `is_link` is enough. A second id
    // would need a CHECK that both are equal, which PostgreSQL would parse for each statement.
    "CREATE TABLE steps (
        account_id {text} NOT NULL,
        guid {uuid} NOT NULL,
        task {uuid} NOT NULL,
        position bigint NOT NULL,
        kind integer NOT NULL,
        product_id bigint NOT NULL,
        title text NOT NULL,
        external_id {text},
        published integer NOT NULL,
        subtask_id {uuid},
        subtask_pid bigint,
        subtask_external_id {text},
        is_link boolean NOT NULL,
        manages_tasks boolean NOT NULL,
        size bigint NOT NULL,
        body_size bigint NOT NULL,
        rest_digest {bytes} NOT NULL,
        language_count bigint NOT NULL,
        version bigint NOT NULL,
        dirty_record boolean NOT NULL,
        listed boolean NOT NULL DEFAULT false,
        indexed boolean NOT NULL DEFAULT false,
        created_ts bigint NOT NULL,
        modified_ts bigint NOT NULL,
        content text NOT NULL,
        body text,
        PRIMARY KEY (account_id, guid),
        CONSTRAINT steps_task_fkey FOREIGN KEY (account_id, task)
            REFERENCES tasks (account_id, guid),
        CONSTRAINT steps_subtask_id_fkey FOREIGN KEY (account_id, subtask_id)
            REFERENCES tasks (account_id, guid)
    )",
    "CREATE TABLE step_translations (
        account_id {text} NOT NULL,
        step {uuid} NOT NULL,
        language {text} NOT NULL,
        locked boolean NOT NULL,
        content text NOT NULL,
        translated_from_title text NOT NULL,
        translated_from_rest {bytes} NOT NULL,
        body text,
        PRIMARY KEY (account_id, step, language),
        CONSTRAINT step_translations_step_fkey FOREIGN KEY (account_id, step)
            REFERENCES steps (account_id, guid) ON DELETE CASCADE
    )",
    // No foreign keys, because PostgreSQL checks them row by row. The write that deletes a task or
    // step also deletes its rows here.
    "CREATE TABLE name_uses (
        account_id {text} NOT NULL,
        name {text} NOT NULL,
        name_use smallint NOT NULL,
        guid {uuid} NOT NULL,
        PRIMARY KEY (account_id, name, name_use, guid)
    ){by_key}",
    // The columns of a step or translation, and those of the deletion. Rows outlive their task and
    // what they refer to, so there are no foreign keys.
    "CREATE TABLE deleted_steps (
        account_id {text} NOT NULL,
        guid {uuid} NOT NULL,
        task {uuid} NOT NULL,
        position bigint NOT NULL,
        kind integer NOT NULL,
        product_id bigint NOT NULL,
        title text NOT NULL,
        external_id {text},
        published integer NOT NULL,
        subtask_id {uuid},
        subtask_pid bigint,
        subtask_external_id {text},
        is_link boolean NOT NULL,
        manages_tasks boolean NOT NULL,
        size bigint NOT NULL,
        body_size bigint NOT NULL,
        rest_digest {bytes} NOT NULL,
        language_count bigint NOT NULL,
        version bigint NOT NULL,
        dirty_record boolean NOT NULL,
        listed boolean NOT NULL,
        indexed boolean NOT NULL,
        created_ts bigint NOT NULL,
        modified_ts bigint NOT NULL,
        content text NOT NULL,
        deleted_ts bigint NOT NULL,
        deleted_by text NOT NULL,
        previous_step {uuid},
        body text,
        PRIMARY KEY (account_id, guid)
    )",
    "CREATE TABLE deleted_step_translations (
        account_id {text} NOT NULL,
        step {uuid} NOT NULL,
        language {text} NOT NULL,
        locked boolean NOT NULL,
        content text NOT NULL,
        translated_from_title text NOT NULL,
        translated_from_rest {bytes} NOT NULL,
        body text,
        PRIMARY KEY (account_id, step, language),
        CONSTRAINT deleted_step_translations_step_fkey FOREIGN KEY (account_id, step)
            REFERENCES deleted_steps (account_id, guid) ON DELETE CASCADE
    )",
    // The history of a task outlives the task, so these tables have no foreign keys.
    "CREATE TABLE task_histories (
        account_id {text} NOT NULL,
        task {uuid} NOT NULL,
        last_number bigint NOT NULL,
        deleted_ts bigint,
        deleted_by text NOT NULL,
        PRIMARY KEY (account_id, task)
    )",
    "CREATE TABLE task_revisions (
        account_id {text} NOT NULL,
        task {uuid} NOT NULL,
        number bigint NOT NULL,
        cause integer NOT NULL,
        note text NOT NULL,
        subject text NOT NULL,
        created_ts bigint NOT NULL,
        task_name text NOT NULL,
        product_id bigint NOT NULL,
        step_count bigint NOT NULL,
        guide_etag text NOT NULL,
        size bigint NOT NULL,
        document_size bigint NOT NULL,
        content {bytes} NOT NULL,
        PRIMARY KEY (account_id, task, number)
    )",
    "CREATE TABLE revision_aliases (
        account_id {text} NOT NULL,
        task {uuid} NOT NULL,
        alias {text} NOT NULL,
        number bigint NOT NULL,
        PRIMARY KEY (account_id, task, alias)
    )",
    // The rows of the next three tables may outlive what they describe, so they have no foreign keys.
    // The order of the columns of `changes` keeps rows narrow on PostgreSQL.
    "CREATE TABLE changes (
        seq {seq},
        position bigint,
        version bigint,
        changed_ts bigint NOT NULL,
        transaction_id {uuid} NOT NULL,
        task {uuid} NOT NULL,
        step {uuid},
        transaction_size integer NOT NULL,
        step_count integer NOT NULL,
        kind smallint NOT NULL,
        rpc smallint NOT NULL,
        account_id {text} NOT NULL,
        fields text NOT NULL,
        subject text NOT NULL{seq_key}
    )",
    "CREATE TABLE change_feeds (
        account_id {text} NOT NULL,
        head bigint NOT NULL,
        pruned bigint NOT NULL,
        pruned_transaction {uuid} NOT NULL,
        PRIMARY KEY (account_id)
    )",
    "CREATE TABLE index_deletions (
        account_id {text} NOT NULL,
        guid {uuid} NOT NULL,
        kind integer NOT NULL,
        task {uuid} NOT NULL,
        indexed boolean NOT NULL,
        mark {uuid} NOT NULL,
        PRIMARY KEY (account_id, guid)
    )",
];

/// All indexes. All but the last are partial, on a column that their queries compare.
///
/// Without statistics, PostgreSQL prefers a newer index that begins with `account_id` to
/// the primary key, even to find a row by its id. It uses a partial index only for queries
/// that compare the index's column.
const INDEXES: [&str; 16] = [
    "CREATE INDEX tasks_product ON tasks (account_id, product_id, guid)
     WHERE product_id IS NOT NULL",
    "CREATE UNIQUE INDEX tasks_external_id ON tasks (account_id, external_id)
     WHERE external_id IS NOT NULL",
    // A name has at most 800 bytes. PostgreSQL accepts up to 2,704.
    "CREATE INDEX tasks_name ON tasks (account_id, name, guid)
     WHERE name IS NOT NULL",
    "CREATE INDEX tasks_parent_guid ON tasks (account_id, parent_guid)
     WHERE parent_guid IS NOT NULL",
    // Contains `guid`, so the ids of a task's steps are read from the index alone.
    "CREATE INDEX steps_order ON steps (account_id, task, position, guid)
     WHERE task IS NOT NULL",
    "CREATE UNIQUE INDEX steps_external_id ON steps (account_id, task, external_id)
     WHERE external_id IS NOT NULL",
    // Contains `is_link`, so wiring steps are found without reading other subtask steps.
    "CREATE INDEX steps_subtask_id ON steps (account_id, subtask_id, guid, is_link)
     WHERE subtask_id IS NOT NULL",
    "CREATE INDEX name_uses_guid ON name_uses (account_id, guid)
     WHERE guid IS NOT NULL",
    "CREATE INDEX task_histories_deleted_ts ON task_histories (account_id, deleted_ts, task)
     WHERE deleted_ts IS NOT NULL",
    "CREATE INDEX deleted_steps_task ON deleted_steps (account_id, task, deleted_ts, guid)
     WHERE task IS NOT NULL",
    "CREATE INDEX deleted_steps_deleted_ts ON deleted_steps (account_id, deleted_ts)
     WHERE deleted_ts IS NOT NULL",
    "CREATE INDEX tasks_dirty ON tasks (account_id, guid) WHERE dirty_record",
    "CREATE INDEX steps_dirty ON steps (account_id, guid) WHERE dirty_record",
    "CREATE INDEX changes_new ON changes (account_id, seq) WHERE position IS NULL",
    "CREATE UNIQUE INDEX changes_position ON changes (account_id, position)
     WHERE position IS NOT NULL",
    "CREATE INDEX request_outcomes_age ON request_outcomes (account_id, created_ts)",
];

fn statements(backend: DbBackend) -> Vec<String> {
    let (sequence, text, uuid, bytes, by_key, seq, seq_key) = match backend {
        // SQLite compares text byte by byte by default. `uuid_text` is SeaORM's name of the
        // type; the value is a blob. WITHOUT ROWID stores narrow rows in the primary key only.
        DbBackend::Sqlite => (
            None,
            "text",
            "uuid_text",
            "blob",
            " WITHOUT ROWID",
            "integer PRIMARY KEY",
            "",
        ),
        _ => (
            Some("CREATE SEQUENCE changes_seq".to_owned()),
            "text COLLATE \"C\"",
            "uuid",
            "bytea",
            "",
            "bigint NOT NULL DEFAULT nextval('changes_seq')",
            ", PRIMARY KEY (account_id, seq)",
        ),
    };
    let tables = TABLES.iter().map(|table| {
        table
            .replace("{text}", text)
            .replace("{uuid}", uuid)
            .replace("{bytes}", bytes)
            .replace("{seq}", seq)
            .replace("{seq_key}", seq_key)
            .replace("{by_key}", by_key)
    });
    let indexes = INDEXES.map(str::to_owned);
    sequence.into_iter().chain(tables).chain(indexes).collect()
}

/// The tables that this migration creates, each after the tables that it refers to.
pub fn tables() -> impl Iterator<Item = SchemaTable> {
    TABLES.iter().map(|table| SchemaTable {
        name: table.split_whitespace().nth(2).unwrap_or_default(),
        belongs_to_accounts: table.contains("account_id"),
    })
}
