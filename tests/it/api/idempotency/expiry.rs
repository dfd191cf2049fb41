//! How long the outcome of a call is kept for a retry. Tests change the stored times to simulate
//! age.

use std::time::Duration;

use super::create;
use crate::{
    kit::{
        server::{Settings, TestServer},
        sql::SqlConnection,
    },
    prelude::*,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A server whose stored outcomes are counted and made older.
struct Outcomes {
    server: TestServer,
    database: SqlConnection,
}

impl Outcomes {
    async fn serve(url: String) -> Self {
        Self {
            server: TestServer::start(Settings::new(&url)).await,
            database: SqlConnection::open(&url).await,
        }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    async fn count(&mut self) -> i64 {
        self.database
            .number("SELECT count(*) FROM request_outcomes")
            .await
    }

    async fn age(&mut self, by: Duration) {
        let micros = by.as_micros();
        let age = format!("UPDATE request_outcomes SET created_ts = created_ts - {micros}");
        self.database.execute(&age).await;
    }
}

/// Imports with a request id, which is done under locks; creates are not.
async fn import(client: &Client) {
    let request = import_of(document("Imported", document_steps(&["a"])))
        .with(|it| it.request_id = unknown_guid());
    client.call(request).await.accepted();
}

async fn create_next(client: &Client) {
    let request = create("Next", &unknown_guid());
    client.call(request).await.accepted();
}

#[apply(on_both_databases)]
async fn the_next_outcome_removes_those_that_expired(url: String) {
    let mut outcomes = Outcomes::serve(url).await;
    let client = outcomes.client();
    for round in 0..3 {
        for _ in 0..4 {
            let request = create("Once", &unknown_guid());
            client.call(request).await.accepted();
        }
        import(&client).await;
        assert_eq!(outcomes.count().await, 5, "round {round}");
        outcomes.age(3 * DAY).await;
        match round {
            0 => import(&client).await,
            _ => create_next(&client).await,
        }
        assert_eq!(outcomes.count().await, 1, "round {round}");
        outcomes.age(3 * DAY).await;
    }
}

#[apply(on_both_databases)]
async fn an_outcome_is_kept_for_two_days(url: String) {
    let mut outcomes = Outcomes::serve(url).await;
    let client = outcomes.client();
    let request = create("Once", &unknown_guid());
    let first = client.call(request.clone()).await.accepted();
    outcomes.age(2 * DAY - HOUR).await;
    create_next(&client).await;
    import(&client).await;
    assert_eq!(client.call(request.clone()).await.accepted(), first);
    assert_eq!(outcomes.count().await, 3);
    outcomes.age(2 * HOUR).await;
    import(&client).await;
    assert_eq!(outcomes.count().await, 3);
    assert_ne!(client.call(request).await.accepted(), first);
}

#[apply(on_both_databases)]
async fn an_outcome_outlives_others_that_expire(url: String) {
    let mut outcomes = Outcomes::serve(url).await;
    let client = outcomes.client();
    let old = create("Old", &unknown_guid());
    client.call(old).await.accepted();
    outcomes.age(3 * DAY).await;
    let (a, b) = (create("A", &unknown_guid()), create("B", &unknown_guid()));
    let first_a = client.call(a.clone()).await.accepted();
    let first_b = client.call(b.clone()).await.accepted();
    assert_eq!(outcomes.count().await, 2);
    assert_eq!(client.call(a).await.accepted(), first_a);
    assert_eq!(client.call(b).await.accepted(), first_b);
    assert_eq!(client.all_tasks().await.len(), 3);
}
