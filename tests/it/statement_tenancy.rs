//! Every statement of the service on PostgreSQL stays within an account, and the check
//! finds one that does not.

use sqlx::{Connection, PgConnection};

use crate::kit::{
    databases::{Database, DatabaseTest, empty_postgres},
    plans,
    prelude::*,
    statement_log::{self, shape, statement, written_account_fault},
};

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn statements_on_every_tenant_table_are_checked() {
    let write_every_table = |client: Client| async move {
        let role = CreateRoleRequest {
            role: Some(Role {
                name: "Support".to_owned(),
                ..Role::default()
            }),
        };
        client.roles().create_role(role).await.accepted();
        let name = TaskTranslation {
            name: Some("Aufgabe".to_owned()),
            ..TaskTranslation::default()
        };
        let conditions = Some(all_of(vec![when("a", "=", "1")]));
        let new = Task {
            dependencies: conditions.clone(),
            ..task("Task").translated("de", name)
        };
        let task = client.given_task(new).await;
        let title = StepTranslation {
            title: Some("Schritt".to_owned()),
            ..StepTranslation::default()
        };
        let step = Step {
            body: Some("body".to_owned()),
            dependencies: conditions,
            translations: [("de".to_owned(), title)].into(),
            ..information_step(&task, "Step")
        };
        let create = CreateStepRequest {
            step: Some(step),
            request_id: unknown_guid(),
            ..CreateStepRequest::default()
        };
        client.send_create_step(create).await.accepted();
    };
    write_every_table.run_on(Database::Postgres);
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

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn a_plan_tells_how_many_partitions_it_scans() {
    let url = empty_postgres("scanned_partitions");
    plans::create_partitioned_tables(&url).await;
    let mut connection = PgConnection::connect(&url).await.expect("a connection");
    for (sql, expected) in [
        ("SELECT * FROM steps WHERE account_id = $1 AND guid = $2", 1),
        (
            "SELECT * FROM steps s JOIN tasks t ON t.account_id = s.account_id AND t.guid = s.task \
             WHERE s.account_id = $1",
            1,
        ),
        ("UPDATE steps SET version = $2 WHERE account_id = $1", 1),
        (
            "WITH moved (guid, position) AS (VALUES ($2, $3), ($4, $5)) \
             UPDATE steps SET position = moved.position FROM moved \
             WHERE steps.account_id = $1 AND steps.guid = moved.guid",
            1,
        ),
        (
            "WITH guard AS (INSERT INTO tasks (account_id, guid) SELECT $3, $4 WHERE true \
             RETURNING guid) SELECT guid FROM guard",
            0,
        ),
        (
            "SELECT guid FROM steps WHERE account_id = $1 AND (task, guid) IN (VALUES ($2, $3))",
            1,
        ),
        (
            "SELECT (SELECT count(*) FROM step_translations l WHERE l.account_id = $1 \
             AND l.step = s.guid) FROM steps s WHERE s.account_id = $1",
            1,
        ),
        (
            "INSERT INTO accounts (account_id, last_role_id) VALUES ($1, $2)",
            0,
        ),
        ("SELECT value FROM server_keys", 0),
        ("SELECT * FROM steps WHERE guid = $1", 16),
        (
            "SELECT * FROM steps s JOIN tasks t ON t.guid = s.task WHERE s.account_id = $1",
            16,
        ),
        ("SELECT * FROM steps WHERE account_id = $1 OR guid = $2", 16),
        (
            "SELECT * FROM tasks WHERE account_id = $1 AND guid IN (SELECT task FROM steps)",
            16,
        ),
        (
            "SELECT * FROM steps WHERE account_id = $1 UNION SELECT * FROM steps",
            16,
        ),
        (
            "WITH guard AS (UPDATE tasks SET version = 2 WHERE guid = $1 RETURNING guid) \
             SELECT * FROM guard",
            16,
        ),
        (
            "DELETE FROM steps USING tasks t WHERE steps.account_id = $1",
            16,
        ),
        ("DELETE FROM steps WHERE guid = $1", 16),
    ] {
        let scanned = plans::scanned(&mut connection, sql).await;
        let scanned = scanned.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(scanned.len(), expected, "{sql}: {scanned:?}");
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
