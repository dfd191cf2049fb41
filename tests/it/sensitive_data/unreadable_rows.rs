//! Rows that cannot be read, and a database that goes away: the driver's errors quote
//! texts and addresses.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tonic::Code;

use super::{
    caller::Caller,
    marks::TEXT,
    service::{Mode, Service},
    valid_calls::{CALLS, Resources},
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
    let mut unreadable = 0;
    for table in TABLES {
        let columns = format!("SELECT name FROM pragma_table_info('{table}')");
        let columns = sqlx::query(AssertSqlSafe(columns))
            .fetch_all(&mut database)
            .await
            .expect("the columns");
        for column in columns {
            let column: String = column.get(0);
            let caller = caller.other_account();
            let resources = Resources::of(&caller).await;
            let damage = damage(&caller, table, &column);
            // A column with a constraint refuses it.
            if sqlx::query(AssertSqlSafe(damage))
                .execute(&mut database)
                .await
                .is_ok()
            {
                unreadable += reads(&caller, &resources).await;
            }
        }
    }
    assert!(unreadable > 0, "nothing was unreadable");
    service.end_and_expect_no_mark(caller.calls());
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
    let mut unreadable = 0;
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
            let resources = Resources::of(&caller).await;
            let damage = damage(&caller, table, &column);
            if sqlx::query(AssertSqlSafe(damage))
                .execute(&mut database)
                .await
                .is_ok()
            {
                unreadable += reads(&caller, &resources).await;
            }
        }
    }
    assert!(unreadable > 0, "nothing was unreadable");

    let resources = Resources::of(&caller).await;
    service
        .cluster
        .as_mut()
        .expect("a cluster")
        .stop(Stop::Immediate);
    for (call, request) in CALLS {
        let status = caller
            .send(call, request(&resources))
            .await
            .expect_err(call);
        assert_eq!(status.code(), Code::Unavailable, "{call}: {status:?}");
    }
    service.end_and_expect_no_mark(caller.calls());
}

/// The statement that puts an invalid text into a column of the account's rows.
fn damage(caller: &Caller, table: &str, column: &str) -> String {
    let account = caller.client.account();
    let text = format!("{{\"{TEXT}\": {TEXT}");
    format!("UPDATE {table} SET {column} = '{text}' WHERE account_id = '{account}'")
}

/// How many reading calls failed because of an unreadable row.
async fn reads(caller: &Caller, resources: &Resources) -> usize {
    let mut unreadable = 0;
    for (call, request) in CALLS {
        let changes = ["Create", "Delete", "Import"];
        if changes.iter().any(|verb| call.contains(verb)) {
            continue;
        }
        let outcome = caller.send(call, request(resources)).await;
        unreadable += usize::from(outcome.is_err_and(|status| status.code() == Code::Internal));
    }
    unreadable
}
