//! `expertise apply` and `expertise export --all`.

use std::{collections::HashMap, fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{
    apply,
    command::{Cli, Command, CommandOutput, Says, command, example_guide, text},
    on_both_databases, on_one_database,
};

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

pub(super) fn apply(cli: &Cli, directory: &Path, args: &[&str]) -> CommandOutput {
    let directory = directory.display().to_string();
    cli.command(&[&["apply", &directory], args].concat()).run()
}

/// The line with the counts.
fn counts(output: &CommandOutput) -> &str {
    output.stderr.lines().last().expect("the counts")
}

#[track_caller]
fn counted(output: &CommandOutput, expected: &str) {
    assert_eq!(counts(output), expected);
}

pub(super) fn write(directory: &TempDir, name: &str, document: &Value) {
    let text = serde_json::to_string_pretty(document).expect("a text");
    fs::write(directory.path().join(name), text).expect("a file");
}

/// An example guide with an id of its own.
pub(super) fn example(name: &str) -> Value {
    let text = fs::read_to_string(example_guide(name)).expect("an example");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    document["task"]["external_id"] = json!(name);
    document
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

/// The documents of an account by name, those of one name in the order of their creation. Ids are
/// replaced by the order in which they appear, and what differs between accounts is left out.
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
    counted(&output, "6 created, 0 updated, 0 unchanged, 0 failed");
    let copied = export_all(&copy);
    assert_eq!(comparable(copied.path()), comparable(original.path()));
    let output = apply(&copy, original.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 6 unchanged, 0 failed");
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

#[apply(on_one_database)]
fn an_exported_account_applied_to_itself_is_unchanged(cli: Cli) {
    given_account(&cli);
    let directory = export_all(&cli);
    let output = apply(&cli, directory.path(), &["--prune", "--force"]).succeeded();
    counted(
        &output,
        "0 created, 0 updated, 6 unchanged, 0 deleted, 0 failed",
    );
}

#[apply(on_one_database)]
fn a_changed_document_changes_its_guide_and_no_other(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("A"));
    cli.import(&guide("B"));
    let mut document = cli.exported(&guid);
    document["steps"][0]["title"] = json!("Read this");
    document["steps"][1] = json!({
        "product_id": 7, "type": "STEP_TYPE_SOLUTION", "title": "Mend it", "cost": 3,
    });
    write(&directory, "a.json", &document);
    write(&directory, "b.json", &guide("B"));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 1 updated, 1 unchanged, 0 failed");
    let undone = format!(": A, 2 steps; `restore {guid}@1` undoes it\n");
    output.stdout.says(&[&undone]);
    let steps = &cli.exported(&guid)["steps"];
    assert_eq!(steps[0]["guid"], document["steps"][0]["guid"]);
    assert_eq!(steps[0]["title"], "Read this");
    assert_eq!(steps[1]["title"], "Mend it");
    assert_eq!(
        steps[2],
        json!(null),
        "the step that is left out is deleted"
    );
}

#[apply(on_one_database)]
fn an_error_in_a_document_names_its_line(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut document = guide("A");
    document["steps"][0]["cost"] = json!(1);
    let text = serde_json::to_string_pretty(&document).expect("a text");
    fs::write(directory.path().join("a.json"), &text).expect("a file");
    let line = 1 + text
        .lines()
        .position(|it| it.contains("\"cost\""))
        .expect("its line");
    let refused = format!("line {line}, step 1 \"Read\": document.steps[0].cost: ");
    // When it creates the guide, and when it changes it.
    for pass in 0..2 {
        for args in [&[][..], &["--dry-run"]] {
            let output = apply(&cli, directory.path(), args);
            assert_eq!(output.code, Some(1), "{}", output.stderr);
            assert!(output.stderr.contains(&refused), "{}", output.stderr);
        }
        if pass == 0 {
            cli.import(&guide("A"));
        }
    }
}

#[apply(on_one_database)]
fn a_guide_whose_subtask_is_renamed_in_the_same_run_is_changed(cli: Cli) {
    let target = cli.import(&guide("Target"));
    let guid = cli.import(&guide("Guide"));
    add_step(&cli, &guid, subtask_step(&target, 7));
    let directory = tempfile::tempdir().expect("a directory");
    let mut renamed = cli.exported(&target);
    renamed["task"]["name"] = json!("Renamed");
    write(&directory, "a.json", &renamed);
    let mut changed = cli.exported(&guid);
    changed["task"]["name"] = json!("Changed");
    write(&directory, "b.json", &changed);
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 2 updated, 0 unchanged, 0 failed");
    let after = cli.exported(&guid);
    assert_eq!(after["task"]["name"], "Changed");
    assert_eq!(after["steps"][2]["title"], "Renamed");
}

#[apply(on_one_database)]
fn a_new_guide_has_its_subtasks_from_its_first_revision_on(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let ids = [
        "01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d1",
        "01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d2",
    ];
    // The file with the subtask comes first.
    let mut whole = guide("Whole");
    whole["task"]["guid"] = json!(ids[0]);
    let steps = whole["steps"].as_array_mut().expect("steps");
    steps.push(subtask_step(ids[1], 7));
    let count = steps.len();
    write(&directory, "a.json", &whole);
    let mut part = guide("Part");
    part["task"]["guid"] = json!(ids[1]);
    write(&directory, "b.json", &part);
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "2 created, 0 updated, 0 unchanged, 0 failed");
    let history = cli.command(&["history", "Whole", "--format=json"]).run();
    let history = history.json();
    let revisions: Vec<&Value> = history.as_array().expect("revisions").iter().collect();
    assert_eq!(revisions.len(), 1, "{history}");
    assert_eq!(revisions[0]["step_count"], json!(count), "{history}");
}

/// A guide with an external id, and subtask steps that name others by theirs.
fn named(id: &str, subtasks: &[&str]) -> Value {
    let mut document = guide(id);
    document["task"]["external_id"] = json!(id);
    let steps = document["steps"].as_array_mut().expect("steps");
    for id in subtasks {
        let subtask = json!({
            "product_id": 7,
            "type": "STEP_TYPE_SUBTASK",
            "subtask_external_id": id,
        });
        steps.insert(0, subtask);
    }
    document
}

#[apply(on_one_database)]
fn external_ids_that_differ_in_case_are_of_different_guides(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "1.json", &named("x", &[]));
    write(&directory, "2.json", &named("X", &[]));
    write(&directory, "3.json", &named("main", &["x", "X"]));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "3 created, 0 updated, 0 unchanged, 0 failed");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 3 unchanged, 0 failed");
    let shown = cli.command(&["show", "main"]).run().succeeded();
    for id in ["external id x", "external id X"] {
        assert!(shown.stdout.contains(id), "{shown:?}");
    }
}

