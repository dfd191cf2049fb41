//! Refuses calls while the queue is full.
//!
//! *Invariant:* a refusal costs as little as possible. If it cost a fifth of a call, a
//! server that is asked for five times what it can do would only refuse. So nothing
//! of the call is read but its path, the response is prepared, and the log has one
//! line a second for all refused calls. The remaining 10 to 20 µs are spent in HTTP/2:
//! see `http2.rs` and the end of `docs/performance.md`.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use http::{HeaderMap, Response};
use tonic::body::Body;
use tracing::warn;

use crate::grpc::status;

pub struct LoadShedder {
    headers: HeaderMap,
    /// Refused calls that are not logged yet.
    unlogged: AtomicU64,
    start: Instant,
    /// The second, counted from `start`, from which the next line may be logged.
    next_log: AtomicU64,
}

impl LoadShedder {
    pub fn new() -> Self {
        let response: Response<Body> = status::overloaded().into_http();
        Self {
            headers: response.into_parts().0.headers,
            unlogged: AtomicU64::new(0),
            start: Instant::now(),
            next_log: AtomicU64::new(0),
        }
    }

    /// The response to a refused call.
    pub fn refuse(&self) -> Response<Body> {
        self.unlogged.fetch_add(1, Relaxed);
        let second = self.start.elapsed().as_secs();
        let next = self.next_log.load(Relaxed);
        let exchange = || {
            self.next_log
                .compare_exchange(next, second + 1, Relaxed, Relaxed)
        };
        if second >= next && exchange().is_ok() {
            warn!(
                calls = self.unlogged.swap(0, Relaxed),
                code = "RESOURCE_EXHAUSTED",
                reason = "OVERLOADED",
                "calls were refused: the queue is full"
            );
        }
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = self.headers.clone();
        response
    }
}
