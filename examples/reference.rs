//! Writes the reference of the contract from its descriptors and their comments:
//! `cargo run --example reference > docs/reference.md`.
//!
//! A test fails when the committed page differs from what this prints.

#[path = "reference/page.rs"]
mod page;

fn main() -> anyhow::Result<()> {
    print!("{}", page::write()?);
    Ok(())
}
