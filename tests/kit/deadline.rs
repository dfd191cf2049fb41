//! Waiting that always ends.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Far longer than anything here takes: a wait that reaches it has hung.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// Far longer than any test takes, also on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Most commands end in a moment.
const BLOCKING_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Polls until there is a value.
///
/// # Panics
/// After [`WAIT_TIMEOUT`].
pub async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(started.elapsed() < WAIT_TIMEOUT, "timed out: {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Polls until the condition holds.
///
/// # Panics
/// After [`WAIT_TIMEOUT`].
pub async fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, async || condition().then_some(())).await;
}

/// Polls until there is a value, and blocks the thread; `None` after the time-out.
pub fn poll_for<T>(timeout: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        let value = poll();
        if value.is_some() || started.elapsed() >= timeout {
            return value;
        }
        thread::sleep(BLOCKING_POLL_INTERVAL);
    }
}

/// Awaits a future.
///
/// # Panics
/// After [`WAIT_TIMEOUT`].
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(WAIT_TIMEOUT, future).await;
    done.unwrap_or_else(|_| panic!("timed out: {what}"))
}