#[apply(on_one_database)]
fn guides_that_name_each_other_by_external_ids_need_no_guid(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    // The files with the subtasks come first, and two guides refer to each other.
    write(&directory, "a.json", &named("a", &["b", "c"]));
    write(&directory, "b.json", &named("b", &["c"]));
    write(&directory, "c.json", &named("c", &["a"]));
    let files = directory.path().display().to_string();
    let lint = cli.command(&["lint", "--closed", "--rule=subtask/cycle=off", &files]);
    lint.run().succeeded();
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "3 created, 0 updated, 0 unchanged, 0 failed");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 3 unchanged, 0 failed");
    write(&directory, "c.json", &named("c", &["b"]));
    let output = apply(&cli, directory.path(), &["--dry-run"]).succeeded();
    counted(
        &output,
        "0 to be created, 1 to be updated, 2 unchanged, 0 failed",
    );
    apply(&cli, directory.path(), &[]).succeeded();
    let shown = cli.command(&["show", "c"]).run().succeeded();
    assert!(shown.stdout.contains("external id b"), "{shown:?}");
}

#[apply(on_one_database)]
fn what_a_document_leaves_out_returns_to_its_default(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut full = guide("A");
    full["task"]["published"] = json!(0);
    full["task"]["roles"] = json!(["ACCESS_LEVEL_EXPERT"]);
    full["task"]["dependency_shorthand"] = json!("components.7.colour = red");
    full["task"]["translations"] = json!({"de": {"name": "A"}, "pt-br": {"name": "A"}});
    let step = &mut full["steps"][0];
    step["published"] = json!(0);
    step["dependency_shorthand"] = json!("components.7.colour = red");
    step["tags"] = json!(["t"]);
    step["parts"] = json!(["p"]);
    step["skills"] = json!(["s"]);
    step["instructions"] = json!([{"a": 1}]);
    step["looping"] = json!({"alias": "x", "array": [1]});
    step["feedback_config"] = json!([
        {"name": "colour", "type": "enum", "values": [{"key": "red", "value": "Red"}]},
    ]);
    step["translations"] = json!({"de": {"title": "Lesen", "body": "x"}, "fr": {"title": "Lire"}});
    let guid = cli.import(&full);
    let plain = guide("A");
    write(&directory, "a.json", &plain);
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 1 updated, 0 unchanged, 0 failed");
    let copy = other_account(&cli);
    let expected = copy.import(&plain);
    let shown = |cli: &Cli, guid: &str| {
        let mut document = cli.exported(guid);
        make_comparable(&mut document, &mut HashMap::new());
        document
    };
    assert_eq!(shown(&cli, &guid), shown(&copy, &expected));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 1 unchanged, 0 failed");
}

