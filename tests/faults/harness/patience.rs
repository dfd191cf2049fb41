//! Calls to a service whose database may be busy or on its way back.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tonic::Status;

use super::writer::{Verdict, verdict};

/// How often a call is made again, and for how long.
const AGAIN: Duration = Duration::from_millis(100);
const BOUND: Duration = Duration::from_secs(120);

/// Bears with a service that cannot answer now.
pub struct Patience(Instant);

impl Patience {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Waits for the next try.
    ///
    /// # Panics
    /// When the service says something else, or has said the same for minutes.
    pub async fn bear(&self, status: Status) {
        let bearable = verdict(&status) == Verdict::Unknown && self.0.elapsed() < BOUND;
        assert!(bearable, "it serves on: {status:?}");
        sleep(AGAIN).await;
    }
}

/// Makes a call until the service can answer it.
macro_rules! patiently {
    ($call:expr) => {{
        let patience = crate::harness::patience::Patience::new();
        loop {
            match $call {
                Ok(answer) => break answer,
                Err(status) => patience.bear(status).await,
            }
        }
    }};
}

pub(crate) use patiently;
