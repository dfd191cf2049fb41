//! A history of writes leaves equal rows and gives equal answers, whether each write runs
//! without locks first or under locks alone. Stored sizes are those of the content.

use std::collections::BTreeSet;

use expertise::store::WritePath;
use proptest::{
    collection::vec,
    test_runner::{Config, TestRunner},
};
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::kit::{
    databases::postgres,
    prelude::*,
    random_writes::{apply, write},
    scratch::Scratch,
    snapshot::Names,
    sql::SqlConnection,
    store_server,
    stored_sizes::{
        name_uses_are_those_of_stored_tasks_and_steps, stored_sizes_are_those_of_the_content,
    },
};

const CASES: u32 = 8;

/// The tables that hold what an account has, with their keys.
const TABLES: [(&str, &str); 11] = [
    ("tasks", "guid"),
    ("task_translations", "task, language"),
    ("steps", "guid"),
    ("step_translations", "step, language"),
    ("name_uses", "guid, name_digest"),
    ("roles", "id"),
    ("accounts", "account_id"),
    ("request_outcomes", "created_ts, request_id"),
    ("task_histories", "task"),
    ("task_revisions", "task, number"),
    ("revision_aliases", "task, alias"),
];

#[test]
fn both_write_paths_leave_equal_rows_on_sqlite() {
    let file = Scratch::of_this_run().path("write-paths.db");
    both_write_paths_leave_equal_rows(&format!("sqlite:{}", file.display()));
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn both_write_paths_leave_equal_rows_on_postgres() {
    let url = postgres("write_paths");
    both_write_paths_leave_equal_rows(&url);
}

fn both_write_paths_leave_equal_rows(url: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let store = runtime.block_on(store_server::open(url, 4));
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&vec(write(), 1..30), |history| {
        runtime.block_on(async {
            let mut ends = Vec::new();
            for path in [WritePath::OptimisticFirst, WritePath::LockedOnly] {
                let account = unknown_guid();
                let store = store.with_write_path(path);
                let client = store_server::serve_store(store.clone(), &account).await;
                let mut names = Names::default();
                let mut lines = Vec::new();
                for (number, write) in history.iter().enumerate() {
                    let answer = apply(&client, write, number).await.unwrap_or_default();
                    lines.push(names.normalised(&format!("{write:?}: {answer}")));
                }
                stored_sizes_are_those_of_the_content(&store, url, &account).await;
                name_uses_are_those_of_stored_tasks_and_steps(url, &account).await;
                if path == WritePath::LockedOnly {
                    locked_writes_number_their_entries(url, &account).await;
                }
                let rows = rows(url, &account).await.into_iter();
                let rows: Vec<String> = rows.map(|row| row.replace(&account, "account")).collect();
                ends.push((lines, names, rows));
            }
            let [optimistic, locked] = [&ends[0].2, &ends[1].2].map(|rows| digests(rows));
            let shared: BTreeSet<String> = optimistic.intersection(&locked).cloned().collect();
            let ends = ends.into_iter().map(|(mut lines, mut names, rows)| {
                let rows = rows.iter().map(|row| with_shared_digests(row, &shared));
                let mut rows: Vec<String> = rows.map(|row| names.normalised(&row)).collect();
                rows.sort_unstable();
                lines.append(&mut rows);
                lines
            });
            let ends: Vec<Vec<String>> = ends.collect();
            assert_equal(&ends[0], &ends[1]);
        });
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
}

/// Under locks alone a write numbers its entries itself, in steps of 2^20. In a script the database
/// does so.
async fn locked_writes_number_their_entries(url: &str, account: &str) {
    let of_scripts =
        format!("SELECT count(*) FROM changes WHERE account_id = '{account}' AND seq < 1048576");
    let mut database = SqlConnection::open(url).await;
    assert_eq!(database.number(&of_scripts).await, 0);
}

/// The digest in a row of the index of names.
fn digest(row: &str) -> Option<&str> {
    let (_, digest) = row.split_once("\"name_digest\":")?;
    digest.split('"').nth(1)
}

fn digests(rows: &[String]) -> BTreeSet<String> {
    rows.iter()
        .filter_map(|row| digest(row))
        .map(str::to_owned)
        .collect()
}

/// The row without a digest that is not shared: those of a task's own names differ with its id.
fn with_shared_digests(row: &str, shared: &BTreeSet<String>) -> String {
    match digest(row).filter(|digest| !shared.contains(*digest)) {
        Some(own) => row.replace(own, "own"),
        None => row.to_owned(),
    }
}

/// Fails at the first line in which the two differ.
fn assert_equal(optimistic: &[String], locked: &[String]) {
    for (optimistic, locked) in optimistic.iter().zip(locked) {
        assert_eq!(optimistic, locked);
    }
    assert_eq!(optimistic.len(), locked.len());
}

/// Every row of an account as JSON without times, in the order of the keys.
async fn rows(url: &str, account: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (table, key) in TABLES {
        let found = if url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(url).await.expect("the file");
            let columns: Vec<String> =
                sqlx::query_scalar("SELECT name FROM pragma_table_info($1) ORDER BY cid")
                    .bind(table)
                    .fetch_all(&mut file)
                    .await
                    .expect("the columns");
            let columns = columns.iter().filter(|column| is_compared(table, column));
            let columns = columns.map(|column| {
                format!(
                    "'{column}', CASE typeof({column}) WHEN 'blob' THEN hex({column}) \
                     ELSE {column} END"
                )
            });
            let columns: Vec<String> = columns.collect();
            let sql = format!(
                "SELECT json_object({}) FROM {table} WHERE account_id = $1 ORDER BY {key}",
                columns.join(", ")
            );
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(account)
                .fetch_all(&mut file)
                .await
        } else {
            let mut connection = PgConnection::connect(url).await.expect("PostgreSQL");
            let sql = format!(
                "SELECT (to_jsonb(t) - '{{{}}}'::text[])::text \
                 FROM {table} t WHERE account_id = $1 ORDER BY {key}",
                uncompared(table).join(",")
            );
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(account)
                .fetch_all(&mut connection)
                .await
        };
        let found: Vec<String> = found.expect("the rows");
        all.extend(found.into_iter().map(|row| format!("{table} {row}")));
    }
    all
}

/// Outcomes hold times, and digests of requests with ids in them. Revisions hold guides with both,
/// compressed.
fn uncompared(table: &str) -> &'static [&'static str] {
    match table {
        "task_revisions" => &[
            "created_ts",
            "guide_etag",
            "size",
            "document_size",
            "content",
        ],
        _ => &[
            "created_ts",
            "modified_ts",
            "deleted_ts",
            "outcome",
            "digest",
        ],
    }
}

fn is_compared(table: &str, column: &str) -> bool {
    !uncompared(table).contains(&column)
}
