//! How a property is checked: many cases, each in an account of its own.

use std::{env, fmt::Debug};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestRunner},
};

use super::{
    client::Client,
    databases::{Database, runtime},
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
    let Some(server) = database.server() else {
        return;
    };
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
    let client = runtime.block_on(async { Client::at(server) });
    let checked = TestRunner::new(config).run(&strategy, |case| {
        runtime.block_on(property(client.other_account(), case));
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}");
    }
    database.check_statements();
}
