//! A BEGIN that is cancelled and a connection that is lost, on a real PostgreSQL.

#![allow(dead_code, clippy::expect_used, clippy::indexing_slicing)]

// What starts PostgreSQL for the tests of the service.
#[path = "../../../../tests/kit/child.rs"]
mod child;
#[path = "../../../../tests/kit/deadline.rs"]
mod deadline;
#[path = "../../../../tests/kit/missing.rs"]
mod missing;
#[path = "../../../../tests/kit/postgres.rs"]
mod postgres;
#[path = "../../../../tests/kit/scratch.rs"]
mod scratch;

use std::{path::PathBuf, sync::OnceLock};

use futures_util::poll;

use super::*;
use crate::{
    config::DatabaseUrl,
    store::connection::{self, ConnectOptions},
};

/// The PostgreSQL of these tests, with one connection in its pool.
async fn with_one_connection() -> Database {
    static POSTGRES: OnceLock<(String, Option<PathBuf>)> = OnceLock::new();
    let (url, _) = POSTGRES.get_or_init(|| postgres::database_and_log(&["fsync=off"]));
    let url = DatabaseUrl::parse(url).expect("the URL of a database");
    let options = ConnectOptions {
        max_connections: 1,
        migrate: true,
        serves: true,
        max_wait: None,
        metrics: Arc::default(),
    };
    let connections = connection::connect(&url, &options).await;
    connections.unwrap_or_else(|error| panic!("{error}")).writer
}

// After one poll BEGIN is sent, and mostly not answered yet. Where PostgreSQL was quicker
// there is nothing to cancel, and the round is repeated.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_write_after_a_cancelled_begin_is_durable() {
    let database = with_one_connection().await;
    let other = with_one_connection().await;
    let mut cancelled = 0;
    for round in 0..1_000 {
        let mut begin = Box::pin(database.begin(Purpose::Write));
        let is_answered = poll!(&mut begin).is_ready();
        drop(begin);
        if is_answered {
            continue;
        }
        cancelled += 1;
        let write = format!("INSERT INTO accounts VALUES ('{round}', 0)");
        database.execute_unprepared(&write).await.expect("a write");
        let read = format!("SELECT FROM accounts WHERE account_id = '{round}'");
        let found = other.execute_unprepared(&read).await.expect("a read");
        assert_eq!(found.rows_affected(), 1, "the write is not committed");
        if cancelled == 10 {
            return;
        }
    }
    panic!("BEGIN was cancelled {cancelled} times only");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn a_statement_keeps_its_error_when_the_rollback_fails_too() {
    let database = with_one_connection().await;
    let first = || DbErr::Custom("the first error".to_owned());
    let run = database.run_in_transaction::<(), _>(move |transaction| {
        Box::pin(async move {
            let end = "SELECT pg_terminate_backend(pg_backend_pid())";
            let ended = transaction.execute_unprepared(end).await;
            ended.expect_err("the connection is lost");
            Err(first())
        })
    });
    assert_eq!(run.await, Err(first()));
}
