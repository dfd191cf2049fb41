//! Writes the page of the rules of validation from the table that the service uses:
//! `cargo run --example analysis > docs/analysis.md`.
//!
//! A test fails when the committed page differs from what this prints.

#[path = "analysis/page.rs"]
mod page;

fn main() {
    print!("{}", page::write());
}

#[cfg(test)]
#[path = "analysis/tests.rs"]
mod tests;
