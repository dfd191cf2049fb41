//! Questions to a person at a terminal: `delete`, `apply --prune`, `edit` and `restore`.

use std::fs;

use serde_json::json;

use crate::command::{Cli, Says, example_guide, text};
use macro_rules_attribute::apply;

#[apply(on_one_database)]
fn delete_deletes_with_consent_only(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    for typed in ["n\n", "\n", "maybe\n"] {
        let (shown, code) = cli.answered(typed, &format!("delete {guid}"), &[]);
        shown.says(&[
            "delete this task with its steps? [y/N]",
            "Nothing was deleted.",
        ]);
        assert_eq!(code, Some(1), "{shown}");
    }
    cli.export(guid);
    let (shown, code) = cli.answered("y\n", &format!("delete {guid}"), &[]);
    assert!(shown.contains(&format!("deleted {guid}: ")), "{shown}");
    assert_eq!(code, Some(0), "{shown}");
    cli.command(&["show", guid]).run().failure(1);
}

#[apply(on_one_database)]
fn prune_deletes_with_consent_only(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let document = json!({"task": {"name": "Kept", "product_id": 7, "external_id": "kept"}});
    fs::write(directory.path().join("kept.json"), document.to_string()).expect("a file");
    let apply = format!("apply {} --prune", directory.path().display());
    let (shown, code) = cli.answered("n\n", &apply, &[]);
    shown.says(&[
        &format!("  {guid}: Restart a laptop safely"),
        "Nothing was deleted.",
    ]);
    assert_eq!(code, Some(1), "{shown}");
    cli.export(guid);
    let (shown, code) = cli.answered("yes\n", &apply, &[]);
    assert!(shown.contains(&format!("deleted {guid}: ")), "{shown}");
    assert_eq!(code, Some(0), "{shown}");
    let tasks = cli.command(&["list", "--format=json"]).run().json();
    assert_eq!(tasks.as_array().map(Vec::len), Some(1), "{tasks}");
}

#[apply(on_one_database)]
fn edit_imports_a_guide_with_errors_with_consent_only(cli: Cli) {
    let broken = example_guide("broken/measure-a-power-supply.json");
    let import = cli.command(&["import", "--format=json", &broken]).run();
    let guid = text(&import.succeeded().json()[0]["guid"]);
    let name = || {
        let document = cli.exported(&guid);
        text(&document["task"]["name"])
    };
    let original = name();
    let directory = tempfile::tempdir().expect("a directory");
    // Each time the editor adds an exclamation mark to the name.
    let edit = format!("edit {guid} --editor \"sed -i '0,/with mistakes/s//with mistakes!/'\"");
    let kept_in = ("TMPDIR", directory.path().to_str().expect("UTF-8"));
    let answer = |typed: &str| cli.answered(typed, &edit, &[kept_in]);
    let (shown, code) = answer("n\n");
    shown.says(&[
        ", which the stored guide has too: see ",
        "import it anyway?",
        "the text is kept in ",
    ]);
    assert_eq!((code, name()), (Some(1), original.clone()), "{shown}");
    // It is edited again, and then imported.
    let (shown, code) = answer("e\ny\n");
    assert_eq!(shown.matches("import it anyway?").count(), 2, "{shown}");
    let expected = original.replace("mistakes", "mistakes!!");
    assert_eq!((code, name()), (Some(0), expected), "{shown}");
}

/// A guide whose first revision has a step `First`, which is `Changed` now.
fn given_changed_guide(cli: &Cli) -> String {
    let guid = cli.import(&json!({
        "task": {"name": "Guide", "product_id": 7},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "First"}],
    }));
    cli.command(&["keep", &guid]).run().succeeded();
    retitle(cli, &guid, "Changed");
    guid
}

fn retitle(cli: &Cli, guid: &str, title: &str) {
    let mut document = cli.exported(guid);
    document["steps"][0]["title"] = json!(title);
    cli.import(&document);
}

fn title(cli: &Cli, guid: &str) -> String {
    text(&cli.exported(guid)["steps"][0]["title"])
}

#[apply(on_one_database)]
fn restore_shows_the_difference_and_restores_with_consent_only(cli: Cli) {
    let guid = given_changed_guide(&cli);
    let restore = format!("restore {guid}@1");
    let (shown, code) = cli.answered("n\n", &restore, &[]);
    shown.says(&[
        "\"Changed\" -> \"First\"",
        "restore this revision? [y/N]",
        "Nothing was restored.",
    ]);
    assert_eq!((code, title(&cli, &guid)), (Some(1), "Changed".to_owned()));
    let (shown, code) = cli.answered("y\n", &restore, &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(title(&cli, &guid), "First");
}

#[apply(on_one_database)]
fn a_change_that_is_made_while_a_restore_asks_is_not_taken_back(cli: Cli) {
    let guid = given_changed_guide(&cli);
    let change = || retitle(&cli, &guid, "Meanwhile");
    let restore = format!("restore {guid}@1");
    let (shown, code) = cli.answered_after("[y/N]", change, "y\n", &restore, &[]);
    shown.says(&[&format!("task {guid} has changed since it was read")]);
    assert_eq!(
        (code, title(&cli, &guid)),
        (Some(1), "Meanwhile".to_owned())
    );
}
