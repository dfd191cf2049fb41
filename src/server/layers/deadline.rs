//! Deadlines of calls.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tonic::Status;

use crate::grpc::status;

const GRPC_TIMEOUT: &str = "grpc-timeout";
/// tonic also enforces the caller's timeout, but with an error without details. The server ends
/// the call first.
const EARLIER: Duration = Duration::from_millis(1);

/// The shortest timeout that the caller requests, if any.
pub fn requested(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let mut shortest = None;
    for value in headers.get_all(GRPC_TIMEOUT) {
        let timeout = parse(value).ok_or_else(|| {
            let form = "must be 1 to 8 digits and one of the units H M S m u n";
            status::invalid_metadata(GRPC_TIMEOUT, form)
        })?;
        let timeout = timeout.saturating_sub(EARLIER);
        shortest = Some(shortest.map_or(timeout, |shortest| timeout.min(shortest)));
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let timeout = parse(&HeaderValue::from_static(text));
            assert_eq!(timeout, Some(Duration::from_nanos(nanos)), "{text}");
        }
    }
}
