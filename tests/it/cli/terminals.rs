//! What commands print on a terminal: lines that fit, and colors.

use std::{fs, process::Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::terminal::{in_terminal, shown_in};
use crate::command::{Cli, Says, binary_text, example_guide};
use macro_rules_attribute::apply;

const BROKEN: &str = "broken/measure-a-power-supply.json";

/// What a command shows in a terminal of so many columns.
fn shown(cli: &Cli, columns: usize, arguments: &str) -> String {
    let environment = [
        ("EXPERTISE_SERVER", cli.server.as_str()),
        ("EXPERTISE_ACCOUNT", cli.account.as_str()),
    ];
    let line = format!("{} {arguments}", binary_text());
    shown_in(columns, &line, &environment)
}

#[track_caller]
fn assert_fits(columns: usize, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{line}\n{text}");
    }
}

#[apply(on_one_database)]
fn findings_fit_the_terminal(cli: Cli) {
    let path = example_guide(BROKEN);
    let text = shown(&cli, 80, &format!("lint {path}"));
    text.says(&["step/unreachable"]);
    // The name of the file may be long.
    assert_fits(80, &text.replace(&path, ""));
}

#[apply(on_one_database)]
fn tables_and_trees_fit_the_terminal_and_ids_stay_whole(cli: Cli) {
    let guid = &cli.import_guides(&["measure-a-power-supply.json"])[0];
    for arguments in [
        "list".to_owned(),
        format!("show --full {guid}"),
        format!("preview --explain {guid}"),
    ] {
        let text = shown(&cli, 80, &arguments);
        text.says(&[guid]);
        assert_fits(80, &text);
    }
}

#[apply(on_one_database)]
fn no_word_is_broken_on_a_narrow_terminal(cli: Cli) {
    cli.import_guides(&["laptop-will-not-start.json"]);
    for columns in [50, 80, 110] {
        let arguments = "references --variable components.1204.damage";
        let text = shown(&cli, columns, arguments);
        text.says(&[
            "dependencies.nodes[1].condition",
            "feedback_config[0]",
            "swollen:",
            "recently?",
        ]);
        assert_fits(columns, &text);
    }
}

/// A directory with a document in `guides/a.json`.
fn directory_with_guide(document: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("guides")).expect("a directory");
    fs::write(directory.path().join("guides/a.json"), document).expect("a file");
    directory
}

#[apply(on_one_database)]
fn changes_fit_the_terminal(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let mut document = cli.exported(guid);
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen";
    document["task"]["name"] = json!(long);
    document["steps"][0]["body"] = json!(format!("{long}\n{long}"));
    let directory = directory_with_guide(&document.to_string());
    let guides = directory.path().join("guides").display().to_string();
    for arguments in [
        format!("diff {guides}/a.json"),
        format!("apply --dry-run {guides}"),
    ] {
        let text = shown(&cli, 60, &format!("{arguments} 2>/dev/null"));
        let (_, changes) = text.split_once("~ task ").expect(&text);
        changes.says(&["thirteen"]);
        assert_fits(60, changes);
    }
}

#[apply(on_one_database)]
fn colors_are_for_terminals_without_no_color(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let terminal = |name: &str| {
        let command = format!("{} show {guid}", binary_text());
        let environment = [
            ("EXPERTISE_SERVER", cli.server.as_str()),
            ("EXPERTISE_ACCOUNT", &cli.account),
            (name, "1"),
        ];
        let mut command = in_terminal(&command, &environment);
        let output = command.stdin(Stdio::null()).output();
        let output = output.expect("util-linux has script");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(terminal("SOMETHING_ELSE").contains("\u{1b}[1m"));
    let plain = terminal("NO_COLOR");
    plain.says(&["Restart a laptop safely"]);
    assert!(!plain.contains('\u{1b}'), "{plain}");
}
