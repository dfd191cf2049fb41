//! Tests of the pauses between attempts, and of what is retried.

use std::collections::{HashMap, HashSet};

use backon::BackoffBuilder;
use tonic_types::{ErrorDetails, StatusExt};

use super::*;

#[test]
fn pauses_double_up_to_a_limit_and_vary() {
    let first_pause = Duration::from_millis(500);
    let retries = 40;
    let pauses = backoff(RetrySettings {
        retries,
        first_pause,
    });
    let pauses: Vec<Duration> = pauses.build().collect();
    assert_eq!(pauses.len(), 40);
    for (count, millis) in [(0, 500), (1, 1_000), (4, 8_000), (10, 30_000), (39, 30_000)] {
        let longest = Duration::from_millis(millis);
        let pause = pauses.get(count).copied().unwrap_or_default();
        assert!(
            (longest / 2..=longest).contains(&pause),
            "{count}: {pause:?}"
        );
    }
    let varied: HashSet<&Duration> = pauses.iter().skip(10).collect();
    assert!(varied.len() > 1);
}

#[test]
fn a_write_conflict_is_transient_and_another_etag_is_not() {
    for (reason, expected) in [("WRITE_CONFLICT", true), ("ETAG_MISMATCH", false)] {
        let details = ErrorDetails::with_error_info(reason, "expertise.v1", HashMap::new());
        let status = Status::with_error_details(Code::Aborted, "concurrent", details);
        assert_eq!(is_transient(&status), expected, "{reason}");
    }
}
