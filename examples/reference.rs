//! Writes the API reference from the descriptors, their comments and the responses of a server:
//! `cargo run --example reference > docs/reference.md`.
//!
//! A test fails if the committed page differs from what this prints.

#[path = "reference/page.rs"]
mod page;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    print!("{}", page::write().await?);
    Ok(())
}

#[cfg(test)]
#[path = "reference/tests.rs"]
mod tests;
