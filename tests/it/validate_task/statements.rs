//! How many statements a validation takes.

use super::*;
use crate::kit::{databases::postgres, scratch::Scratch, store_server};

/// Most statements of a validation, however large the guide is.
const STATEMENTS: u64 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_gets_six_statements_at_most() {
    let file = Scratch::of_this_run().path("validation_statements.db");
    six_statements_at_most(&format!("sqlite:{}", file.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
async fn postgres_gets_six_statements_at_most() {
    let url = postgres("validation_statements");
    six_statements_at_most(&url).await;
}

async fn six_statements_at_most(url: &str) {
    let (store, client) = store_server::serve(url, 4).await;
    let inner = client.imported(document("Inner", clean())).await;
    let linked = || document("", clean());
    let values = (0..20).map(|index| {
        let key = index.to_string();
        answer_with(&key, &format!("Text {key}"), linked())
    });
    let mut steps = clean();
    steps.insert(0, subtask(&Task::default(), &inner));
    steps.insert(1, observation_asking(linked_question(values.collect())));
    let guide = document("Outer", steps);
    let outer = client.imported(guide.clone()).await;
    for request in [validation_of(&outer.guid), validation_of_document(guide)] {
        let before = store.statements();
        client.validated(request).await;
        let took = store.statements() - before;
        assert!((1..=STATEMENTS).contains(&took), "{took} statements");
    }
}
