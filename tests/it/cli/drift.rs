//! `apply` where guides have changed by other means since they were last applied.

use std::fs;

use expertise::proto::v1::Task;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::apply::{apply, example, write};
use crate::kit::{
    apply,
    client::Client,
    command::{Cli, CommandOutput, Says, text},
    on_both_databases, on_one_database, sample,
};

const FIRST: &str = "first.json";

/// A directory with two guides that are applied; the id of the first one.
fn given_applied(cli: &Cli) -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, FIRST, &guide("First"));
    write(&directory, "second.json", &guide("Second"));
    apply(cli, directory.path(), &[]).succeeded();
    let guid = guid_of(cli, "First");
    (directory, guid)
}

fn guid_of(cli: &Cli, name: &str) -> String {
    text(&cli.exported(name)["task"]["guid"])
}

fn guide(name: &str) -> Value {
    json!({
        "task": {"name": name, "product_id": 7, "external_id": name},
        "steps": [
            {
                "product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Read",
                "body": "<p>a</p>", "external_id": "read",
            },
            {
                "product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Look",
                "tags": ["a"], "external_id": "look",
            },
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "Done", "external_id": "done"},
        ],
    })
}

/// Changes a stored guide.
fn change(cli: &Cli, guid: &str, edit: impl FnOnce(&mut Value)) {
    let mut document = cli.exported(guid);
    edit(&mut document);
    let import = cli.command(&["import", "-", "--absent-steps=delete"]);
    import.stdin(&document.to_string()).run().succeeded();
}

fn titles(cli: &Cli, guid: &str) -> Vec<String> {
    let document = cli.exported(guid);
    let steps = document["steps"].as_array().expect("steps");
    steps.iter().map(|step| text(&step["title"])).collect()
}

fn stopped(output: CommandOutput, parts: &[&str]) -> CommandOutput {
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    output.stderr.says(parts);
    output
}

#[apply(on_both_databases)]
async fn a_guide_that_has_changed_is_blocked_alone_and_who_has_changed_it_is_named(client: Client) {
    let cli = Cli {
        server: format!("http://{}", client.address()),
        account: client.account().to_owned(),
    };
    let (directory, guid) = given_applied(&cli);
    // Who has changed it before it was last applied is not named.
    let [ben, ana] = ["ben", "ana"].map(|name| client.with_metadata("x-subject", name));
    let mut step = client.exported(&guid).await.steps.remove(0);
    step.title = "Read twice".to_owned();
    let mut step = ben.updated_step(step, &["title"]).await;
    apply(&cli, directory.path(), &["--overwrite"]).succeeded();
    step.title = "Read all".to_owned();
    step.etag = String::new();
    ana.updated_step(step, &["title"]).await;
    client
        .updated_task(
            Task {
                published: Some(0),
                ..sample::task_of(&guid)
            },
            &["published"],
        )
        .await;
    let mut second = guide("Second");
    second["steps"][0]["title"] = json!("Read twice");
    write(&directory, "second.json", &second);
    let run = |args: &[&str]| {
        let path = directory.path().display().to_string();
        let args = [&["apply", path.as_str()], args].concat();
        cli.command(&args).run_in_background()
    };
    for args in [&["--dry-run"][..], &[]] {
        let output = stopped(
            run(args).await,
            &[
                &format!("first.json: {guid} First has changed since it was last applied, by "),
                "somebody without a name (",
                "ana (20",
                "  ~ step 1 Read  ",
                "    title: \"Read\" -> \"Read all\"",
                "    published: 1 -> 0",
                "--merge",
                "--overwrite",
            ],
        );
        let lines = output.stderr.lines().rev();
        let last: Vec<&str> = lines.take(2).collect();
        assert!(last[0].ends_with("1 failed"), "{}", output.stderr);
        assert!(
            last[1].starts_with("failed ") && last[1].contains(FIRST),
            "{last:?}"
        );
        // The other guide is not held up.
        output
            .stdout
            .says(&["    title: \"Read\" -> \"Read twice\""]);
        output.stderr.says_none_of(&[" ben ("]);
    }
    let reports = run(&["--format=json"]).await.json();
    let reports = reports.as_array().expect("an array").clone();
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0]["outcome"], "drifted");
    assert_eq!(reports[0]["guid"], guid.as_str());
    assert_eq!(reports[0]["changes"][1]["after"], "Read all");
    let authors = reports[0]["changed_by"].as_array().expect("authors");
    let authors: Vec<String> = authors.iter().map(|it| text(&it["subject"])).collect();
    assert_eq!(authors, ["", "ana"]);
    assert_eq!(titles(&cli, "Second")[0], "Read twice");
    // Also if the guide then is as it was.
    let mut step = client.exported(&guid).await.steps.remove(0);
    step.title = "Read".to_owned();
    client.updated_step(step, &["title"]).await;
    let task = Task {
        published: Some(1),
        ..sample::task_of(&guid)
    };
    client.updated_task(task, &["published"]).await;
    run(&[]).await.succeeded();
}

