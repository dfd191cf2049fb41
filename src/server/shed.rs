//! Calls that are refused at the door while those before them fill the queue.
//!
//! *Invariant:* a refusal costs as little as can be. Were it to cost a fifth of a call,
//! a server asked for five times what it can do would do nothing but refuse. So
//! nothing of the call is read but its path, the answer is there already, and the log
//! counts these calls, in a line a second, where it tells of all others one by one.
//! What is left, 10 to 20 µs, is HTTP/2's: see `connections.rs` and the end of
//! `docs/performance.md`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use http::{HeaderMap, Response};
use tonic::body::Body;
use tracing::warn;

use crate::grpc::status;

/// How a server refuses calls that it has no time for.
pub(super) struct Shed {
    headers: HeaderMap,
    /// Calls that no line tells of yet.
    untold: AtomicU64,
    start: Instant,
    /// The second, from `start`, in which the next line is due.
    due: AtomicU64,
}

impl Shed {
    pub fn new() -> Self {
        let answer: Response<Body> = status::overloaded().into_http();
        Self {
            headers: answer.into_parts().0.headers,
            untold: AtomicU64::new(0),
            start: Instant::now(),
            due: AtomicU64::new(0),
        }
    }

    /// The answer to one more call.
    pub fn refuse(&self) -> Response<Body> {
        self.untold.fetch_add(1, Ordering::Relaxed);
        let second = self.start.elapsed().as_secs();
        let due = self.due.load(Ordering::Relaxed);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        if second >= due
            && self
                .due
                .compare_exchange(due, second + 1, set, read)
                .is_ok()
        {
            let calls = self.untold.swap(0, Ordering::Relaxed);
            warn!(
                calls,
                code = "RESOURCE_EXHAUSTED",
                reason = "OVERLOADED",
                "calls were refused at the door"
            );
        }
        let mut answer = Response::new(Body::empty());
        *answer.headers_mut() = self.headers.clone();
        answer
    }
}
