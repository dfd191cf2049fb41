//! Programs and rights that a test needs and a machine may lack.

/// Fails a test that cannot run on this machine. `build.rs` looks for the same things,
/// and the tests that need what it does not find are ignored.
pub fn cannot_run_without(what: &str) -> ! {
    panic!("there is no {what} on this machine, so this test cannot run")
}