#[apply(on_one_database)]
fn changes_are_overwritten_if_that_is_asked(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read all")
    });
    let other = cli.import(&guide("Other"));
    let args = ["--prune", "--force"];
    stopped(apply(&cli, directory.path(), &args), &["Read all"]);
    // Nothing is deleted, either.
    let delete = cli.command(&["delete", &other, "--force"]).run();
    delete.succeeded();
    let before = cli.export(&guid);
    let args = ["--overwrite", "--dry-run"];
    let output = apply(&cli, directory.path(), &args).succeeded();
    output.stdout.says(&["would update "]);
    assert_eq!(cli.export(&guid), before);
    let output = apply(&cli, directory.path(), &["--overwrite"]).succeeded();
    assert!(output.stdout.contains("updated "), "{}", output.stdout);
    assert_eq!(titles(&cli, &guid), ["Read", "Look", "Done"]);
    // The guide is as it was applied, so later runs go on.
    let output = apply(&cli, directory.path(), &[]).succeeded();
    assert!(
        output.stderr.ends_with("2 unchanged, 0 failed\n"),
        "{}",
        output.stderr
    );
}

#[apply(on_both_databases)]
fn merged_changes_are_written_into_the_file(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read all");
        guide["task"]["translations"] = json!({"de": {"name": "Erster"}});
        guide["steps"][1]["translations"] = json!({"de": {"title": "Schau"}});
    });
    let mut document = guide("First");
    document["steps"][1]["tags"] = json!(["a", "b"]);
    document["steps"][1]["translations"] = json!({"de": {"body": "<p>b</p>"}});
    let step = json!({"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Wait"});
    document["steps"]
        .as_array_mut()
        .expect("steps")
        .insert(1, step);
    write(&directory, FIRST, &document);
    let history = || cli.command(&["history", &guid, "--format=json"]).run();
    let before = (cli.export(&guid), history().json());
    let output = apply(&cli, directory.path(), &["--merge", "--dry-run"]).succeeded();
    output.stdout.says(&[
        "would update ",
        "  + step 2 Wait",
        "    tags: [\"a\"] -> [\"a\",\"b\"]",
        "  merged into the file:\n",
        "    title: \"Read\" -> \"Read all\"",
    ]);
    assert_eq!((cli.export(&guid), history().json()), before);
    apply(&cli, directory.path(), &["--merge"]).succeeded();
    assert_eq!(titles(&cli, &guid), ["Read all", "Wait", "Look", "Done"]);
    let merged = cli.exported(&guid);
    assert_eq!(merged["steps"][2]["tags"], json!(["a", "b"]));
    assert_eq!(merged["task"]["translations"]["de"]["name"], "Erster");
    let translation = &merged["steps"][2]["translations"]["de"];
    assert_eq!(translation["title"], "Schau");
    assert_eq!(translation["body"], "<p>b</p>");
    // What the file has otherwise stays: its keys, and what it leaves out.
    let file = directory.path().join(FIRST);
    let text = fs::read_to_string(&file).expect("a file");
    let mut expected = document.clone();
    expected["steps"][0]["title"] = json!("Read all");
    expected["task"]["translations"] = json!({"de": {"name": "Erster"}});
    expected["steps"][2]["translations"]["de"]["title"] = json!("Schau");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(written, expected);
    assert!(text.contains("\"product_id\": 7,"), "{text}");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    assert!(
        output.stderr.ends_with("2 unchanged, 0 failed\n"),
        "{}",
        output.stderr
    );
    assert_eq!(cli.exported(&guid), merged);
    document = merged;
    document["steps"][0]["title"] = json!("Read it all");
    write(&directory, FIRST, &document);
    apply(&cli, directory.path(), &[]).succeeded();
    assert_eq!(titles(&cli, &guid)[0], "Read it all");
}

