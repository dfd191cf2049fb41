//! `expertise translate --list`: the work, without an engine.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, command, text},
    on_both_databases,
};

/// A guide whose name is translated into German, and whose step is not.
fn guide(name: &str, guid: &str) -> Value {
    json!({
        "task": {
            "guid": guid,
            "name": name,
            "product_id": 7,
            "translations": {"de": {"name": "Kessel", "locked": false}},
        },
        "steps": [],
    })
}

#[apply(on_both_databases)]
fn what_is_missing_or_outdated_is_listed_without_an_engine(cli: Cli) {
    let list = |args: &[&str]| {
        let list = ["translate", "--list", "--engine-url=http://127.0.0.1:1"];
        cli.command(&[&list[..], args].concat()).run().succeeded()
    };
    let guid = cli.import(&guide("Kettle", ""));
    let none = list(&["--languages=de"]);
    assert_eq!(none.stderr, "0 missing, 0 outdated\n");
    assert_eq!(none.stdout, "");
    assert_eq!(list(&["--languages=de", "--format=json"]).json(), json!([]));

    let mut changed = guide("Kettle\u{1b}[1m stays cold", &guid);
    changed["steps"] = json!([{
        "product_id": 7,
        "type": "STEP_TYPE_INFORMATION",
        "title": "Fill it",
        "body": "<p>With water</p>",
    }]);
    changed["task"]
        .as_object_mut()
        .expect("a task")
        .remove("translations");
    cli.import(&changed);
    let step = text(&cli.exported(&guid)["steps"][0]["guid"]);
    let other = cli.import(&guide("Other", ""));
    let of_other = list(&["--languages=fr", "--task=other"]).stdout;
    assert_eq!(of_other.lines().count(), 2, "{of_other}");
    assert!(of_other.contains(&other), "{of_other}");
    let both = list(&["--languages=de,fr", "--task", &guid]);
    assert_eq!(both.stderr, "3 missing, 1 outdated\n");
    let mut rows: Vec<&str> = both.stdout.lines().collect();
    rows.sort_unstable();
    let row = |state: &str, language: &str, kind: &str, guid: &str, title: &str| {
        format!("{state:<8}  {language:<8}  {kind}  {guid:<36}  {title}")
    };
    assert_eq!(
        rows,
        [
            row("STATE", "LANGUAGE", "KIND", "GUID", "TITLE"),
            row("missing", "de", "step", &step, "Fill it"),
            row("missing", "fr", "step", &step, "Fill it"),
            row("missing", "fr", "task", &guid, "Kettle [1m stays cold"),
            row("outdated", "de", "task", &guid, "Kettle [1m stays cold"),
        ]
    );

    let json = list(&["--languages=de", "--format=json"]).json();
    let work = json.as_array().expect("an array");
    let step = work.iter().find(|work| work["guid"] == step.as_str());
    let step = step.expect("the step");
    assert_eq!(step["state"], "TRANSLATION_STATE_MISSING");
    assert_eq!(step["source"]["body"], "<p>With water</p>");
    assert_eq!(work.len(), 2);
}

#[test]
fn a_form_is_one_of_a_list() {
    let translate = ["translate", "--languages=de", "--format=json", "-a=x"];
    let line = command(&translate).run();
    assert_eq!(line.code, Some(2), "{line:?}");
    assert!(line.stderr.contains("--list"), "{line:?}");
}