#[apply(on_one_database)]
fn a_required_text_that_is_left_out_is_refused(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("A"));
    let before = cli.exported(&guid);
    let mut document = before.clone();
    document["task"]["name"] = json!("");
    document["steps"][0]["title"] = json!("");
    write(&directory, "a.json", &document);
    let output = apply(&cli, directory.path(), &[]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    output
        .stderr
        .says(&["task.name: is required", "steps[0].title: is required"]);
    assert_eq!(cli.exported(&guid), before);
}

#[apply(on_one_database)]
fn a_file_without_an_id_is_refused_with_the_line_to_add(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut document = guide("A");
    document["task"]["external_id"] = json!("");
    write(&directory, "pump.json", &document);
    write(&directory, "b.json", &guide("B"));
    apply(&cli, directory.path(), &[]).fails_with(
        1,
        &[
            "pump.json: it has no task.guid",
            "add \"external_id\": \"pump\" to its task",
        ],
    );
    let list = cli.command(&["list", "--format=json"]).run().succeeded();
    assert_eq!(list.json(), json!([]));
}

#[apply(on_one_database)]
fn every_file_below_a_directory_is_applied_and_single_files(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "b.json", &guide("B"));
    fs::create_dir(directory.path().join("more")).expect("a directory");
    write(&directory, "more/a.json", &guide("A"));
    fs::write(directory.path().join("notes.txt"), "no document").expect("a file");
    let elsewhere = tempfile::tempdir().expect("a directory");
    write(&elsewhere, "c.json", &guide("C"));
    symlink(elsewhere.path(), directory.path().join("linked")).expect("a link");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "2 created, 0 updated, 0 unchanged, 0 failed");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 2 unchanged, 0 failed");
    assert_eq!(output.stdout.lines().count(), 2);
    let output = apply(&cli, directory.path(), &["--quiet"]).succeeded();
    assert_eq!(output.stdout, "");
    let file = elsewhere.path().join("c.json");
    let output = apply(&cli, &file, &[]).succeeded();
    assert_eq!(
        output.stderr,
        "1 created, 0 updated, 0 unchanged, 0 failed\n"
    );
    let prune = apply(&cli, &file, &["--prune", "--force"]);
    prune.fails_with(2, &["--prune deletes what a directory does not have"]);
}

