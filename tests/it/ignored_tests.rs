//! What the tests of this run leave out.

use crate::kit::postgres;

#[cfg(no_postgres)]
#[test]
fn only_sqlite_is_tested_here() {
    use std::io::Write;
    let notice = "\n*** There is no PostgreSQL here: only SQLite is tested. ***\n\n";
    // The test runner captures `eprint!`.
    let written = std::io::stderr().write_all(notice.as_bytes());
    written.expect("standard error");
}

#[test]
fn postgres_is_here_where_it_is_required() {
    let required = std::env::var_os("EXPERTISE_REQUIRE_POSTGRES").is_some_and(|value| value == "1");
    assert!(
        !required || !cfg!(no_postgres),
        "EXPERTISE_REQUIRE_POSTGRES=1 is set, and there is no PostgreSQL here"
    );
}

#[test]
fn nothing_is_left_out_that_is_installed() {
    let stale = cfg!(no_postgres_programs) && postgres::is_installed();
    assert!(
        !stale,
        "a program that tests need was installed after they were built: run `touch build.rs`"
    );
}
