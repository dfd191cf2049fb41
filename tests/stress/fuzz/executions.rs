//! Executions of a target, each with a seed of its own.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    kit::rng::{Rng, number_from_env},
    machine,
};

/// How many executions the targets share unless the environment says otherwise.
const EXECUTIONS: u64 = 8_000;
/// Far longer than an execution takes, also on a busy machine.
const MAX_EXECUTION_TIME: Duration = Duration::from_secs(20);

/// Executes a target as often as its share of the executions, in thousandths.
pub fn execute(target: &'static str, share: u64, mut target_fn: impl FnMut(&mut Rng)) {
    let _machine = machine::shared();
    let executions = number_from_env("EXPERTISE_TEST_FUZZ_EXECUTIONS").unwrap_or(EXECUTIONS);
    let executions = (executions * share / 1_000).max(1);
    let seed = number_from_env("EXPERTISE_TEST_FUZZ_SEED").unwrap_or(1);
    let mut seeds = Rng::new(target.bytes().fold(seed, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    }));
    let started = Instant::now();
    for _ in 0..executions {
        let mut rng = Rng::new(seeds.next());
        let started = Instant::now();
        target_fn(&mut rng);
        let took = started.elapsed();
        assert!(took < MAX_EXECUTION_TIME, "{target}: {took:?}");
    }
    let took = started.elapsed();
    println!("{target}: {executions} executions in {took:.1?}, seed {seed}");
}

/// The current input, printed and saved when this is dropped by a panic.
pub struct Input<'a> {
    pub target: &'a str,
    pub bytes: &'a [u8],
}

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let name = self.target.replace('/', ".");
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}.bin"));
        let _ = fs::write(&file, self.bytes);
        let text = String::from_utf8_lossy(self.bytes);
        let text: String = text.chars().take(2_000).collect();
        eprintln!("{}: saved in {}: {text:?}", self.target, file.display());
    }
}
