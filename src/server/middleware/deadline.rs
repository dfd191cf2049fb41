//! Deadlines of calls.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use crate::grpc::status::{self, DeadlineSource};

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// When a call must have ended, and who says so.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    pub at: Instant,
    pub source: DeadlineSource,
}

impl Deadline {
    /// The caller's deadline or that of the server for a call that was asked at a time, whichever
    /// comes first.
    pub fn new(asked: Instant, of_caller: Option<Instant>, limit: Duration) -> Self {
        let of_server = asked + limit;
        match of_caller {
            Some(at) if at <= of_server => Self {
                at,
                source: DeadlineSource::Caller,
            },
            Some(_) | None => Self {
                at: of_server,
                source: DeadlineSource::Server,
            },
        }
    }
}

/// The timeout that the caller requests, if any; of several the shortest.
pub fn requested(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let mut shortest = None;
    for value in headers.get_all(GRPC_TIMEOUT) {
        let timeout = parse(value).ok_or_else(|| {
            status::invalid_metadata(
                GRPC_TIMEOUT,
                "must be 1 to 8 digits and one of the units H M S m u n",
            )
        })?;
        shortest = Some(shortest.map_or(timeout, |shortest: Duration| shortest.min(timeout)));
    }
    Ok(shortest)
}

/// One to eight digits and a unit: `H` `M` `S` `m` `u` `n`.
fn parse(value: &HeaderValue) -> Option<Duration> {
    let (unit, digits) = value.as_bytes().split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(amount * 60 * 60),
        b'M' => Duration::from_secs(amount * 60),
        b'S' => Duration::from_secs(amount),
        b'm' => Duration::from_millis(amount),
        b'u' => Duration::from_micros(amount),
        b'n' => Duration::from_nanos(amount),
        _ => return None,
    })
}

/// Runs `work` until the deadline; `None` when it passed first. The clock is read at
/// each poll, as timers fire late on a busy machine: output that comes too late is
/// dropped.
pub async fn enforce<F: Future>(deadline: Instant, work: F) -> Option<F::Output> {
    if Instant::now() >= deadline {
        return None;
    }
    let mut work = pin!(work);
    let mut timer = pin!(sleep_until(deadline));
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        match polled {
            _ if Instant::now() >= deadline => Poll::Ready(None),
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => timer.as_mut().poll(context).map(|()| None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[tokio::test]
    async fn a_longer_timeout_of_the_caller_ends_at_the_limit_of_the_server() {
        use DeadlineSource::{Caller, Server};
        let asked = Instant::now();
        let after = |millis| asked + Duration::from_millis(millis);
        for (requested, ends, source) in [
            (Some(1), 1, Caller),
            (Some(9_999), 9_999, Caller),
            (Some(10_001), 10_000, Server),
            (Some(15_000), 10_000, Server),
            (Some(3_600_000), 10_000, Server),
            (None, 10_000, Server),
        ] {
            let limit = Duration::from_secs(10);
            let deadline = Deadline::new(asked, requested.map(after), limit);
            let found = (deadline.at, deadline.source);
            assert_eq!(found, (after(ends), source), "{requested:?}");
        }
    }

    #[test]
    fn a_timeout_counts_in_its_unit() {
        for (text, nanos) in [
            ("2H", 7_200_000_000_000),
            ("2M", 120_000_000_000),
            ("2S", 2_000_000_000),
            ("2m", 2_000_000),
            ("2u", 2_000),
            ("2n", 2),
            ("12345678m", 12_345_678_000_000),
        ] {
            let name = HeaderName::from_static(GRPC_TIMEOUT);
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(text))]);
            let timeout = requested(&headers).ok().flatten();
            assert_eq!(timeout, Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[tokio::test]
    async fn work_does_not_start_after_its_deadline() {
        let started = std::cell::Cell::new(false);
        let outcome = enforce(Instant::now(), async { started.set(true) }).await;
        assert!(outcome.is_none() && !started.get());
    }
}