#[apply(on_one_database)]
fn fields_that_never_change_are_refused_with_the_stored_value(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("A"));
    let before = cli.exported(&guid);
    let mut document = before.clone();
    document["task"]["product_id"] = json!(8);
    document["steps"][0]["type"] = json!("STEP_TYPE_SOLUTION");
    write(&directory, "a.json", &document);
    write(&directory, "b.json", &guide("B"));
    let output = apply(&cli, directory.path(), &[]);
    let import = cli
        .command(&["import", "-"])
        .stdin(&document.to_string())
        .run();
    for output in [&output, &import] {
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        output.stderr.says(&[
            "task.product_id: it stays 7",
            "steps[0].type: step 1 \"Read\" stays information",
        ]);
    }
    counted(&output, "1 created, 0 updated, 0 unchanged, 1 failed");
    assert_eq!(cli.exported(&guid), before);
}

#[apply(on_one_database)]
fn a_dry_run_shows_changes_and_findings_and_stores_nothing(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("A"));
    let mut document = cli.exported(&guid);
    // Nobody sees what follows an end.
    document["steps"]
        .as_array_mut()
        .expect("steps")
        .push(json!({
            "product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Never",
        }));
    document["steps"][0]["title"] = json!("Read this");
    write(&directory, "a.json", &document);
    write(&directory, "b.json", &guide("B"));
    let same = cli.import(&guide("Same"));
    write(&directory, "same.json", &guide("Same"));
    let before = cli.export(&guid);
    let output = apply(&cli, directory.path(), &["--dry-run", "--prune"]).succeeded();
    output.stdout.says(&[
        &format!("would update {guid} from "),
        "would create a task from ",
        "    title: \"Read\" -> \"Read this\"\n",
        "  + step 3 Never\n",
        "(step/unreachable)",
    ]);
    counted(
        &output,
        "1 to be created, 1 to be updated, 1 unchanged, 0 to be deleted, 0 failed",
    );
    output.stdout.says_none_of(&["Same"]);
    let quiet = apply(&cli, directory.path(), &["--dry-run", "--quiet"]).succeeded();
    let change = "    title: \"Read\" -> \"Read this\"\n";
    quiet.stdout.says(&["would create a task from ", change]);
    assert_eq!(cli.export(&guid), before);
    for guid in [&guid, &same] {
        let history = cli.command(&["history", guid, "--format=json"]).run();
        assert_eq!(history.succeeded().json(), json!([]), "nothing is kept");
    }
    cli.command(&["show", "B"])
        .run()
        .fails_with(1, &["no task of this account"]);
}

