//! docs/analysis.md lists the validation rules that the service uses.

#![allow(clippy::expect_used)]

use super::page;

const COMMITTED: &str = include_str!("../../docs/analysis.md");

#[test]
fn the_page_of_rules_is_current() {
    let current = page::write();
    let mut lines = COMMITTED.lines().zip(current.lines());
    let differing = lines.find(|(committed, current)| committed != current);
    assert!(
        COMMITTED == current,
        "docs/analysis.md is out of date, regenerate it: \
         cargo run --example analysis > docs/analysis.md\n{differing:#?}"
    );
}
