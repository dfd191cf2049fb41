//! How a law is tried: many cases, each in an account of its own.

use std::{env, fmt::Debug};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestRunner},
};

use super::{
    databases::{Database, runtime},
    world::World,
};

/// Tries the law with every case that the strategy makes, and panics with the
/// smallest case that breaks it.
pub fn hold<S, L, F>(database: Database, strategy: S, cases: u32, law: L)
where
    S: Strategy,
    S::Value: Debug,
    L: Fn(World, S::Value) -> F,
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
    let world = runtime.block_on(async { World::at(server) });
    let tried = TestRunner::new(config).run(&strategy, |case| {
        runtime.block_on(law(world.foreign(), case));
        Ok(())
    });
    if let Err(broken) = tried {
        panic!("{broken}");
    }
    database.judge();
}
