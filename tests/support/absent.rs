//! What a machine does not have, said where a run would pass without it.

use std::{env, io::Write};

/// Says that something is not here, so that it was not tested.
///
/// # Panics
/// Where the environment requires it, by `required` = 1.
pub fn is_absent(what: &str, required: &str) {
    assert!(
        !env::var(required).is_ok_and(|value| value == "1"),
        "{required}=1, but there is no {what}"
    );
    // Not `eprint!`, which the test runner captures.
    let notice = format!("\n*** No {what} here: this was not tested. ***\n\n");
    let _ = std::io::stderr().write_all(notice.as_bytes());
}
