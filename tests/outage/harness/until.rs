//! Waiting for something to be so.

use std::time::{Duration, Instant};

/// Far beyond what anything here takes.
pub const BOUND: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(10);

/// Looks again and again until there is something.
///
/// # Panics
/// When there is nothing for a long time.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < BOUND, "never: {what}");
        tokio::time::sleep(AGAIN).await;
    }
}
