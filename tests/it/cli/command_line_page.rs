//! Samples of docs/command-line.md are what the commands do.

use crate::{
    command::{Cli, example_guide, text},
    kit::snapshot::number_ids,
};
use macro_rules_attribute::apply;

const PAGE: &str = include_str!("../../../docs/command-line.md");

/// The text between two others.
fn sample(from: &str, to: &str) -> &'static str {
    let (_, sample) = PAGE.split_once(from).expect(from);
    sample.split_once(to).expect(to).0
}

#[apply(on_one_database)]
fn the_guide_of_the_page_is_imported_without_findings(cli: Cli) {
    let guide = sample("```json\n", "```");
    let import = cli.command(&["import", "--dry-run", "-"]).stdin(guide);
    let output = import.run().succeeded();
    assert_eq!(output.stdout.lines().count(), 1, "no findings: {output:?}");
    let import = cli.command(&["import", "--format=json", "-"]).stdin(guide);
    let guid = text(&import.run().succeeded().json()[0]["guid"]);
    let stored = cli.exported(&guid);
    assert_eq!(stored["task"]["published"], 1);
    assert_eq!(stored["steps"][0]["published"], 1);
}

#[apply(on_one_database)]
fn the_sample_of_an_import_is_what_is_printed(cli: Cli) {
    let sample = sample("expertise list\n```\n\n```text\n", "```");
    let [laptop, supply] =
        ["laptop-will-not-start.json", "measure-a-power-supply.json"].map(example_guide);
    let import = cli.command(&["import", &laptop, &supply]).run().succeeded();
    let list = cli.command(&["list"]).run().succeeded();
    let printed = format!("{}{}{}", import.stdout, import.stderr, list.stdout);
    let printed = printed.replace(&example_guide(""), "examples/guides/");
    assert_eq!(number_ids(&printed), number_ids(sample), "{printed}");
}
