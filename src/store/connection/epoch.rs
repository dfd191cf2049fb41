//! Which connections may still be used.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long connections are used at least before they expire: on a standby every new one
/// is as read-only as the last.
const MIN_EPOCH: Duration = Duration::from_millis(500);
/// The time of `start`, in microseconds: larger than the age of any connection.
const START_MICROS: u64 = 3_600_000_000;
/// How far the age of a connection may be off when it is checked.
const AGE_TOLERANCE: Duration = Duration::from_secs(1);

/// The time from which on connections may be used. Older ones are closed: a session stays
/// read-only when the database no longer is, and may lead to a server that has become a
/// standby.
pub struct ConnectionEpoch {
    start: Instant,
    /// Microseconds, counted so that `start` is [`START_MICROS`].
    begin: AtomicU64,
}

impl ConnectionEpoch {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            begin: AtomicU64::new(0),
        }
    }

    /// Closes every connection that is open now before its next use. Whether that was
    /// done: not when it was done within the last [`MIN_EPOCH`].
    pub fn expire(&self) -> bool {
        let now = self.now();
        let again = micros(MIN_EPOCH);
        let moved = |last| (last == 0 || now >= last + again).then_some(now);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.begin.fetch_update(set, read, moved).is_ok()
    }

    /// Closes every connection that is open now before its next use, always.
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
