#![allow(clippy::expect_used)]

use super::*;
use crate::{
    config::DatabaseUrl,
    store::connection::{self, ConnectOptions},
};

#[tokio::test]
async fn a_statement_keeps_its_error_when_the_rollback_fails_too() {
    let url = DatabaseUrl::parse("sqlite::memory:").expect("the URL of a database");
    let options = ConnectOptions {
        max_connections: 1,
        migrate: true,
        serves: true,
        max_wait: None,
        metrics: Arc::default(),
    };
    let connections = connection::connect(&url, &options).await;
    let database = connections.unwrap_or_else(|error| panic!("{error}")).writer;
    let first = || DbErr::Custom("the first error".to_owned());
    let run = database.run_in_transaction::<(), _>(move |transaction| {
        Box::pin(async move {
            let ended = transaction.execute_unprepared("ROLLBACK").await;
            ended.expect("nothing is left to roll back");
            Err(first())
        })
    });
    assert_eq!(run.await, Err(first()));
}
