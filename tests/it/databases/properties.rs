//! Checks properties with many cases, each in its own account.

use std::{env, fmt::Debug};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestRunner},
};
use tokio::time::timeout;

use super::Database;
use crate::kit::{client::Client, deadline::TEST_TIMEOUT, runtime::runtime};

/// Repeats the cases of a run that failed.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Checks the property with every case of the strategy, each in its own account. Panics with the
/// smallest failing case and the seed.
pub fn check<S, P, F>(database: Database, strategy: S, cases: u32, property: P)
where
    S: Strategy,
    S::Value: Debug,
    P: Fn(Client, S::Value) -> F,
    F: Future<Output = ()>,
{
    let runtime = runtime();
    let client = runtime.block_on(async { Client::at(database.server().address()) });
    check_cases(strategy, cases, |case| {
        let holds = property(client.other_account(), case);
        let holds = async { timeout(TEST_TIMEOUT, holds).await };
        runtime.block_on(holds).expect("the case ends");
    });
    database.check_statements();
}

/// The same, for a check that panics if the property does not hold.
pub fn check_cases<S>(strategy: S, cases: u32, holds: impl Fn(S::Value))
where
    S: Strategy,
    S::Value: Debug,
{
    // The default has the numbers of proptest's variables.
    let mut config = Config {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => uuid::Uuid::new_v4().as_u64_pair().0,
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let checked = TestRunner::new(config).run(&strategy, |case| {
        holds(case);
        Ok(())
    });
    if let Err(broken) = checked {
        panic!("{broken}\n{SEED}={seed} repeats it");
    }
}
