//! `expertise export --all` and `expertise apply` make a copy of an account.

use std::{collections::HashMap, fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Cli, CommandOutput};
use macro_rules_attribute::apply;

/// Another account on the same server.
fn other_account(cli: &Cli) -> Cli {
    Cli {
        server: cli.server.clone(),
        account: format!("{}-copy", cli.account),
    }
}

fn export_all(cli: &Cli) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().display().to_string();
    let output = cli.command(&["export", "--all", "--out", &out]).run();
    output.succeeded();
    directory
}

fn apply(cli: &Cli, directory: &Path, args: &[&str]) -> CommandOutput {
    let directory = directory.display().to_string();
    cli.command(&[&["apply", &directory], args].concat()).run()
}

/// A guide of an information and an end.
fn guide(name: &str) -> Value {
    json!({
        "task": {"name": name, "product_id": 7, "external_id": name},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Read", "body": "<p>a</p>"},
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"},
        ],
    })
}

fn subtask_step(task: &str, product: i64) -> Value {
    json!({
        "product_id": 7,
        "type": "STEP_TYPE_SUBTASK",
        "subtask_id": task,
        "subtask_pid": product.to_string(),
    })
}

/// Adds a step at the end of a stored guide.
fn add_step(cli: &Cli, guid: &str, step: Value) {
    let mut document = cli.exported(guid);
    document["steps"].as_array_mut().expect("steps").push(step);
    assert_eq!(cli.import(&document), guid);
}

/// Guides with everything that a copy could lose: languages, conditions, levels, managed
/// tasks, equal names, and references forwards, backwards, to managed tasks and in a circle.
fn given_account(cli: &Cli) {
    let first = cli.import(&guide("Refers to later ones"));
    let examples = [
        "laptop-will-not-start.json",
        "measure-a-power-supply.json",
        "restart-safely.json",
    ];
    let laptop = &cli.import_guides(&examples)[0];
    let twin = cli.import(&guide("Twin"));
    let mut other_twin = guide("Twin");
    other_twin["task"]["external_id"] = json!("other twin");
    other_twin["task"]["published"] = json!(0);
    other_twin["task"]["roles"] = json!(["ACCESS_LEVEL_EXPERT"]);
    other_twin["steps"][0]["title"] = json!("Read more");
    other_twin["steps"][1]["dependency_shorthand"] = json!("components.7.colour = red, blue");
    let other_twin = cli.import(&other_twin);
    add_step(cli, &first, subtask_step(&twin, 7));
    add_step(cli, &first, subtask_step(&other_twin, 7));
    // A circle, and a guide that leads to itself.
    add_step(cli, &twin, subtask_step(&first, 7));
    add_step(cli, &twin, subtask_step(&twin, 7));
    let laptop = cli.exported(laptop);
    let steps = laptop["steps"].as_array().expect("steps");
    let managed = steps.iter().find_map(|step| step["link"].as_str());
    add_step(
        cli,
        &first,
        subtask_step(managed.expect("a wiring step"), 1204),
    );
}

/// The documents of an account, sorted by name and creation. Ids are replaced by the order in which
/// they appear, and values that differ between accounts are left out.
fn comparable(directory: &Path) -> Vec<Value> {
    let files = fs::read_dir(directory).expect("a directory");
    let mut documents: Vec<Value> = files
        .map(|file| fs::read_to_string(file.expect("a file").path()).expect("a text"))
        .map(|text| serde_json::from_str(&text).expect("JSON"))
        .collect();
    documents.sort_by_key(|document| {
        ["name", "published"].map(|field| document["task"][field].to_string())
    });
    let mut ids = HashMap::new();
    for document in &mut documents {
        make_comparable(document, &mut ids);
    }
    documents
}

fn make_comparable(value: &mut Value, ids: &mut HashMap<String, usize>) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|it| make_comparable(it, ids)),
        Value::Object(members) => {
            // An id of the original is the external id in the copy.
            for name in [
                "etag",
                "created_ts",
                "modified_ts",
                "account_id",
                "external_id",
            ] {
                members.remove(name);
            }
            members.values_mut().for_each(|it| make_comparable(it, ids));
        }
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => {
            let next = ids.len();
            let id = ids.entry(std::mem::take(text)).or_insert(next);
            *text = format!("id {id}");
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[apply(on_both_databases)]
fn a_copied_account_is_equal_and_copied_again_it_is_unchanged(cli: Cli) {
    given_account(&cli);
    let original = export_all(&cli);
    let copy = other_account(&cli);
    let output = apply(&copy, original.path(), &[]).succeeded();
    let counts = "6 created, 0 updated, 0 unchanged, 0 failed\n";
    assert_eq!(output.stderr, counts);
    let copied = export_all(&copy);
    assert_eq!(comparable(copied.path()), comparable(original.path()));
    let output = apply(&copy, original.path(), &[]).succeeded();
    let counts = "0 created, 0 updated, 6 unchanged, 0 failed\n";
    assert_eq!(output.stderr, counts);
    let unchanged = export_all(&copy);
    let texts = |directory: &TempDir| {
        let files = fs::read_dir(directory.path()).expect("a directory");
        let texts = files.map(|it| fs::read_to_string(it.expect("a file").path()));
        let mut texts: Vec<String> = texts.map(|it| it.expect("a text")).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&unchanged), texts(&copied), "etags included");
}
