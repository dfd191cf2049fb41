//! What a test needs and does not find.

use std::{env, io::Write};

/// Says that something is not here, so that a part was not tested.
///
/// # Panics
/// When this variable asks for it with `1`.
pub fn say(what: &str, required: &str) {
    assert!(
        !env::var(required).is_ok_and(|value| value == "1"),
        "{required}=1, but there is no {what}"
    );
    // Not `eprint!`, which the test runner captures.
    let notice = format!("\n*** No {what} here: this was not tested. ***\n\n");
    let _ = std::io::stderr().write_all(notice.as_bytes());
}