#[apply(on_one_database)]
fn tasks_that_the_directory_lacks_are_pruned_if_asked(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "a.json", &guide("A"));
    // The one refers to the other.
    let target = cli.import(&guide("Target"));
    let referring = cli.import(&guide("Referring"));
    add_step(&cli, &referring, subtask_step(&target, 7));
    write(&directory, ".target.json", &cli.exported(&target));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "1 created, 0 updated, 0 unchanged, 0 failed");
    let output = apply(&cli, directory.path(), &["--prune", "--dry-run"]).succeeded();
    for guid in [&target, &referring] {
        let line = format!("would delete {guid}: ");
        assert!(output.stdout.contains(&line), "{}", output.stdout);
    }
    // What is there and stays is only counted.
    assert_eq!(output.stdout.lines().count(), 2, "{}", output.stdout);
    let mut keeps = guide("Keeps");
    let steps = keeps["steps"].as_array_mut().expect("steps");
    steps.push(subtask_step(&target, 7));
    write(&directory, "keeps.json", &keeps);
    let output = apply(&cli, directory.path(), &["--prune", "--dry-run"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let kept = format!("would keep {target}: Target, 2 steps: a step of ");
    let line = output.stderr.lines().find(|line| line.starts_with(&kept));
    let line = line.expect(&output.stderr);
    assert!(line.ends_with("keeps.json refers to it"), "{line}");
    assert!(!output.stdout.contains(&target), "{}", output.stdout);
    fs::remove_file(directory.path().join("keeps.json")).expect("it is there");
    let output = apply(&cli, directory.path(), &["--prune", "--force"]).succeeded();
    let (listed, _) = output.stderr.split_once("0 created").expect("the counts");
    for guid in [&target, &referring] {
        let line = format!("deleted {guid}: ");
        assert!(output.stdout.contains(&line), "{}", output.stdout);
        assert!(listed.contains(guid.as_str()), "{listed}");
    }
    counted(
        &output,
        "0 created, 0 updated, 1 unchanged, 2 deleted, 0 failed",
    );
}

#[apply(on_one_database)]
fn tasks_that_are_not_in_the_directory_are_counted(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let one = cli.import(&guide("One"));
    let two = cli.import(&guide("Two"));
    write(&directory, "three.json", &guide("Three"));
    let steps = "2 steps";
    let line = format!(
        "2 tasks of the account are not in the directory: --prune deletes them\n  \
         {one}: One, {steps}\n  {two}: Two, {steps}\n"
    );
    let output = apply(&cli, directory.path(), &[]).succeeded();
    assert!(output.stderr.starts_with(&line), "{}", output.stderr);
    let output = apply(&cli, directory.path(), &["--prune", "--dry-run"]).succeeded();
    output.stderr.says_none_of(&["not in the directory"]);
    let names: Vec<String> = (0..9).map(|number| format!("{number}.json")).collect();
    let args = ["import"]
        .into_iter()
        .chain(names.iter().map(String::as_str));
    let import = cli.command(&args.collect::<Vec<&str>>());
    let with_file = |it: Command, name: &String| it.file(name, &guide(name).to_string());
    names.iter().fold(import, with_file).run().succeeded();
    let output = apply(&cli, directory.path(), &[]).succeeded();
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert!(lines[10].ends_with(": 7.json, 2 steps"), "{lines:?}");
    assert_eq!(lines[11], "  and 1 more");
}

#[apply(on_one_database)]
fn errors_of_what_is_stored_are_printed(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(
        &directory,
        "a.json",
        &example("broken/measure-a-power-supply.json"),
    );
    let apply = |args: &[&str]| apply(&cli, directory.path(), args).succeeded().stdout;
    let created = apply(&[]);
    let error = "  error in step 5 \"The power supply is defective\": ";
    assert_eq!(created.matches(error).count(), 1, "{created}");
    let unchanged = apply(&[]);
    assert!(!unchanged.contains(error), "{unchanged}");
    let copy = other_account(&cli);
    let quiet = self::apply(&copy, directory.path(), &["--quiet"]).succeeded();
    assert!(quiet.stdout.starts_with("created "), "{}", quiet.stdout);
    assert!(!quiet.stdout.contains(error), "{}", quiet.stdout);
}

#[apply(on_one_database)]
fn nothing_is_pruned_after_a_failure(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("Stays"));
    let mut refused = guide("A");
    refused["steps"][0]["cost"] = json!(1);
    write(&directory, "a.json", &refused);
    write(&directory, "b.json", &guide("B"));
    let output = apply(&cli, directory.path(), &["--prune", "--force"]);
    assert_eq!(output.code, Some(1));
    output
        .stderr
        .says(&["document.steps[0].cost", "nothing is pruned"]);
    counted(
        &output,
        "1 created, 0 updated, 0 unchanged, 0 deleted, 1 failed",
    );
    cli.export(&guid);
}

#[apply(on_one_database)]
fn pruning_without_a_terminal_needs_force(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "a.json", &guide("A"));
    apply(&cli, directory.path(), &["--prune"]).fails_with(2, &["repeat it with --force"]);
    let line = cli.command(&["show", "A"]).run().failure(1);
    assert!(line.contains("no task"), "nothing is created: {line}");
}

