//! Programs and rights that a test needs and a machine may lack.

use std::{env, io::Write};

/// Prints that something is missing, so that its tests did not run.
///
/// # Panics
/// When the environment variable `required` is 1.
pub fn report_missing(what: &str, required: &str) {
    assert!(
        !env::var(required).is_ok_and(|value| value == "1"),
        "{required}=1, but there is no {what}"
    );
    // The test runner captures `eprint!`.
    let notice = format!("\n*** No {what} here: its tests did not run. ***\n\n");
    let _ = std::io::stderr().write_all(notice.as_bytes());
}
