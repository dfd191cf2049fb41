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

use crate::grpc::status;

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// The timeout that the caller requests, if any.
pub fn requested(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else {
        return Ok(None);
    };
    parse(value).map(Some).ok_or_else(|| {
        status::undecodable("grpc-timeout must be 1 to 8 digits and one of the units H M S m u n")
    })
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
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Duration> {
        parse(&HeaderValue::from_str(text).expect("a header's text"))
    }

    #[test]
    fn every_unit_of_grpc_is_read() {
        for (text, duration) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("6n", Duration::from_nanos(6)),
            ("0S", Duration::ZERO),
            ("00000007S", Duration::from_secs(7)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(read(text), Some(duration), "{text}");
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in [
            "",
            "S",
            "1",
            "1s",
            "1 S",
            "+1S",
            "-1S",
            "1.5S",
            "123456789S",
            "1SS",
            "9999999999999999999H",
            "xS",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn work_does_not_start_after_its_deadline() {
        let started = std::cell::Cell::new(false);
        let outcome = enforce(Instant::now(), async { started.set(true) }).await;
        assert!(outcome.is_none() && !started.get());
    }
}
