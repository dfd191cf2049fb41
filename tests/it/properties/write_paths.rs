//! A history of writes leaves equal rows and gives equal answers, whether each write runs
//! without locks first or under locks alone. Stored sizes are those of the content.

use std::collections::{BTreeSet, HashMap};

use expertise::store::WritePath;
use proptest::{
    collection::vec,
    test_runner::{Config, TestRunner},
};
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::{
    kit::{
        databases::postgres,
        prelude::*,
        scratch::Scratch,
        store_server,
        stored_sizes::{
            stored_sizes_are_those_of_the_content, symbols_are_those_of_stored_tasks_and_steps,
        },
    },
    random_writes::{apply, write},
};

const CASES: u32 = 8;

/// The tables that hold what an account has, with their keys.
const TABLES: [(&str, &str); 12] = [
    ("tasks", "guid"),
    ("task_translations", "task, language"),
    ("steps", "guid"),
    ("step_translations", "step, language"),
    ("task_symbols", "task, symbol"),
    ("step_symbols", "step, symbol"),
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
                symbols_are_those_of_stored_tasks_and_steps(url, &account).await;
                let rows = rows(url, &account).await.into_iter();
                let rows: Vec<String> = rows.map(|row| row.replace(&account, "account")).collect();
                ends.push((lines, names, rows));
            }
            let [optimistic, locked] = [&ends[0].2, &ends[1].2].map(|rows| symbols(rows));
            let shared: BTreeSet<String> = optimistic.intersection(&locked).cloned().collect();
            let ends = ends.into_iter().map(|(mut lines, mut names, rows)| {
                let rows = rows.iter().map(|row| with_shared_symbols(row, &shared));
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

/// The symbol in a row of the index of names.
fn symbol(row: &str) -> Option<&str> {
    let (_, symbol) = row.split_once("\"symbol\":")?;
    symbol.split('"').nth(1)
}

fn symbols(rows: &[String]) -> BTreeSet<String> {
    rows.iter()
        .filter_map(|row| symbol(row))
        .map(str::to_owned)
        .collect()
}

/// The row without a symbol that is not shared: those of a task's own names differ with its id.
fn with_shared_symbols(row: &str, shared: &BTreeSet<String>) -> String {
    match symbol(row).filter(|symbol| !shared.contains(*symbol)) {
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

/// Replaces ids by the order in which they appear, and removes times and etags.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn normalised(&mut self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let length = token_length(rest);
            let (token, behind) = rest.split_at(length);
            rest = behind;
            if is_id(token) {
                let next = self.0.len();
                let id = token.replace('-', "").to_lowercase();
                text.push_str(&format!("<{}>", self.0.entry(id).or_insert(next)));
            } else {
                text.push_str(token);
            }
        }
        without(&without(&text, "etag: \"", "\""), "Timestamp {", "}")
    }
}

/// The length of the hexadecimal digits and hyphens in front, or of one character.
fn token_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_hexdigit() && c != '-');
    match end.unwrap_or(text.len()) {
        0 => text.chars().next().map_or(1, char::len_utf8),
        length => length,
    }
}

/// A GUID, or 16 bytes as hexadecimal digits.
fn is_id(token: &str) -> bool {
    matches!(token.len(), 32 | 36) && token.replace('-', "").len() == 32
}

/// The text without what stands between two others.
fn without(text: &str, from: &str, to: &str) -> String {
    let mut parts = text.split(from);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(to).map_or("", |(_, rest)| rest));
    }
    kept
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
