//! Which connections are kept, on an SQLite database in memory.

#![allow(clippy::expect_used)]

use std::pin::pin;

use futures_util::FutureExt;
use sqlx::{SqlitePool, sqlite::SqlitePoolOptions};
use tokio::{runtime::Runtime, task::yield_now, time};

use super::*;

const SLOW: &str = "WITH RECURSIVE numbers (n) AS \
     (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000) \
     SELECT count(*) FROM numbers";

/// A pool of one connection.
async fn pool() -> Pool {
    pool_of(1).await
}

async fn pool_of(connections: u32) -> Pool {
    let options = SqlitePoolOptions::new().max_connections(connections);
    let driver: SqlitePool = options.connect("sqlite::memory:").await.expect("a pool");
    Pool::new(DriverPool::Sqlite(driver), Arc::new(Generation::new()))
}

async fn run(pool: &Pool, sql: &str) -> Result<ExecResult, DbErr> {
    pool.acquire(&AccountId::NONE)
        .await?
        .execute_unprepared(sql)
        .await
}

#[tokio::test]
async fn an_account_leaves_a_connection_for_another() {
    let pool = pool_of(4).await;
    let [one, other] = ["one", "other"].map(|id| AccountId::parse(id).expect("an id"));
    let mut in_use = Vec::new();
    for _ in 0..3 {
        in_use.push(pool.acquire(&one).await.expect("a connection"));
    }
    let mut fourth = pin!(pool.acquire(&one));
    assert!((&mut fourth).now_or_never().is_none());
    pool.acquire(&other).await.expect("the fourth connection");
    assert!((&mut fourth).now_or_never().is_none());
    in_use.pop();
    fourth.await.expect("the third connection");
}

fn kept(pool: &Pool) -> usize {
    pool.kept.lock().leases.len()
}

#[tokio::test]
async fn a_connection_is_kept_after_its_statements_and_transactions_have_ended() {
    let pool = pool().await;
    for _ in 0..2 {
        run(&pool, "SELECT 1").await.expect("a statement");
        assert_eq!(kept(&pool), 1);
        assert_eq!(pool.size().idle, 1);
    }
    let mut connection = pool.acquire(&AccountId::NONE).await.expect("a connection");
    assert_eq!(kept(&pool), 0);
    connection.begin("BEGIN".to_owned()).await.expect("BEGIN");
    connection.commit().await.expect("COMMIT");
    drop(connection);
    assert_eq!(kept(&pool), 1);
}

#[test]
fn open_connections_expire_and_later_ones_do_not() {
    let generation = Generation::new();
    assert!(generation.includes(Duration::from_secs(3600)));
    assert!(generation.includes(Duration::ZERO));
    assert!(generation.expire());
    assert!(!generation.includes(Duration::from_secs(1)));
    assert!(generation.includes(Duration::ZERO));
    assert!(!generation.expire());
}

#[tokio::test]
async fn after_an_error_or_in_a_transaction_it_returns_to_the_driver() {
    let pool = pool().await;
    run(&pool, "no SQL").await.expect_err("a syntax error");
    assert_eq!(kept(&pool), 0);
    let mut connection = pool.acquire(&AccountId::NONE).await.expect("a connection");
    connection.begin("BEGIN".to_owned()).await.expect("BEGIN");
    connection.start_rollback();
    drop(connection);
    assert_eq!(kept(&pool), 0);
    // The transaction was rolled back.
    let mut connection = pool.acquire(&AccountId::NONE).await.expect("a connection");
    connection.begin("BEGIN".to_owned()).await.expect("BEGIN");
}

#[tokio::test]
async fn a_cancelled_statement_returns_its_connection_to_the_driver() {
    let pool = pool().await;
    let mut connection = pool.acquire(&AccountId::NONE).await.expect("a connection");
    let mut statement = Box::pin(connection.execute_unprepared(SLOW));
    let polled = futures_util::poll!(&mut statement);
    assert!(polled.is_pending());
    drop(statement);
    drop(connection);
    assert_eq!(kept(&pool), 0);
    run(&pool, "SELECT 1").await.expect("a statement");
}

#[tokio::test]
async fn a_cancelled_begin_closes_its_connection() {
    let pool = pool().await;
    let mut connection = pool.acquire(&AccountId::NONE).await.expect("a connection");
    let mut begin = Box::pin(connection.begin(format!("BEGIN; {SLOW}")));
    assert!(futures_util::poll!(&mut begin).is_pending());
    drop(begin);
    drop(connection);
    while pool.size().open > 0 {
        yield_now().await;
    }
    assert_eq!(kept(&pool), 0);
}

#[tokio::test]
async fn expired_and_idle_connections_return_to_the_driver() {
    let pool = pool().await;
    run(&pool, "SELECT 1").await.expect("a statement");
    pool.expire();
    assert!(pool.kept.take().is_none());

    run(&pool, "SELECT 1").await.expect("a statement");
    assert_eq!(kept(&pool), 1);
    time::pause();
    time::sleep(UNCHECKED_IDLE_TIME * 3).await;
    time::resume();
    assert_eq!(kept(&pool), 0);
    run(&pool, "SELECT 1").await.expect("a statement");
}

#[tokio::test]
async fn a_connection_returned_to_a_closing_pool_is_not_kept() {
    let pool = pool().await;
    let in_use = pool.acquire(&AccountId::NONE).await.expect("a connection");
    let closing = pool.clone();
    let task = tokio::spawn(async move { closing.close().await });
    while !pool.kept.lock().closed {
        yield_now().await;
    }
    drop(in_use);
    task.await.expect("it is closed");
    assert_eq!(kept(&pool), 0);
    let refused = run(&pool, "SELECT 1").await.expect_err("it is closed");
    assert_eq!(refused, closed());
}

#[tokio::test]
async fn waiting_for_a_connection_ends() {
    let pool = pool().await;
    let _in_use = pool.acquire(&AccountId::NONE).await.expect("a connection");
    time::pause();
    let waited = run(&pool, "SELECT 1").await;
    let timed_out = DbErr::ConnectionAcquire(ConnAcquireErr::Timeout);
    assert_eq!(waited.expect_err("none is free"), timed_out);
}

/// A runtime, and a pool that keeps a connection.
fn runtime_and_pool() -> (Runtime, Pool) {
    let runtime = Runtime::new().expect("a runtime");
    let pool = runtime.block_on(async {
        let pool = pool().await;
        run(&pool, "SELECT 1").await.expect("a statement");
        pool
    });
    assert_eq!(kept(&pool), 1);
    (runtime, pool)
}

#[test]
fn a_pool_can_be_dropped_after_its_runtime() {
    let (runtime, pool) = runtime_and_pool();
    drop(runtime);
    drop(pool);
}

#[test]
fn a_runtime_can_be_dropped_after_its_pool() {
    let (runtime, pool) = runtime_and_pool();
    drop(pool);
    drop(runtime);
}