#[apply(on_both_databases)]
fn what_both_have_changed_is_a_conflict_and_changes_nothing(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read theirs");
        guide["steps"][1]["body"] = json!("<p>theirs</p>");
    });
    let mut document = guide("First");
    document["steps"][0]["title"] = json!("Read ours");
    document["steps"].as_array_mut().expect("steps").remove(1);
    write(&directory, FIRST, &document);
    let mut second = guide("Second");
    second["steps"][0]["title"] = json!("Read twice");
    write(&directory, "second.json", &second);
    let text = fs::read_to_string(directory.path().join(FIRST)).expect("a file");
    let line = 1 + text
        .lines()
        .position(|line| line.contains("Read ours"))
        .expect("its line");
    let before = cli.export(&guid);
    stopped(
        apply(&cli, directory.path(), &["--merge"]),
        &[
            &format!("conflict at line {line}:\n  the file:\n"),
            "      title: \"Read\" -> \"Read ours\"",
            "  the stored guide:\n",
            "      title: \"Read\" -> \"Read theirs\"",
            "    - step 2 Look",
            "      body: nothing -> \"<p>theirs</p>\"",
        ],
    );
    assert_eq!(cli.export(&guid), before);
    assert_eq!(titles(&cli, "Second")[0], "Read twice");
    let report = apply(&cli, directory.path(), &["--merge", "--format=json"]).json();
    let conflict = &report[0]["conflicts"][0];
    assert_eq!(
        (&conflict["path"], &conflict["line"]),
        (&json!("title"), &json!(line))
    );
    let values = |side: &str| {
        let change = &conflict[side][0];
        (change["before"].clone(), change["after"].clone())
    };
    assert_eq!(values("ours"), (json!("Read"), json!("Read ours")));
    assert_eq!(values("theirs"), (json!("Read"), json!("Read theirs")));
}

#[apply(on_one_database)]
fn what_the_file_says_too_is_no_drift(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read all");
        let added = json!({"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "New"});
        guide["steps"]
            .as_array_mut()
            .expect("steps")
            .insert(0, added);
    });
    let mut document = cli.exported(&guid);
    document["steps"][2]["title"] = json!("Look closely");
    write(&directory, FIRST, &document);
    apply(&cli, directory.path(), &[]).succeeded();
    assert_eq!(
        titles(&cli, &guid),
        ["New", "Read all", "Look closely", "Done"]
    );
}

#[apply(on_one_database)]
fn a_guide_that_was_never_applied_is_overwritten(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("First"));
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read all")
    });
    write(&directory, FIRST, &guide("First"));
    apply(&cli, directory.path(), &[]).succeeded();
    assert_eq!(titles(&cli, &guid)[0], "Read");
    // One that was found as its file says counts as applied.
    let second = cli.import(&guide("Second"));
    write(&directory, "second.json", &guide("Second"));
    apply(&cli, directory.path(), &[]).succeeded();
    change(&cli, &second, |guide| {
        guide["steps"][0]["title"] = json!("Read all")
    });
    stopped(apply(&cli, directory.path(), &[]), &["second.json"]);
}

#[apply(on_one_database)]
fn steps_and_managed_tasks_are_merged(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut document = example("laptop-will-not-start.json");
    write(&directory, "laptop.json", &document);
    apply(&cli, directory.path(), &[]).succeeded();
    let guid = guid_of(&cli, &text(&document["task"]["name"]));
    fn managed(guide: &mut Value, answer: usize) -> &mut Value {
        let steps = guide["steps"].as_array_mut().expect("steps");
        let linked = |step: &&mut Value| step["feedback_config"][0]["linked"] == json!(true);
        let step = steps.iter_mut().find(linked).expect("a linked observation");
        &mut step["feedback_config"][0]["values"][answer]["task_json"]
    }
    change(&cli, &guid, |guide| {
        managed(guide, 0)["steps"][0]["title"] = json!("Theirs in a managed task");
        let steps = guide["steps"].as_array_mut().expect("steps");
        let last = steps.pop().expect("a step");
        steps.insert(0, last);
        steps.remove(3);
    });
    let theirs = titles(&cli, &guid);
    managed(&mut document, 1)["steps"][0]["title"] = json!("Ours in a managed task");
    let steps = document["steps"].as_array_mut().expect("steps");
    let added = json!({"product_id": 1204, "type": "STEP_TYPE_INFORMATION", "title": "Ours"});
    steps.insert(1, added);
    write(&directory, "laptop.json", &document);
    apply(&cli, directory.path(), &["--merge"]).succeeded();
    let mut expected = theirs;
    expected.insert(2, "Ours".to_owned());
    assert_eq!(titles(&cli, &guid), expected);
    let mut merged = cli.exported(&guid);
    for (answer, title) in [
        (0, "Theirs in a managed task"),
        (1, "Ours in a managed task"),
    ] {
        assert_eq!(managed(&mut merged, answer)["steps"][0]["title"], title);
    }
    // A managed task that one has changed and the other does not manage any more.
    change(&cli, &guid, |guide| {
        managed(guide, 0)["steps"][0]["title"] = json!("Theirs again");
    });
    let text = fs::read_to_string(directory.path().join("laptop.json")).expect("a file");
    document = serde_json::from_str(&text).expect("JSON");
    let value = managed(&mut document, 0).clone();
    assert!(value.is_object());
    let steps = document["steps"].as_array_mut().expect("steps");
    let linked = |step: &Value| step["feedback_config"][0]["linked"] == json!(true);
    steps.retain(|step| !linked(step));
    write(&directory, "laptop.json", &document);
    stopped(
        apply(&cli, directory.path(), &["--merge"]),
        &["conflict", "is no longer managed", "\"Theirs again\""],
    );
}