#[apply(on_one_database)]
fn a_file_that_is_no_document_stops_everything(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "a.json", &guide("A"));
    write(&directory, "b.json", &json!({"task": {"nmae": "B"}}));
    apply(&cli, directory.path(), &[]).fails_with(
        1,
        &[
            "b.json: it is not a guide: task",
            "unrecognized field name 'nmae'",
            "nothing is applied: ",
        ],
    );
    let line = cli.command(&["show", "A"]).run().failure(1);
    assert!(line.contains("no task"), "nothing is created: {line}");

    let empty = tempfile::tempdir().expect("a directory");
    apply(&cli, empty.path(), &[]).fails_with(1, &["has no .json files"]);

    let guid = cli.import(&guide("A"));
    write(&directory, "a.json", &cli.exported(&guid));
    write(&directory, "b.json", &cli.exported(&guid));
    apply(&cli, directory.path(), &[]).fails_with(1, &[&format!("are both of task {guid}")]);

    for file in ["a.json", "b.json"] {
        let named = json!({"task": {"name": file, "product_id": 1, "external_id": "pump"}});
        write(&directory, file, &named);
    }
    apply(&cli, directory.path(), &[]).fails_with(1, &["are both of task pump"]);
}

#[apply(on_one_database)]
fn an_exported_guide_with_another_name_replaces_its_file(cli: Cli) {
    let guid = cli.import(&guide("A first name"));
    let directory = export_all(&cli);
    let mut renamed = cli.exported(&guid);
    renamed["task"]["name"] = json!("Another name");
    cli.import(&renamed);
    let out = directory.path().display().to_string();
    let export = cli.command(&["export", "--all", "--out", &out, "--format=json"]);
    let output = export.run().succeeded();
    // The file of a guide keeps its name.
    let file = directory.path().join(format!("a-first-name-{guid}.json"));
    assert_eq!(output.json()[0]["file"], file.display().to_string());
    assert_eq!(
        fs::read_to_string(&file).expect("a text"),
        cli.authored(&guid)
    );
    let files = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(files.count(), 1);
    let full = cli.command(&["export", "--all", "--full", "--out", &out]);
    full.run().succeeded();
    let text = fs::read_to_string(&file).expect("a text");
    assert_eq!(text, cli.export(&guid));
    cli.command(&["delete", &guid, "--force"]).run().succeeded();
    let output = cli.command(&["export", "--all", "--out", &out]).run();
    let left = output.succeeded().stderr;
    assert!(left.contains("the account has no such guide"), "{left}");
    assert_eq!(fs::read_to_string(&file).expect("it is left"), text);
}

#[apply(on_one_database)]
fn json_output_reports_each_document(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guid = cli.import(&guide("A"));
    let mut document = cli.exported(&guid);
    document["steps"][0]["title"] = json!("Read this");
    write(&directory, "a.json", &document);
    let mut refused = guide("B");
    refused["steps"][0]["cost"] = json!(1);
    write(&directory, "b.json", &refused);
    let output = apply(&cli, directory.path(), &["--format=json", "--dry-run"]);
    assert_eq!(output.code, Some(1));
    let reports = output.json();
    let by_outcome = |outcome: &str| {
        let reports = reports.as_array().expect("an array");
        let found = reports.iter().find(|report| report["outcome"] == outcome);
        found.expect(outcome).clone()
    };
    let updated = by_outcome("IMPORT_OUTCOME_UPDATED");
    assert_eq!(updated["guid"], guid.as_str());
    assert_eq!(updated["findings"], json!([]));
    let change = &updated["changes"][0];
    assert_eq!(change["kind"], "changed");
    assert_eq!(change["path"], "title");
    assert_eq!(change["step"], document["steps"][0]["guid"]);
    assert_eq!(
        (&change["before"], &change["after"]),
        (&json!("Read"), &json!("Read this"))
    );
    let failed = reports.as_array().expect("an array").iter();
    let failed = failed.filter_map(|report| report.get("error")).next();
    let violation = &failed.expect("a failure")["violations"][0];
    assert_eq!(violation["field"], "document.steps[0].cost");
}

/// The numbers of steps at the ends of lines, sorted.
fn step_counts(output: &CommandOutput) -> Vec<usize> {
    let lines = output.stdout.lines();
    let counts = lines.filter_map(|line| {
        let (_, count) = line.rsplit_once(", ")?;
        count.split_once(" step")?.0.parse().ok()
    });
    let mut counts: Vec<usize> = counts.collect();
    counts.sort_unstable();
    counts
}

