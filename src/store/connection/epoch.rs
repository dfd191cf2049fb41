//! Decides which open connections may still be used.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// The least time between two expiries. Without it, every write would open a new
/// connection while the database is a standby, where all are read-only.
const MIN_EXPIRY_INTERVAL: Duration = Duration::from_millis(500);
/// The time of `start` in microseconds, larger than the age of any connection.
const START_MICROS: u64 = 3_600_000_000;
/// How inexact the age of a connection may be.
const AGE_TOLERANCE: Duration = Duration::from_secs(1);

/// The time from which on connections must have been opened to be used. A session may
/// stay read-only when the database no longer is, or lead to a server that became a
/// standby.
pub struct ConnectionEpoch {
    start: Instant,
    /// Microseconds, on a clock that shows [`START_MICROS`] at `start`.
    begin: AtomicU64,
}

impl ConnectionEpoch {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            begin: AtomicU64::new(0),
        }
    }

    /// Has every open connection closed before its next use. Does nothing and returns
    /// `false` within [`MIN_EXPIRY_INTERVAL`] after the last time.
    pub fn expire(&self) -> bool {
        let now = self.now();
        let again = micros(MIN_EXPIRY_INTERVAL);
        let moved = |last| (last == 0 || now >= last + again).then_some(now);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.begin.fetch_update(set, read, moved).is_ok()
    }

    /// Has every open connection closed before its next use, at any time.
    pub fn invalidate_all(&self) {
        let now = self.now() + micros(AGE_TOLERANCE);
        self.begin.fetch_max(now, Ordering::SeqCst);
    }

    /// Whether a connection of this age may be used.
    pub fn includes(&self, age: Duration) -> bool {
        let opened = self.now().saturating_sub(micros(age));
        opened >= self.begin.load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        START_MICROS + micros(self.start.elapsed())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_connections_expire_and_later_ones_do_not() {
        let epoch = ConnectionEpoch::new();
        assert!(epoch.includes(Duration::from_secs(3600)));
        assert!(epoch.includes(Duration::ZERO));
        assert!(epoch.expire());
        assert!(!epoch.includes(Duration::from_secs(1)));
        assert!(epoch.includes(Duration::ZERO));
        assert!(!epoch.expire());
    }

    #[test]
    fn invalidated_connections_are_not_used_even_right_after_an_expiry() {
        let epoch = ConnectionEpoch::new();
        assert!(epoch.expire());
        epoch.invalidate_all();
        assert!(!epoch.includes(Duration::ZERO));
    }
}
