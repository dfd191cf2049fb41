//! How often and how soon something that failed is tried again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses that double, each shortened by chance to no less than its half, so
/// that those who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts after the first.
    pub retries: u32,
    /// The first pause.
    pub first: Duration,
}

impl Retry {
    /// The pause before a retry, counted from 0; `None` when there is none left.
    pub(crate) fn pause(&self, retry: u32) -> Option<Duration> {
        (retry < self.retries).then(|| {
            let factor = 1_u32.checked_shl(retry).unwrap_or(u32::MAX);
            let pause = self.first.saturating_mul(factor).min(LONGEST);
            // A fresh hasher is seeded at random.
            let chance = RandomState::new().hash_one(retry) as u32;
            let share = 0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0;
            pause.mul_f64(share)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_vary() {
        let first = Duration::from_millis(500);
        let retry = Retry { retries: 40, first };
        for (count, millis) in [(0, 500), (1, 1_000), (4, 8_000), (10, 30_000), (39, 30_000)] {
            let longest = Duration::from_millis(millis);
            let pause = retry.pause(count).unwrap_or_default();
            assert!(
                (longest / 2..=longest).contains(&pause),
                "{count}: {pause:?}"
            );
        }
        assert_eq!(retry.pause(40), None);
        let pauses = (0..20).map(|_| retry.pause(5));
        assert!(pauses.collect::<std::collections::HashSet<_>>().len() > 1);
    }
}
