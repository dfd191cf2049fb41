//! Writes the page of the validation rules from the table that the service uses: `cargo run
//! --example analysis > docs/analysis.md`.
//!
//! A test fails if the committed page differs from what this prints.

#[path = "analysis/page.rs"]
mod page;

fn main() {
    print!("{}", page::write());
}

#[cfg(test)]
#[path = "analysis/tests.rs"]
mod tests;