#[apply(on_one_database)]
fn the_last_states_that_were_applied_are_kept(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut document = guide("First");
    for run in 0..24 {
        document["steps"][0]["title"] = json!(format!("Run {run}"));
        write(&directory, FIRST, &document);
        apply(&cli, directory.path(), &["--quiet"]).succeeded();
        if run == 0 {
            let alias = cli.command(&["alias", "First", "first", "applied"]);
            alias.run().succeeded();
        }
    }
    let history = cli
        .command(&["history", "First", "--format=json"])
        .run()
        .json();
    let revisions = history.as_array().expect("an array");
    let kept = revisions
        .iter()
        .filter(|it| it["note"] == "kept by expertise apply");
    assert_eq!(
        kept.count(),
        22,
        "the present one, twenty to go back to, and the one with a name"
    );
    assert_eq!(revisions[0]["aliases"], json!(["applied"]));
    let first = cli.command(&["show", "First@applied"]).run().succeeded();
    assert!(first.stdout.contains("Run 23"), "{}", first.stdout);
}

#[apply(on_one_database)]
fn references_to_new_guides_are_merged(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    change(&cli, &guid, |guide| {
        guide["steps"][0]["title"] = json!("Read all")
    });
    let third = uuid::Uuid::now_v7().to_string();
    let mut document = guide("First");
    let steps = document["steps"].as_array_mut().expect("steps");
    steps.push(json!({
        "product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": third, "subtask_pid": 7,
    }));
    write(&directory, FIRST, &document);
    let mut new = guide("Third");
    new["task"]["guid"] = json!(third);
    write(&directory, "third.json", &new);
    apply(&cli, directory.path(), &["--merge"]).succeeded();
    assert_eq!(titles(&cli, &guid), ["Read all", "Look", "Done", "Third"]);
}

#[apply(on_one_database)]
fn a_managed_task_that_leads_to_a_new_guide_is_not_merged(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let third = uuid::Uuid::now_v7().to_string();
    let leading = json!({
        "product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": third, "subtask_pid": 7,
    });
    let linked = |steps: Value| {
        let mut document = guide("First");
        document["steps"][0] = json!({
            "product_id": 7, "type": "STEP_TYPE_OBSERVATION", "title": "Which?", "external_id": "w",
            "feedback_config": [{"name": "which", "type": "enum", "linked": true, "values": [
                {"key": "a", "value": "A", "task_json": {"task": {}, "steps": steps}},
            ]}],
        });
        document
    };
    write(&directory, FIRST, &linked(json!([])));
    apply(&cli, directory.path(), &[]).succeeded();
    let guid = guid_of(&cli, "First");
    change(&cli, &guid, |guide| guide["task"]["published"] = json!(0));
    write(&directory, FIRST, &linked(json!([leading])));
    let mut new = guide("Third");
    new["task"]["guid"] = json!(third);
    write(&directory, "third.json", &new);
    let before = cli.exported(&guid);
    let refused = "refers to a guide that the account does not have yet: apply that guide first";
    stopped(apply(&cli, directory.path(), &["--merge"]), &[refused]);
    assert_eq!(cli.exported(&guid), before);
}

#[apply(on_one_database)]
fn a_guide_that_cannot_be_kept_is_applied_with_a_warning(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("First"));
    // A task has 20 aliases at most.
    for number in 0..20 {
        let alias = format!("a{number}");
        let keep = cli.command(&["keep", &guid, "--alias", &alias]);
        keep.run().succeeded();
    }
    let mut document = guide("First");
    document["steps"][0]["title"] = json!("Read all");
    write(&directory, FIRST, &document);
    let output = apply(&cli, directory.path(), &[]).succeeded();
    output.stdout.says(&[
        "warning: ",
        "could not be kept as it was applied",
        "TOO_MANY_ELEMENTS",
    ]);
    assert_eq!(titles(&cli, &guid)[0], "Read all");
    let report = apply(&cli, directory.path(), &["--format=json"]).json();
    assert_eq!(report[0]["outcome"], "IMPORT_OUTCOME_UNCHANGED");
    assert!(report[0]["notes"][0].is_string(), "{report}");
}

