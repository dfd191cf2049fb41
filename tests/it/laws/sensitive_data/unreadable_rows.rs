//! Rows that cannot be read, and a database that goes away: the driver's errors quote
//! texts and addresses.

use futures_util::future::join_all;
use prost::Message;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tonic::Code;

use super::{
    caller::Caller,
    marks::{MARK, TEXT},
    service::{Mode, Service},
};
use crate::{
    databases::Database,
    kit::{
        catalogue::{Values, catalogue, entry},
        postgres::Stop,
    },
};

/// Tables whose texts are read as JSON, ids and the like.
const TABLES: &str = "('tasks', 'task_translations', 'steps', 'step_translations')";

#[tokio::test]
#[ignore = "slow"]
async fn unreadable_sqlite_rows_are_not_quoted() {
    let name = "sqlite_unreadable";
    let service = Service::start(name, Database::Sqlite, Mode::Header, "json");
    let caller = service.caller();
    let database = SqliteConnection::connect(service.database()).await;
    let mut database = database.expect("the database");
    let columns = format!(
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
         WHERE t.name IN {TABLES}"
    );
    let columns = sqlx::query_as(AssertSqlSafe(columns));
    let columns = columns.fetch_all(&mut database).await.expect("the columns");
    damage_each_column(&caller, columns, async |sql| {
        database.execute(AssertSqlSafe(sql)).await.is_ok()
    })
    .await;
    service.end_and_expect_no_mark(caller.calls());
}

#[tokio::test]
#[ignore = "slow"]
async fn unreadable_postgres_rows_and_the_password_are_not_quoted() {
    let name = "postgres_unreadable";
    let mut service = Service::start(name, Database::Postgres, Mode::Header, "json");
    let caller = service.caller();
    let database = PgConnection::connect(service.database()).await;
    let mut database = database.expect("the database");
    let columns = format!(
        "SELECT table_name::text, column_name::text FROM information_schema.columns \
         WHERE table_name IN {TABLES}"
    );
    let columns = sqlx::query_as(AssertSqlSafe(columns));
    let columns = columns.fetch_all(&mut database).await.expect("the columns");
    damage_each_column(&caller, columns, async |sql| {
        database.execute(AssertSqlSafe(sql)).await.is_ok()
    })
    .await;

    let values = caller.prepare(None).await;
    let cluster = service.cluster.as_mut().expect("a cluster");
    cluster.stop(Stop::Immediate);
    // Each waits for a connection for a while. The list of rules reads nothing.
    let calls = catalogue().calls.keys();
    let reading = calls.filter(|call| !call.ends_with("/ListRules"));
    let refused = reading.map(async |call| {
        let answer = caller.send(call, request(call, &values)).await;
        let status = answer.expect_err(call);
        assert_eq!(status.code(), Code::Unavailable, "{call}: {status:?}");
    });
    join_all(refused).await;
    service.end_and_expect_no_mark(caller.calls());
}

/// Reads rows with an invalid text in each of these columns of tables in turn.
async fn damage_each_column(
    caller: &Caller,
    columns: Vec<(String, String)>,
    mut execute: impl AsyncFnMut(String) -> bool,
) {
    let mut unreadable = 0;
    for (table, column) in columns {
        let caller = caller.other_account();
        let values = caller.prepare(None).await;
        // A column with a constraint refuses it.
        if execute(damage(&caller, &table, &column)).await {
            unreadable += reads(&caller, &values).await;
        }
    }
    assert!(unreadable > 0, "nothing was unreadable");
}

/// The statement that puts an invalid text into a column of the account's rows.
fn damage(caller: &Caller, table: &str, column: &str) -> String {
    let account = caller.client.account();
    let text = format!("{{\"{TEXT}\": {TEXT}");
    format!("UPDATE {table} SET {column} = '{text}' WHERE account_id = '{account}'")
}

/// How many calls failed because of an unreadable row that they read.
async fn reads(caller: &Caller, values: &Values) -> usize {
    let mut unreadable = 0;
    for call in catalogue().calls.keys() {
        let changes = ["Create", "Delete", "Import"];
        if changes.iter().any(|verb| call.contains(verb)) {
            continue;
        }
        let outcome = caller.send(call, request(call, values)).await;
        unreadable += usize::from(outcome.is_err_and(|status| status.code() == Code::Internal));
    }
    unreadable
}

fn request(call: &str, values: &Values) -> Vec<u8> {
    let request = catalogue().expand(entry(call).base("example"), values);
    MARK.message(call, request).encode_to_vec()
}
