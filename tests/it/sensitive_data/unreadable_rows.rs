//! Rows that hold what nobody can read, and a database that goes away: what the
//! driver says of it quotes texts and addresses.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tonic::Code;

use super::{
    caller::Caller,
    marks::TEXT,
    service::{Mode, Service},
    valid_calls::{CALLS, Given},
};
use crate::kit::{databases::Database, postgres::Stop};

/// Tables whose texts are read as JSON, ids and the like.
const TABLES: [&str; 4] = ["tasks", "task_translations", "steps", "step_translations"];

#[tokio::test]
async fn unreadable_sqlite_rows_are_not_quoted() {
    let name = "sqlite_unreadable";
    let service = Service::start(name, Database::Sqlite, Mode::Header, "json");
    let service = service.expect("SQLite is always there");
    let caller = service.caller();
    let mut database = SqliteConnection::connect(service.database())
        .await
        .expect("the database");
    let mut met = 0;
    for table in TABLES {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = sqlx::query(AssertSqlSafe(columns))
            .fetch_all(&mut database)
            .await
            .expect("the columns");
        for column in columns {
            let column: String = column.get(0);
            let caller = caller.other_account();
            let given = Given::of(&caller).await;
            let spoil = spoil(&caller, table, &column);
            // A column that refuses it cannot hold it.
            if sqlx::query(AssertSqlSafe(spoil))
                .execute(&mut database)
                .await
                .is_ok()
            {
                met += reads(&caller, &given).await;
            }
        }
    }
    assert!(met > 0, "nothing was unreadable");
    service.end_without_a_mark(caller.calls());
}

#[tokio::test]
async fn unreadable_postgres_rows_and_the_password_are_not_quoted() {
    let name = "postgres_unreadable";
    let service = Service::start(name, Database::Postgres, Mode::Header, "json");
    let Some(mut service) = service else { return };
    let caller = service.caller();
    let mut database = PgConnection::connect(service.database())
        .await
        .expect("the database");
    let mut met = 0;
    for table in TABLES {
        let columns = format!(
            "SELECT column_name::text FROM information_schema.columns WHERE table_name = '{table}'"
        );
        let columns = sqlx::query(AssertSqlSafe(columns))
            .fetch_all(&mut database)
            .await
            .expect("the columns");
        for column in columns {
            let column: String = column.get(0);
            let caller = caller.other_account();
            let given = Given::of(&caller).await;
            let spoil = spoil(&caller, table, &column);
            if sqlx::query(AssertSqlSafe(spoil))
                .execute(&mut database)
                .await
                .is_ok()
            {
                met += reads(&caller, &given).await;
            }
        }
    }
    assert!(met > 0, "nothing was unreadable");

    let given = Given::of(&caller).await;
    service
        .cluster
        .as_mut()
        .expect("a cluster")
        .stop(Stop::Immediate);
    for (call, request) in CALLS {
        let status = caller.send(call, request(&given)).await.expect_err(call);
        assert_eq!(status.code(), Code::Unavailable, "{call}: {status:?}");
    }
    service.end_without_a_mark(caller.calls());
}

/// Puts a text into a column of the account's rows that is nothing but a text.
fn spoil(caller: &Caller, table: &str, column: &str) -> String {
    let account = caller.client.account();
    let text = format!("{{\"{TEXT}\": {TEXT}");
    format!("UPDATE {table} SET {column} = '{text}' WHERE account_id = '{account}'")
}

/// How many calls that read met a row that they cannot.
async fn reads(caller: &Caller, given: &Given) -> usize {
    let mut met = 0;
    for (call, request) in CALLS {
        let changes = ["Create", "Delete", "Import"];
        if changes.iter().any(|verb| call.contains(verb)) {
            continue;
        }
        let outcome = caller.send(call, request(given)).await;
        met += usize::from(outcome.is_err_and(|status| status.code() == Code::Internal));
    }
    met
}