#[apply(on_one_database)]
async fn who_has_changed_a_managed_task_is_named(client: Client) {
    let cli = Cli {
        server: format!("http://{}", client.address()),
        account: client.account().to_owned(),
    };
    let directory = tempfile::tempdir().expect("a directory");
    write(
        &directory,
        "laptop.json",
        &example("laptop-will-not-start.json"),
    );
    apply(&cli, directory.path(), &[]).succeeded();
    let guid = guid_of(&cli, "Laptop will not start");
    let guide = client.exported(&guid).await;
    let wiring = guide.steps.iter().find(|step| !step.link.is_empty());
    let managed = &wiring.expect("a wiring step").link;
    let mut step = client.exported(managed).await.steps.remove(0);
    step.title = "Changed".to_owned();
    let ana = client.with_metadata("x-subject", "ana");
    ana.updated_step(step, &["title"]).await;
    let output = apply(&cli, directory.path(), &[]);
    stopped(output, &[", by ana (20", "-> \"Changed\""]);
}

#[apply(on_one_database)]
fn an_older_copy_of_a_file_is_blocked(cli: Cli) {
    let (directory, guid) = given_applied(&cli);
    let older = guide("First");
    let mut newer = older.clone();
    newer["steps"][0]["title"] = json!("Read all");
    write(&directory, FIRST, &newer);
    apply(&cli, directory.path(), &[]).succeeded();
    write(&directory, FIRST, &older);
    for args in [&[][..], &["--merge"], &["--dry-run"]] {
        let output = apply(&cli, directory.path(), args);
        let stale = "was applied since this copy of the file, by somebody without a name (20";
        stopped(output, &[FIRST, &guid, stale, "--overwrite"]);
    }
    assert_eq!(titles(&cli, &guid)[0], "Read all");
    apply(&cli, directory.path(), &["--overwrite"]).succeeded();
    assert_eq!(titles(&cli, &guid)[0], "Read");
    // A file that says something new is no older copy.
    let mut other = older;
    other["steps"][0]["title"] = json!("Read it all");
    write(&directory, FIRST, &other);
    apply(&cli, directory.path(), &[]).succeeded();
}

#[apply(on_one_database)]
async fn what_the_automatic_translation_writes_is_no_drift_and_stays(client: Client) {
    let cli = Cli {
        server: format!("http://{}", client.address()),
        account: client.account().to_owned(),
    };
    let (directory, guid) = given_applied(&cli);
    let mut step = client.exported(&guid).await.steps.remove(0);
    let german = expertise::proto::v1::StepTranslation {
        title: Some("Lies".to_owned()),
        locked: Some(false),
        ..Default::default()
    };
    step.translations.insert("de".to_owned(), german);
    client.updated_step(step, &["translations.de"]).await;
    let path = directory.path().display().to_string();
    let run = |args: &[&str]| {
        let args = [&["apply", path.as_str()], args].concat();
        cli.command(&args).run_in_background()
    };
    let output = run(&[]).await.succeeded();
    output.stderr.says(&["2 unchanged, 0 failed"]);
    let mut document = guide("First");
    document["steps"][0]["tags"] = json!(["new"]);
    write(&directory, FIRST, &document);
    run(&[]).await.succeeded();
    let translation = || {
        let step = cli.exported(&guid)["steps"][0].clone();
        step["translations"]["de"].clone()
    };
    assert_eq!(translation(), json!({"title": "Lies", "locked": false}));
    // A person's change locks it.
    for (flag, title, locked) in [
        (Some("--keep-unlocked"), "Lies es", false),
        (None, "Bitte lesen", true),
    ] {
        let german = json!({"de": {"title": title, "locked": false}});
        document["steps"][0]["translations"] = german;
        write(&directory, FIRST, &document);
        let flags: Vec<&str> = flag.into_iter().collect();
        let output = run(&flags).await.succeeded();
        let says = output
            .stdout
            .contains("locks the translation de of step 1 \"Read\"");
        assert_eq!(says, locked, "{}", output.stdout);
        assert_eq!(translation(), json!({"title": title, "locked": locked}));
    }
}
