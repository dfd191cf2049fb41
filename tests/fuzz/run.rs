//! How a target is run: so many times, each from a seed of its own.

use std::{
    env, fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use super::chance::Chance;

/// How many executions the targets share unless the environment says otherwise.
const EXECUTIONS: u64 = 60_000;
/// An execution that takes longer does something without bounds. Far beyond
/// what any takes, as the machine may be busy.
const BOUND: Duration = Duration::from_secs(20);

/// Runs a target with its share, in thousandths, of the executions.
pub fn run(target: &'static str, share: u64, mut execute: impl FnMut(&mut Chance)) {
    let executions = setting("EXPERTISE_FUZZ_EXECUTIONS").unwrap_or(EXECUTIONS);
    let executions = (executions * share / 1_000).max(1);
    let seed = setting("EXPERTISE_FUZZ_SEED").unwrap_or(1);
    let mut seeds = Chance::new(target.bytes().fold(seed, |seed, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    }));
    let begun = Instant::now();
    for _ in 0..executions {
        let mut chance = Chance::new(seeds.next());
        let begun = Instant::now();
        execute(&mut chance);
        let took = begun.elapsed();
        assert!(took < BOUND, "{target}: {took:?}");
    }
    let took = begun.elapsed();
    println!("{target}: {executions} executions in {took:.1?}, seed {seed}");
}

fn setting(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

/// An input that is at hand: printed and kept when something breaks.
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
        eprintln!("{}: kept in {}: {text:?}", self.target, file.display());
    }
}