#[apply(on_one_database)]
fn every_line_has_the_number_of_steps_that_is_stored(cli: Cli) {
    let first = cli.import(&guide("Refers to a later one"));
    cli.import_guides(&["laptop-will-not-start.json"]);
    let later = cli.import(&guide("Later"));
    add_step(&cli, &first, subtask_step(&later, 7));
    let original = export_all(&cli);
    // The steps that lead to managed tasks are added by the server.
    let laptop = original.path().join("laptop.json");
    for file in fs::read_dir(original.path()).expect("a directory") {
        let path = file.expect("a file").path();
        if path.display().to_string().contains("laptop-will-not-start") {
            fs::remove_file(path).expect("a file");
        }
    }
    let example = example("laptop-will-not-start.json").to_string();
    fs::write(laptop, example).expect("a file");
    let copy = other_account(&cli);
    let planned = apply(&copy, original.path(), &["--dry-run"]).succeeded();
    let created = apply(&copy, original.path(), &[]).succeeded();
    assert_eq!(
        counts(&created),
        "3 created, 0 updated, 0 unchanged, 0 failed"
    );
    let unchanged = apply(&copy, original.path(), &[]).succeeded();
    let list = copy.command(&["list", "--type=standard", "--format=json"]);
    let list = list.run().succeeded().json();
    let tasks = list.as_array().expect("tasks").iter();
    let stored = tasks.map(|task| task["steps"].as_array().expect("steps").len());
    let mut stored: Vec<usize> = stored.collect();
    stored.sort_unstable();
    assert_eq!(stored, [2, 3, 38]);
    for output in [planned, created, unchanged] {
        assert_eq!(step_counts(&output), stored, "{}", output.stdout);
    }
}

#[apply(on_one_database)]
fn a_guide_with_another_external_id_is_another_one(cli: Cli) {
    let with_id = |id: &str, first: &str| {
        let mut document = guide("Reset");
        document["task"]["external_id"] = json!(id);
        document["steps"][0]["title"] = json!(first);
        let directory = tempfile::tempdir().expect("a directory");
        write(&directory, "reset.json", &document);
        directory
    };
    let one = with_id("team-a/reset", "Ours");
    apply(&cli, one.path(), &[]).succeeded();
    let output = apply(&cli, with_id("team-b/reset", "Theirs").path(), &[]).succeeded();
    assert!(counts(&output).contains("1 created"), "{}", output.stderr);
    let output = apply(&cli, one.path(), &[]).succeeded();
    assert!(counts(&output).contains("1 unchanged"), "{}", output.stderr);
}

#[apply(on_one_database)]
fn the_document_of_a_managed_task_is_named(cli: Cli) {
    let laptop = cli.import_guides(&["laptop-will-not-start.json"]).remove(0);
    let laptop = cli.exported(&laptop);
    let steps = laptop["steps"].as_array().expect("steps");
    let managed = steps.iter().find_map(|step| step["link"].as_str());
    let managed = managed.expect("a wiring step");
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "managed.json", &cli.exported(managed));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    assert!(!output.stderr.contains("warning"), "{}", output.stderr);
    let output = apply(&other_account(&cli), directory.path(), &[]).succeeded();
    let warning = "managed.json is of a managed task, and is applied as a task of its own: ";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}

#[test]
fn combinations_of_arguments_that_make_no_sense_are_refused() {
    for args in [
        &["export", "--all", "--account=demo"][..],
        &["export", "--account=demo"],
        &["export", "A", "--all", "--out=d", "--account=demo"],
        &["apply", "d", "--force", "--account=demo"],
        &["apply", "d", "--merge", "--overwrite", "--account=demo"],
    ] {
        assert_eq!(command(args).run().code, Some(2), "{args:?}");
    }
}

