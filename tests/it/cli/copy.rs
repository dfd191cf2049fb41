//! `copy`: copies a database into another one, of the same or the other kind.

use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::accounts::fill;
use crate::{
    command::{Cli, Command, CommandOutput, Says, command},
    databases::postgres,
    kit::{
        runtime::runtime,
        scratch::Scratch,
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
};

/// Runs commands against a server on a database.
pub(super) fn served<T>(url: &str, run: impl FnOnce(&dyn Fn(&str) -> Cli) -> T) -> T {
    let server = TestServer::start_blocking(&Settings::new(url));
    let outcome = run(&|account| Cli {
        server: server.url(),
        account: account.to_owned(),
    });
    assert!(server.terminate().success());
    outcome
}

/// A file with two accounts. Managed tasks are stored before the tasks that manage them.
fn source(name: &str) -> (String, String) {
    let url = Scratch::of_this_run().sqlite_url(name);
    let guide = served(&url, |account| {
        fill(&account("other"));
        fill(&account("demo"))
    });
    runtime().block_on(async {
        let mut connection = SqlConnection::open(&url).await;
        connection.execute("UPDATE tasks SET rowid = -rowid").await;
    });
    (url, guide)
}

fn copy(from: &str, to: &str) -> Command {
    command(&["copy", "--from", from, "--log=warn"]).env("EXPERTISE_DATABASE_URL", to)
}

/// All rows of all tables of a file.
fn rows(url: &str) -> Vec<String> {
    runtime().block_on(async {
        let mut file = SqliteConnection::connect(url).await.expect("the file");
        let columns = "SELECT t.name, group_concat('quote(' || c.name || ')', ' || '','' || ') \
                       FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' \
                       AND t.name NOT LIKE 'sqlite%' AND t.name <> 'seaql_migrations' GROUP BY 1";
        let tables: Vec<(String, String)> = sqlx::query_as(columns)
            .fetch_all(&mut file)
            .await
            .expect("the columns");
        let mut rows = Vec::new();
        for (table, columns) in tables {
            let select = format!("SELECT '{table}: ' || {columns} FROM {table} ORDER BY 1");
            let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(select))
                .fetch_all(&mut file)
                .await
                .expect("the rows");
            rows.extend(found);
        }
        rows
    })
}

fn assert_counted(output: CommandOutput, table: &str, count: usize) {
    let output = output.succeeded();
    let line = output.stdout.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(table)
    });
    let line = line.unwrap_or_else(|| panic!("{}", output.stdout));
    assert!(line.ends_with(&format!(" {count}")), "{line}");
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn sqlite_goes_to_postgres_and_back_with_every_row() {
    let (first, guide) = source("copied-first");
    let all = rows(&first);
    let steps = all.iter().filter(|row| row.starts_with("steps: ")).count();
    assert!(steps > 1_200, "several batches");
    // The document and the revisions with their etags.
    let read = |url: &str| {
        served(url, |account| {
            let cli = account("demo");
            let history = cli.command(&["history", &guide, "--format=json"]).run();
            let list = cli.command(&["list", "--format=json"]).run();
            [
                cli.export(&guide),
                history.succeeded().stdout,
                list.succeeded().stdout,
            ]
        })
    };
    let before = read(&first);
    let between = postgres("copied_between");
    assert_counted(copy(&first, &between).run(), "steps", steps);
    assert_eq!(read(&between), before);
    let last = Scratch::of_this_run().sqlite_url("copied-last");
    assert_counted(copy(&between, &last).run(), "steps", steps);
    assert_eq!(rows(&last), rows(&first));
    assert_eq!(rows(&last).len(), all.len());
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn new_changes_come_behind_those_that_were_copied() {
    let (from, _) = source("copied-sequences");
    let to = postgres("copied_sequences");
    copy(&from, &to).run().succeeded();
    let number =
        |sql: &str| runtime().block_on(async { SqlConnection::open(&to).await.number(sql).await });
    let last = number("SELECT max(seq) FROM changes");
    assert_eq!(number("SELECT nextval('changes_seq')"), last + 1);
}

#[test]
fn a_database_with_rows_is_not_copied_into() {
    let (from, _) = source("copied-twice");
    let to = Scratch::of_this_run().sqlite_url("copied-into");
    copy(&from, &to).run().succeeded();
    let before = rows(&to);
    let line = copy(&from, &to).run().failure(1);
    line.says(&["has rows already: copy into a new database"]);
    assert_eq!(rows(&to), before);
    copy(&from, &from)
        .run()
        .fails_with(1, &["has rows already"]);
}

/// Copies a file with a row that no database accepts, after others that were copied.
fn a_database_with_a_part_of_another_is_not_used(name: &str, to: &str) {
    let (from, _) = source(name);
    runtime().block_on(async {
        let mut file = SqlConnection::open(&from).await;
        file.execute("PRAGMA foreign_keys = off").await;
        let last = "UPDATE steps SET task = guid WHERE rowid = (SELECT max(rowid) FROM steps)";
        file.execute(last).await;
    });
    let failed = copy(&from, to).run().failure(1);
    failed.says(&["the database failed: database code "]);
    let of_database = |words: &[&str]| command(words).env("EXPERTISE_DATABASE_URL", to).run();
    for (refused, code) in [
        (copy(&from, to).run(), 1),
        (of_database(&["config", "--check"]), 2),
        (of_database(&["accounts"]), 1),
        (of_database(&["migrate"]), 1),
        (of_database(&["--listen=127.0.0.1:0"]), 1),
    ] {
        refused.fails_with(code, &["a database with an unfinished copy"]);
    }
}

#[test]
fn a_database_with_a_part_of_another_is_not_used_on_sqlite() {
    let to = Scratch::of_this_run().sqlite_url("copied-in-part");
    a_database_with_a_part_of_another_is_not_used("copied-part-of", &to);
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn a_database_with_a_part_of_another_is_not_used_on_postgres() {
    let to = postgres("copied_in_part");
    a_database_with_a_part_of_another_is_not_used("copied-part-to", &to);
}

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn what_cannot_be_copied_is_named_by_its_flag() {
    let to = "sqlite:to.db";
    let command = copy("sqlite:from.db", to);
    let path = command.path("to.db");
    command
        .run()
        .fails_with(1, &["the file from.db does not exist"]);
    assert!(!path.exists());
    let empty = postgres("nothing_to_copy");
    copy(&empty, to)
        .run()
        .fails_with(1, &["the database is empty"]);
    let line = copy("postgres://ann:secret@127.0.0.1:1/e?sslmode=on", to).run();
    let line = line.fails_with(2, &["--from is ", "sslmode is disable"]);
    assert!(!line.contains("secret"), "{line}");
    let nowhere = postgres("copied_nowhere").replace("copied_nowhere", "no_such_database");
    let line = copy(&nowhere, to).run().failure(1);
    assert!(line.contains("--from names postgres://"), "{line}");
}

#[test]
fn a_file_that_a_server_has_open_is_not_copied() {
    let (from, _) = source("copied-in-use");
    let to = Scratch::of_this_run().sqlite_url("copied-of-used");
    served(&from, |_| {
        copy(&from, &to)
            .run()
            .fails_with(1, &["--from names a file that a server has open"]);
    });
    served(&to, |_| {
        let into_used = "EXPERTISE_DATABASE_URL names a file that a server has open";
        copy(&from, &to).run().fails_with(1, &[into_used]);
    });
    copy(&from, &to).run().succeeded();
}
