//! `expertise show`: a guide as a tree.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, binary_text},
    on_one_database,
    snapshot::number_ids,
};

/// A guide with every field, and a subtask step that refers to the other task.
fn full_guide(other: &str) -> Value {
    let step = |number: u32, kind: &str, title: &str, more: Value| {
        let mut step = json!({
            "guid": format!("00000000-0000-7000-8000-{number:012}"),
            "product_id": 7, "type": format!("STEP_TYPE_{kind}"), "title": title,
        });
        for (name, value) in more.as_object().expect("members") {
            step[name] = value.clone();
        }
        step
    };
    let condition = |variable: &str, operator: &str, targets: Value| {
        json!({"condition": {
            "path": "components.7", "variable": variable, "operator": operator, "targets": targets,
        }})
    };
    let group = |operator: &str, nodes: Value| json!({"operator": format!("LOGICAL_OPERATOR_{operator}"), "nodes": nodes});
    let steps = vec![
        step(
            1,
            "INFORMATION",
            "Before you start",
            json!({
                "body": "<p>Read this.</p>", "tags": ["start", "safety"],
                "translations": {
                    "de": {"title": "Vorweg"},
                    "es": {"title": "Antes", "locked": false},
                },
            }),
        ),
        step(
            2,
            "OBSERVATION",
            "Which lamp is lit?",
            json!({
                "feedback_config": [{"name": "lamp", "type": "enum", "values": [
                    {"key": "red", "value": "The red one"}, {"key": "none", "value": "None"},
                ]}],
            }),
        ),
        step(
            3,
            "OBSERVATION",
            "What does it say?",
            json!({
                "feedback_config": [{"name": "code", "type": "enum", "linked": true, "values": [
                    {"key": "e1", "value": "E1", "task_json": {
                        "task": {"name": "E1", "product_id": 7},
                        "steps": [{"product_id": 7, "type": "STEP_TYPE_IDP", "title": "The fan", "cost": 4}],
                    }},
                    {"key": "e2", "value": "E2"},
                ]}],
            }),
        ),
        step(
            4,
            "SOLUTION",
            "Press reset",
            json!({
                "cost": 2, "parts": ["pin"], "skills": ["patience"],
                "instructions": [{"kind": "timer", "seconds": 10}],
                "dependency_shorthand": "components.7.lamp = red, none",
                "looping": {"alias": "outlet", "array": ["a", "b"], "iterations": 2},
            }),
        ),
        step(
            5,
            "SUBTASK",
            "",
            json!({
                "subtask_id": other, "subtask_pid": 8,
                "dependencies": group("OR", json!([
                    condition("lamp", "!=", json!(["red"])),
                    {"group": group("AND", json!([
                        condition("volts", ">", json!([11.5])),
                        condition("loud", "=", json!([true])),
                        condition("note", "=", json!(["a b"])),
                    ]))},
                ])),
            }),
        ),
        step(6, "END", "Done", json!({"published": 0})),
    ];
    json!({
        "task": {
            "name": "Everything", "product_id": 7, "published": 0,
            "roles": ["ACCESS_LEVEL_TECH", "ACCESS_LEVEL_EXPERT"],
            "dependency_shorthand": "components.7.kind = big",
            "translations": {"de": {"name": "Alles"}, "fr": {"name": "Tout", "locked": false}},
        },
        "steps": steps,
    })
}

fn import_full_guide(cli: &Cli) -> String {
    let other = json!({"task": {"name": "Another guide", "product_id": 8}});
    let other = cli.import(&other);
    cli.import(&full_guide(&other))
}

#[apply(on_one_database)]
fn a_full_guide_is_a_tree(cli: Cli) {
    let guid = import_full_guide(&cli);
    let shown = cli.command(&["show", &guid]).run().succeeded().stdout;
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("show", number_ids(&shown)));
}

#[apply(on_one_database)]
fn json_output_is_the_document(cli: Cli) {
    let guid = import_full_guide(&cli);
    let shown = cli
        .command(&["show", &guid, "--format=json"])
        .run()
        .succeeded();
    assert_eq!(shown.json()["task"]["guid"], guid.as_str());
    assert_eq!(shown.stdout, cli.export(&guid));
}

#[apply(on_one_database)]
fn texts_are_shown_in_full_or_in_a_translation(cli: Cli) {
    let guid = import_full_guide(&cli);
    let show = |args: &[&str]| {
        let args = [&["show", guid.as_str()], args].concat();
        cli.command(&args).run().succeeded().stdout
    };
    let full = show(&["--full"]);
    full.says(&[
        "<p>Read this.</p>",
        "instruction {\"kind\": \"timer\", \"seconds\": 10}",
    ]);
    assert!(!full.contains("a text of"), "{full}");
    let german = show(&["--language=de-AT", "--full"]);
    // The texts are in `de`, as `preview` says, too.
    assert!(german.starts_with("Alles [de]\n"), "{german}");
    assert!(german.contains("1. information: Vorweg [de]\n"), "{german}");
    let exact = show(&["--language=de"]);
    assert!(exact.starts_with("Alles\n"), "{exact}");
    german.says(&[
        "<p>Read this.</p> [source]",
        "Which lamp is lit? [source]",
        "red: The red one [source]",
    ]);
}

#[apply(on_one_database)]
fn colours_are_for_terminals(cli: Cli) {
    let guid = import_full_guide(&cli);
    let show = || cli.command(&["show", &guid]);
    let plain = show().run().succeeded().stdout;
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let forced = show().env("CLICOLOR_FORCE", "1").run().succeeded().stdout;
    assert!(forced.contains("\u{1b}[1m"), "{forced}");
    assert_eq!(without_colours(&forced), plain);
    let terminal = |name: &str| {
        let command = format!("{} show {guid}", binary_text());
        let output = std::process::Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("EXPERTISE_SERVER", &cli.server)
            .env("EXPERTISE_ACCOUNT", &cli.account)
            .env("TERM", "xterm")
            .env(name, "1")
            .stdin(std::process::Stdio::null())
            .output();
        let output = output.expect("util-linux has script");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(terminal("SOMETHING_ELSE").contains("\u{1b}[1m"));
    let quiet = terminal("NO_COLOR");
    assert!(
        quiet.contains("Everything") && !quiet.contains('\u{1b}'),
        "{quiet}"
    );
}

/// A text without its `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

#[apply(on_one_database)]
fn control_characters_do_not_reach_the_terminal(cli: Cli) {
    let name = "Red \u{1b}[31m\u{7}alert";
    let guid = cli.import(&json!({"task": {"name": name, "product_id": 7}}));
    for args in [&["show", guid.as_str()][..], &["list"]] {
        let shown = cli.command(args).run().succeeded().stdout;
        assert!(shown.contains("Red  [31m alert"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
