//! How long the outcome of a call is kept for a retry. Time is moved by making what is
//! stored older.

use super::create;
use crate::kit::{prelude::*, sql::SqlConnection, store_server};

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
        let mut database = SqlConnection::open(&self.url).await;
        database
            .number("SELECT count(*) FROM request_outcomes")
            .await
    }

    /// Makes every outcome older.
    async fn age(&self, micros: i64) {
        let mut database = SqlConnection::open(&self.url).await;
        let sql = format!("UPDATE request_outcomes SET created_ts = created_ts - {micros}");
        database.execute(&sql).await;
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

async fn create_next(client: &Client) {
    let request = create("Next", &unknown_guid());
    client.send_create_task(request).await.accepted();
}

async fn the_next_outcome_removes_those_that_expired(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    for round in 0..3 {
        for _ in 0..4 {
            let request = create("Once", &unknown_guid());
            client.send_create_task(request).await.accepted();
        }
        import(&client).await;
        assert_eq!(outcomes.count().await, 5, "round {round}");
        outcomes.age(3 * DAY_MICROS).await;
        match round {
            0 => import(&client).await,
            _ => create_next(&client).await,
        }
        assert_eq!(outcomes.count().await, 1, "round {round}");
        outcomes.age(3 * DAY_MICROS).await;
    }
}

async fn an_outcome_is_kept_for_two_days(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    let request = create("Once", &unknown_guid());
    let first = client.send_create_task(request.clone()).await.accepted();
    outcomes.age(2 * DAY_MICROS - HOUR_MICROS).await;
    create_next(&client).await;
    import(&client).await;
    assert_eq!(
        client.send_create_task(request.clone()).await.accepted(),
        first
    );
    assert_eq!(outcomes.count().await, 3);
    outcomes.age(2 * HOUR_MICROS).await;
    import(&client).await;
    assert_eq!(outcomes.count().await, 3);
    assert_ne!(client.send_create_task(request).await.accepted(), first);
}

async fn an_outcome_outlives_others_that_expire(url: String) {
    let outcomes = Outcomes::serve(url);
    let client = outcomes.client().await;
    let old = create("Old", &unknown_guid());
    client.send_create_task(old).await.accepted();
    outcomes.age(3 * DAY_MICROS).await;
    let (a, b) = (create("A", &unknown_guid()), create("B", &unknown_guid()));
    let first_a = client.send_create_task(a.clone()).await.accepted();
    let first_b = client.send_create_task(b.clone()).await.accepted();
    assert_eq!(outcomes.count().await, 2);
    assert_eq!(client.send_create_task(a).await.accepted(), first_a);
    assert_eq!(client.send_create_task(b).await.accepted(), first_b);
    assert_eq!(client.all_tasks().await.len(), 3);
}
