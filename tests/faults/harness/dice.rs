//! Chance that can be played again.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

/// A sequence of numbers that follows from its seed: SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of this run. Their seed is that of `EXPERTISE_FAULTS_SEED`, or else
    /// of the clock, and is said for whoever wants the same again.
    pub fn of_this_run(test: &str) -> Self {
        let given = env::var("EXPERTISE_FAULTS_SEED");
        let seed = given.map_or_else(|_| clock(), |seed| seed.parse().expect("a number"));
        // Shown with a failure alone, as the test runner captures it.
        println!("{test}: EXPERTISE_FAULTS_SEED={seed}");
        Self(seed)
    }

    /// Dice of their own for somebody, that follow from these.
    pub fn hand_on(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Yes once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them; `None` when there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let end = from.len() as u64;
        (end > 0).then(|| &from[self.below(end) as usize])
    }

    /// Puts them into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// An id for a call that may be repeated.
    pub fn request_id(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
            .into_uuid()
            .to_string()
    }
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock after 1970").as_nanos() as u64
}
