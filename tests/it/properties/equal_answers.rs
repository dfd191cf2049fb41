//! SQLite and PostgreSQL give equal answers to a history of writes, and are left with equal
//! guides.

use proptest::{collection::vec, test_runner::TestRunner};

use crate::kit::{
    databases::{Database, runtime},
    prelude::*,
    properties,
    random_writes::{self, Write, write},
    snapshot::Names,
};

const CASES: u32 = 16;

#[test]
#[cfg_attr(no_postgres, ignore = "no PostgreSQL here")]
fn both_databases_give_equal_answers() {
    let runtime = runtime();
    let checked = TestRunner::new(properties::config(CASES)).run(&vec(write(), 1..30), |history| {
        let [sqlite, postgres] = [Database::Sqlite, Database::Postgres].map(|database| {
            let address = database.server().address();
            runtime.block_on(async { answers(&Client::at(address), &history).await })
        });
        for (sqlite, postgres) in sqlite.iter().zip(&postgres) {
            assert_eq!(sqlite, postgres);
        }
        assert_eq!(sqlite.len(), postgres.len());
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
}

/// The answer to each write, and the guides at the end. Ids are numbered, and times and etags are
/// left out.
async fn answers(client: &Client, history: &[Write]) -> Vec<String> {
    let mut names = Names::default();
    let mut lines = Vec::new();
    for (number, write) in history.iter().enumerate() {
        let answer = random_writes::apply(client, write, number).await;
        let answer = answer.unwrap_or_default();
        lines.push(names.normalised(&format!("{write:?}: {answer}")));
    }
    for guide in client.tasks_with_steps().await {
        lines.push(names.normalised(&format!("{guide:?}")));
    }
    lines
}
