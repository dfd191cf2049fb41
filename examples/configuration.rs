//! Writes the tables of settings in docs/configuration.md:
//! `cargo run --example configuration`.
//!
//! A test fails if the committed page differs.

use std::{fs, path::Path};

use anyhow::Context;
use clap::Arg;
use expertise::config;

const BEGIN: &str = "<!-- `cargo run --example configuration` writes these tables. -->\n";
const END: &str = "<!-- End of the tables. -->\n";

fn main() -> anyhow::Result<()> {
    let page = page()?;
    Ok(fs::write(page_path(), with_tables(&page)?)?)
}

fn page_path() -> impl AsRef<Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")
}

fn page() -> anyhow::Result<String> {
    Ok(fs::read_to_string(page_path())?)
}

/// The page with the tables of this version.
fn with_tables(page: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("no beginning of tables")?;
    let (_, after) = rest.split_once(END).context("no end of tables")?;
    Ok(format!("{before}{BEGIN}{}\n{END}{after}", tables()?))
}

/// A table for each section.
fn tables() -> anyhow::Result<String> {
    let mut text = String::new();
    let mut section = None;
    for setting in &config::server_settings() {
        if setting.get_help_heading() != section {
            section = setting.get_help_heading();
            let name = section.context("a setting without section")?;
            text.push_str(&format!(
                "\n### {name}\n\n| Environment | Unit | Default | |\n|---|---|---|---|\n"
            ));
        }
        text.push_str(&row(setting).context("an incomplete setting")?);
    }
    Ok(text)
}

fn row(setting: &Arg) -> Option<String> {
    let variable = setting.get_env()?.to_str()?;
    let unit = setting.get_value_names()?.first()?.replace('|', "\\|");
    let help = setting.get_help()?.to_string();
    let (help, described) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.strip_suffix(']')),
        None => (help, None),
    };
    let default = match (described, setting.get_default_values().first()) {
        (Some(described), _) => described.to_owned(),
        (None, Some(default)) => format!("`{}`", default.to_str()?),
        (None, None) => "unset".to_owned(),
    };
    Some(format!("| `{variable}` | {unit} | {default} | {help} |\n"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_the_tables_of_this_version() -> anyhow::Result<()> {
        let page = super::page()?;
        assert!(
            page == super::with_tables(&page)?,
            "docs/configuration.md is outdated: run `cargo run --example configuration`"
        );
        Ok(())
    }
}
