//! The reference of the contract, from its descriptors and their comments:
//! `cargo run --example reference > docs/reference.md`.
//!
//! `tests/reference.rs` holds the committed page to what this prints.

#[path = "reference/page.rs"]
mod page;

fn main() -> anyhow::Result<()> {
    print!("{}", page::write()?);
    Ok(())
}
