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
    let config = config(cases);
    let runtime = runtime();
    let client = runtime.block_on(async { Client::at(database.server().address()) });
    let checked = TestRunner::new(config).run(&strategy, |case| {
        let holds = property(client.other_account(), case);
        let holds = async { timeout(TEST_TIMEOUT, holds).await };
        runtime.block_on(holds).expect("the case ends");
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
    database.check_statements();
}

/// So many cases, unless `PROPTEST_CASES` names another number.
pub fn config(cases: u32) -> Config {
    // The default has the number of the variable.
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}
