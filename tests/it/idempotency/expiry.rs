//! How long the outcome of a call is kept for a retry. Time is moved by making what is
//! stored older.

use sqlx::{Connection, PgConnection, SqliteConnection};

use super::{create, send};
use crate::kit::{prelude::*, store_server};

const HOUR_MICROS: i64 = 60 * 60 * 1_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
const ACCOUNT: &str = "expiry";

on_own_databases![
    the_next_outcome_removes_those_that_expired,
    an_outcome_is_kept_for_two_days,
    an_outcome_outlives_others_that_expire,
];

/// A database whose outcomes are counted and made older.
struct Outcomes {
    url: String,
}

impl Outcomes {
    fn serve(url: String) -> Self {
        Self { url }
    }

    async fn client(&self) -> Client {
        let store = store_server::open(&self.url, 2).await;
        store_server::serve_store(store, ACCOUNT).await
    }

    async fn count(&self) -> i64 {
        let sql = "SELECT count(*) FROM request_outcomes";
        if self.url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(&self.url)
                .await
                .expect("the file");
            sqlx::query_scalar(sql).fetch_one(&mut file).await
        } else {
            let mut database = PgConnection::connect(&self.url).await.expect("PostgreSQL");
            sqlx::query_scalar(sql).fetch_one(&mut database).await
        }
        .expect("a count")
    }

    /// Makes every outcome older.
    async fn age(&self, micros: i64) {
        let sql = "UPDATE request_outcomes SET created_ts = created_ts - $1";
        if self.url.starts_with("sqlite:") {
            let mut file = SqliteConnection::connect(&self.url)
                .await
                .expect("the file");
            let aged = sqlx::query(sql).bind(micros).execute(&mut file).await;
            aged.expect("an update");
        } else {
            let mut database = PgConnection::connect(&self.url).await.expect("PostgreSQL");
            let aged = sqlx::query(sql).bind(micros).execute(&mut database).await;
            aged.expect("an update");
        }
    }
}

/// Imports with a request id, which is done under locks; creates are not.
async fn import(client: &Client) {
    let request = ImportTaskRequest {
        document: Some(document("Imported", document_steps(&["a"]))),
        request_id: unknown_guid(),
        ..ImportTaskRequest::default()
    };
    client.send_import(request).await.accepted();
}

async fn the_next_outcome_removes_those_that_expired(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    for round in 0..3 {
        for _ in 0..4 {
            let request = create("Once", &unknown_guid());
            send(&client, request).await.accepted();
        }
        import(&client).await;
        assert_eq!(outcomes.count().await, 5, "round {round}");
        outcomes.age(3 * DAY_MICROS).await;
        match round {
            0 => import(&client).await,
            _ => drop(
                send(&client, create("Next", &unknown_guid()))
                    .await
                    .accepted(),
            ),
        }
        assert_eq!(outcomes.count().await, 1, "round {round}");
        outcomes.age(3 * DAY_MICROS).await;
    }
}

async fn an_outcome_is_kept_for_two_days(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    let request = create("Once", &unknown_guid());
    let first = send(&client, request.clone()).await.accepted();
    outcomes.age(2 * DAY_MICROS - HOUR_MICROS).await;
    send(&client, create("Next", &unknown_guid()))
        .await
        .accepted();
    import(&client).await;
    assert_eq!(send(&client, request.clone()).await.accepted(), first);
    assert_eq!(outcomes.count().await, 3);
    outcomes.age(2 * HOUR_MICROS).await;
    import(&client).await;
    assert_eq!(outcomes.count().await, 3);
    assert_ne!(send(&client, request).await.accepted(), first);
}

async fn an_outcome_outlives_others_that_expire(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    send(&client, create("Old", &unknown_guid()))
        .await
        .accepted();
    outcomes.age(3 * DAY_MICROS).await;
    let (a, b) = (create("A", &unknown_guid()), create("B", &unknown_guid()));
    let first_a = send(&client, a.clone()).await.accepted();
    let first_b = send(&client, b.clone()).await.accepted();
    assert_eq!(outcomes.count().await, 2);
    assert_eq!(send(&client, a).await.accepted(), first_a);
    assert_eq!(send(&client, b).await.accepted(), first_b);
    assert_eq!(client.all_tasks().await.len(), 3);
}
