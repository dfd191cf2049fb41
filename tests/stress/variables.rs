//! The numbers in environment variables, which tests/README.md lists.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::kit::rng::Rng;

/// The number in an environment variable; `None` where it is not set.
pub fn number_from_env(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is {text:?}: it must be a number")))
}

/// Random numbers from the seed that the environment variable names, or else from the clock. The
/// seed is printed, so that a failure can be repeated.
pub fn rng_from_env(test: &str, variable: &str) -> Rng {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock = since.expect("a clock after 1970").as_nanos() as u64;
    let seed = number_from_env(variable).unwrap_or(clock);
    println!("{test}: {variable}={seed}");
    Rng::new(seed)
}
