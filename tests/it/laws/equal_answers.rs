//! SQLite and PostgreSQL give equal answers to a history of writes, and are left with equal
//! guides.

use proptest::collection::vec;

use crate::{
    databases::{Database, properties},
    kit::{
        random_writes::{self, Write, write},
        runtime::runtime,
        snapshot::{message, number_ids},
    },
    prelude::*,
};

const CASES: u32 = 10;

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn both_databases_give_equal_answers() {
    let runtime = runtime();
    properties::check_cases(vec(write(), 1..30), CASES, |history| {
        let [sqlite, postgres] = [Database::Sqlite, Database::Postgres].map(|database| {
            let address = database.server().address();
            runtime.block_on(async { answers(&Client::at(address), &history).await })
        });
        for (sqlite, postgres) in sqlite.lines().zip(postgres.lines()) {
            assert_eq!(sqlite, postgres);
        }
        assert_eq!(sqlite, postgres);
    });
}

/// A line for the answer to each write, and for each guide at the end. Ids are numbered, and times
/// and etags are left out.
async fn answers(client: &Client, history: &[Write]) -> String {
    let mut lines = Vec::new();
    for (number, write) in history.iter().enumerate() {
        let answer = random_writes::apply(client, write, number).await;
        let answer = answer.unwrap_or_default();
        lines.push(format!("{write:?}: {answer}"));
    }
    for (task, steps) in client.tasks_with_steps().await {
        lines.push(message("Task", &task).to_string());
        lines.extend(steps.iter().map(|step| message("Step", step).to_string()));
    }
    number_ids(&lines.join("\n"))
}
