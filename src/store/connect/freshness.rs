//! Which connections are still of use.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long connections are used at least before they are expired: on a standby
/// every new one is as read-only as the last.
const INTERVAL: Duration = Duration::from_millis(500);
/// Where time begins, in microseconds: before the first connection.
const BEGINNING: u64 = 3_600_000_000;
/// How far the age of a connection may be off when it is looked at.
const BLUR: Duration = Duration::from_secs(1);

/// A moment. Connections opened before it are closed instead of used, as a session
/// stays read-only when the database no longer is, and an old one may lead to a
/// server that has become a standby.
pub struct Freshness {
    start: Instant,
    /// Microseconds, where `start` is [`BEGINNING`].
    moment: AtomicU64,
}

impl Freshness {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            moment: AtomicU64::new(0),
        }
    }

    /// Has every connection that is open now closed. Whether that was done: not
    /// when it was done within the last [`INTERVAL`].
    pub fn expire(&self) -> bool {
        let now = self.now();
        let again = micros(INTERVAL);
        let moved = |last| (last == 0 || now >= last + again).then_some(now);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        self.moment.fetch_update(set, read, moved).is_ok()
    }

    /// Has every connection that is open now closed, whatever was done before.
    pub fn condemn(&self) {
        let now = self.now() + micros(BLUR);
        self.moment.fetch_max(now, Ordering::SeqCst);
    }

    /// Whether a connection of this age may be used.
    pub fn includes(&self, age: Duration) -> bool {
        let opened = self.now().saturating_sub(micros(age));
        opened >= self.moment.load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        BEGINNING + micros(self.start.elapsed())
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_expires_and_what_is_opened_after_it_does_not() {
        let freshness = Freshness::new();
        assert!(freshness.includes(Duration::from_secs(3600)));
        assert!(freshness.includes(Duration::ZERO));
        assert!(freshness.expire());
        assert!(!freshness.includes(Duration::from_secs(1)));
        assert!(freshness.includes(Duration::ZERO));
        assert!(!freshness.expire());
    }

    #[test]
    fn what_is_condemned_is_not_used_even_when_connections_have_just_expired() {
        let freshness = Freshness::new();
        assert!(freshness.expire());
        freshness.condemn();
        assert!(!freshness.includes(Duration::ZERO));
    }
}