#[apply(on_one_database)]
fn what_is_not_there_is_refused(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let error = apply(&cli, &missing, &[]).failure(1);
    let expected = format!(
        "expertise: there is no directory or file {}: ",
        missing.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    let hostile = apply(&cli, Path::new("a\u{1b}[31m\u{202e}b"), &[]).failure(1);
    let expected = "expertise: there is no directory or file a [31m b: ";
    assert!(hostile.starts_with(expected), "{hostile}");
}

#[apply(on_one_database)]
fn a_guide_without_an_id_is_found_by_its_external_id(cli: Cli) {
    let mut document = guide("Before");
    document["task"]["external_id"] = json!("pump");
    document["steps"][0]["external_id"] = json!("read");
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "pump.json", &document);
    apply(&cli, directory.path(), &[]).succeeded();
    let stored = || {
        let listed = cli.command(&["list", "--format=json"]).run();
        let listed = listed.succeeded().json();
        let tasks = listed.as_array().expect("tasks");
        assert_eq!(tasks.len(), 1);
        cli.exported(&text(&tasks[0]["guid"]))
    };
    let before = stored();
    // Neither the name nor the title is what it was.
    document["task"]["name"] = json!("After");
    document["steps"][0]["title"] = json!("Read on");
    let mut steps = document["steps"].as_array().expect("steps").clone();
    steps.insert(
        0,
        json!({"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Read"}),
    );
    document["steps"] = json!(steps);
    write(&directory, "pump.json", &document);
    apply(&cli, directory.path(), &[]).succeeded();
    let after = stored();
    assert_eq!(after["task"]["guid"], before["task"]["guid"]);
    assert_eq!(after["task"]["name"], "After");
    assert_eq!(after["steps"][1]["guid"], before["steps"][0]["guid"]);
    assert_eq!(after["steps"][1]["title"], "Read on");
    let output = apply(&cli, directory.path(), &[]).succeeded();
    assert!(counts(&output).contains("1 unchanged"), "{}", output.stderr);
}

#[apply(on_one_database)]
fn what_was_deleted_is_made_again(cli: Cli) {
    let guid = cli.import(&guide("A"));
    let directory = export_all(&cli);
    let authored = cli.authored(&guid);
    let before = cli.exported(&guid);
    let mut shorter = before.clone();
    shorter["steps"].as_array_mut().expect("steps").remove(0);
    let import = cli.command(&["import", "-", "--absent-steps=delete"]);
    import.stdin(&shorter.to_string()).run().succeeded();
    let refused = cli.command(&["import", "-"]).stdin(&authored).run();
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 1 updated, 0 unchanged, 0 failed");
    let steps = &cli.exported(&guid)["steps"];
    assert_eq!(steps[0]["title"], "Read");
    assert_ne!(steps[0]["guid"], before["steps"][0]["guid"]);
    assert_eq!(steps[1]["guid"], before["steps"][1]["guid"]);
    let delete = cli.command(&["delete", &guid, "--force"]);
    delete.run().succeeded();
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "1 created, 0 updated, 0 unchanged, 0 failed");
    assert_ne!(cli.exported("A")["task"]["guid"], guid.as_str());
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 0 updated, 1 unchanged, 0 failed");
}

#[apply(on_one_database)]
fn steps_without_ids_are_found_by_type_and_title(cli: Cli) {
    let document = |steps: [(&str, &str); 3]| {
        let steps = steps.map(|(kind, title)| {
            json!({"product_id": 7, "type": format!("STEP_TYPE_{kind}"), "title": title})
        });
        json!({"task": {"name": "A", "product_id": 7, "external_id": "a"}, "steps": steps})
    };
    let [read, mend, look] = [
        ("INFORMATION", "Read"),
        ("SOLUTION", "Read"),
        ("INFORMATION", "Look"),
    ];
    let guid = cli.import(&document([read, mend, look]));
    let ids = || {
        let steps = cli.exported(&guid)["steps"].clone();
        [0, 1, 2].map(|index| text(&steps[index]["guid"]))
    };
    let [first, second, third] = ids();
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory, "a.json", &document([mend, look, read]));
    let output = apply(&cli, directory.path(), &[]).succeeded();
    counted(&output, "0 created, 1 updated, 0 unchanged, 0 failed");
    assert_eq!(ids(), [second, third, first]);
}
