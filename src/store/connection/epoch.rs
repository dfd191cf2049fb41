//! Decides which open connections may still be used.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// The least time between two expiries. Without it, every write would open a new
/// connection while the database is a standby, where all are read-only.
const MIN_EXPIRY_INTERVAL: Duration = Duration::from_millis(500);
/// What the clock shows at `start`, in microseconds. Not 0, as `oldest_usable` is 0 until the
/// first expiry.
const START_MICROS: u64 = 3_600_000_000;
/// How inexact the age of a connection may be.
const AGE_TOLERANCE: Duration = Duration::from_secs(1);

/// Connections that were opened before this time are not used again. Their sessions may
/// stay read-only when the database no longer is, or lead to a server that became a
/// standby.
pub struct ConnectionEpoch {
    start: Instant,
    /// The time in microseconds, on a clock that shows [`START_MICROS`] at `start`.
    oldest_usable: AtomicU64,
}

impl ConnectionEpoch {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            oldest_usable: AtomicU64::new(0),
        }
    }

    /// Every connection that is open now will be closed instead of used. Does nothing and
    /// returns `false` within [`MIN_EXPIRY_INTERVAL`] after the last time.
    pub fn expire(&self) -> bool {
        let now = self.now();
        let interval = micros(MIN_EXPIRY_INTERVAL);
        let moved = |last| (last == 0 || now >= last + interval).then_some(now);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.oldest_usable.fetch_update(set, read, moved).is_ok()
    }

    /// As [`ConnectionEpoch::expire`], but at any time. As ages are inexact, connections that are
    /// opened within [`AGE_TOLERANCE`] from now are not used either.
    pub fn invalidate_all(&self) {
        let now = self.now() + micros(AGE_TOLERANCE);
        self.oldest_usable.fetch_max(now, Ordering::SeqCst);
    }

    /// Whether a connection of this age may be used.
    pub fn includes(&self, age: Duration) -> bool {
        let opened = self.now().saturating_sub(micros(age));
        opened >= self.oldest_usable.load(Ordering::SeqCst)
    }

    /// Another number after connections were expired or invalidated.
    pub fn number(&self) -> u64 {
        self.oldest_usable.load(Ordering::SeqCst)
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
