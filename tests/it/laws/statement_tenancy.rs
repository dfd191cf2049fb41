//! Every statement of the service on PostgreSQL stays within an account, and the check detects a
//! violation.

use sqlx::{Connection, PgConnection};

use crate::{
    command::command,
    databases::{
        Database, DatabaseTest, postgres,
        statement_log::{self, read_account_fault, shape, statement, written_account_fault},
    },
    fixture::Fixture,
    kit::runtime::runtime,
    marks::Mark,
    prelude::*,
};

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn statements_on_every_tenant_table_are_checked() {
    let every_resource = |client: Client| async move {
        let fixture = Fixture::marked(&client, None, &Mark::NONE).await;
        fixture.contents().await;
        let translated = fixture.values["step"].as_str().expect("a step");
        client.delete_step(translated).await.accepted();
        let request = create_task_request(task("Once"));
        let request = request.with(|it| it.request_id = unknown_guid());
        client.call(request).await.accepted();
    };
    every_resource.run_on(Database::Postgres);
    let Some((tenant_tables, statements)) = statement_log::checked() else {
        return;
    };
    assert!(!tenant_tables.is_empty());
    for table in &tenant_tables {
        let named = |sql: &String| sql.contains(table.as_str());
        assert!(statements.iter().any(named), "{table}");
    }
}

#[test]
fn a_statement_is_known_by_its_shape() {
    const PREFIX: &str = "expertise|calls|LOG:  ";
    assert_eq!(
        shape("INSERT INTO t VALUES ($1, $2), ($3, $4) WHERE a = $1 AND b IN ($12)"),
        "INSERT INTO t VALUES ($) WHERE a = $ AND b IN ($)"
    );
    let logged = "expertise|calls|LOG:  execute sqlx_s_7: SELECT ': '";
    assert_eq!(statement(logged, PREFIX), Some("SELECT ': '"));
    let logged = "expertise|calls|LOG:  statement: BEGIN";
    assert_eq!(statement(logged, PREFIX), Some("BEGIN"));
    for other in [
        "|calls|LOG:  statement: BEGIN",
        "expertise|other|LOG:  statement: BEGIN",
        "expertise|calls|ERROR:  no: BEGIN",
    ] {
        assert_eq!(statement(other, PREFIX), None);
    }
}

#[test]
fn a_table_that_is_read_without_its_account_is_a_fault() {
    let tables = ["steps", "tasks"].map(str::to_owned).into();
    for sql in [
        "SELECT * FROM steps WHERE account_id = $1 AND guid = $2",
        "SELECT * FROM steps s JOIN tasks t ON t.account_id = s.account_id AND t.guid = s.task \
         WHERE s.account_id = $1",
        "UPDATE steps SET version = $2 WHERE account_id = $1",
        "SELECT value FROM server_keys",
    ] {
        assert_eq!(read_account_fault(sql, &tables), None, "{sql}");
    }
    for sql in [
        "SELECT * FROM steps WHERE guid = $1",
        "SELECT * FROM steps s JOIN tasks t ON t.guid = s.task WHERE s.account_id = $1",
        "SELECT * FROM steps WHERE account_id = $1 UNION SELECT * FROM steps",
        "DELETE FROM steps USING tasks t WHERE steps.account_id = $1",
        "DELETE FROM steps WHERE guid = $1",
    ] {
        assert!(read_account_fault(sql, &tables).is_some(), "{sql}");
    }
}

#[test]
fn a_row_without_its_account_or_with_another_one_is_a_fault() {
    for sql in [
        "INSERT INTO steps (account_id, guid) VALUES ($1, $2) ON CONFLICT (account_id, guid) \
         DO UPDATE SET title = excluded.title",
        "UPDATE steps SET title = $2 WHERE account_id = $1",
        "WITH guard AS (UPDATE tasks SET version = 2 WHERE account_id = $1 RETURNING guid) \
         INSERT INTO steps (account_id, guid) SELECT $1, $2 FROM guard",
    ] {
        assert_eq!(written_account_fault(sql), None, "{sql}");
    }
    for sql in [
        "INSERT INTO steps (guid) VALUES ($1)",
        "INSERT INTO steps VALUES ($1, $2)",
        "UPDATE steps SET account_id = $2 WHERE account_id = $1",
        "UPDATE steps SET title = $3, account_id = $2 WHERE account_id = $1",
        "INSERT INTO steps (account_id, guid) VALUES ($1, $2) ON CONFLICT (account_id, guid) \
         DO UPDATE SET account_id = $3",
    ] {
        assert!(written_account_fault(sql).is_some(), "{sql}");
    }
}

/// For every index, and for both ends of every foreign key: its first column. For every table:
/// `account_id`, or which of the two it lacks, a primary key or that column.
const KEYS: &str = "
    SELECT format('index %s of %s', i.relname, t.relname), a.attname::text
    FROM pg_index x
    JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_class t ON t.oid = x.indrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
    WHERE t.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('foreign key %s of %s', c.conname, e.side::regclass), a.attname::text
    FROM pg_constraint c
    CROSS JOIN LATERAL (VALUES (c.conrelid, c.conkey[1]), (c.confrelid, c.confkey[1]))
        AS e (side, first)
    JOIN pg_attribute a ON a.attrelid = e.side AND a.attnum = e.first
    WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('table %s', t.relname),
           CASE WHEN NOT EXISTS (SELECT FROM pg_index WHERE indrelid = t.oid AND indisprimary)
                THEN 'no primary key' ELSE COALESCE(a.attname::text, 'no account') END
    FROM pg_class t
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'account_id'
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r'";

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn every_key_of_the_schema_begins_with_the_account() {
    let url = postgres("schema");
    command(&["migrate", "--database-url", &url])
        .run()
        .succeeded();
    let keys = runtime().block_on(async {
        let mut connection = PgConnection::connect(&url).await.expect("a connection");
        let keys = sqlx::query_as::<_, (String, String)>(KEYS);
        keys.fetch_all(&mut connection).await.expect("the keys")
    });
    let of_kind = |kind| keys.iter().filter(move |(what, _)| what.starts_with(kind));
    assert!(of_kind("table").count() > 5 && of_kind("index").count() > 5);
    // These do not belong to an account.
    let shared = ["server_keys", "seaql_migrations"];
    let straying = keys.iter().filter(|(what, first)| {
        first != "account_id" && !shared.iter().any(|table| what.ends_with(table))
    });
    assert_eq!(
        straying.collect::<Vec<_>>(),
        Vec::<&(String, String)>::new()
    );
}
