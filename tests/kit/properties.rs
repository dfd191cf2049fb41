//! How a property is checked: many cases, each in an account of its own.

use std::{env, fmt::Debug};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestRunner},
};
use tokio::time::timeout;

use super::{
    client::Client,
    databases::{Database, runtime},
    deadline::TEST_TIMEOUT,
    store_server,
    stored_sizes::stored_sizes_are_those_of_the_content,
};

/// Checks the property with every case that the strategy makes, and panics with the
/// smallest case that breaks it.
pub fn check<S, P, F>(database: Database, strategy: S, cases: u32, property: P)
where
    S: Strategy,
    S::Value: Debug,
    P: Fn(Client, S::Value) -> F,
    F: Future<Output = ()>,
{
    let (server, url) = (database.server(), database.url());
    // The default takes the number from PROPTEST_CASES.
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let runtime = runtime();
    let (client, store) =
        runtime.block_on(async { (Client::at(server), store_server::open(&url, 1).await) });
    let checked = TestRunner::new(config).run(&strategy, |case| {
        let holds = async {
            let client = client.other_account();
            let account = client.account().to_owned();
            property(client, case).await;
            // A call shows only whether a size is within its limit, so the database is read.
            stored_sizes_are_those_of_the_content(&store, &url, &account).await;
        };
        let holds = async { timeout(TEST_TIMEOUT, holds).await };
        runtime.block_on(holds).expect("the case ends");
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
    database.check_statements();
}
