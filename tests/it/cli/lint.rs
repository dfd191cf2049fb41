//! `expertise lint`: findings that pages and other findings foretell.

use std::{collections::BTreeSet, fs};

use crate::command::{Cli, CommandOutput, command, example_guide, text};
use macro_rules_attribute::apply;

const BROKEN: &str = "broken/measure-a-power-supply.json";

/// Every example guide that is not broken on purpose.
fn example_guides() -> Vec<String> {
    let files = fs::read_dir(example_guide("")).expect("the examples");
    let files = files.map(|file| file.expect("a file").path().display().to_string());
    files.filter(|file| file.ends_with(".json")).collect()
}

/// The rules and paths of the findings of the first guide.
fn places(output: &CommandOutput) -> BTreeSet<(String, String)> {
    let reports = output.json();
    let findings = reports[0]["findings"].as_array().expect("findings");
    let places = findings
        .iter()
        .map(|finding| (text(&finding["rule"]), text(&finding["path"])));
    places.collect()
}

fn lint_json(args: &[&str]) -> CommandOutput {
    command(&[&["lint", "--format=json"], args].concat()).run()
}

/// The rules and paths in the tables of the README of broken guides, up to a heading.
fn explained(until: &str) -> BTreeSet<(String, String)> {
    let page = fs::read_to_string(example_guide("broken/README.md")).expect("the page");
    let page = page.split(until).next().expect("a page");
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, rule, path, ..] = cells.as_slice() else {
            return None;
        };
        let code = |cell: &str| Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned());
        Some((code(rule)?, code(path)?))
    });
    rows.collect()
}

#[test]
fn the_findings_of_the_broken_guide_are_those_that_its_page_explains() {
    let output = lint_json(&[&example_guide(BROKEN)]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let explained = explained("\n## With a server");
    assert!(explained.len() >= 5, "{explained:?}");
    assert_eq!(places(&output), explained);
}

#[apply(on_one_database)]
fn a_file_checked_online_has_the_findings_that_the_page_explains(cli: Cli) {
    let lint = ["lint", "--online", "--format=json", &example_guide(BROKEN)];
    let output = cli.command(&lint).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(places(&output), explained("\n## More"));
}

#[apply(on_one_database)]
fn without_a_server_only_rules_about_the_account_are_missing(cli: Cli) {
    const OF_THE_ACCOUNT: [&str; 4] = [
        "condition/unknown-variable",
        "condition/set-elsewhere",
        "observation/unused",
        "observation/unused-answer",
    ];
    for guide in example_guides().into_iter().chain([example_guide(BROKEN)]) {
        let alone = places(&lint_json(&[&guide]));
        let online = places(
            &cli.command(&["lint", "--online", "--format=json", &guide])
                .run(),
        );
        let rest = online.into_iter();
        let rest = rest.filter(|(rule, _)| !OF_THE_ACCOUNT.contains(&rule.as_str()));
        assert_eq!(alone, rest.collect(), "{guide}");
    }
}
