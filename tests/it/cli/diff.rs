//! `expertise diff`.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{
    apply,
    command::{Cli, CommandOutput, Says, binary_text, text},
    on_one_database,
    terminal::shown_in,
};

fn diff(cli: &Cli, document: &Value, args: &[&str]) -> CommandOutput {
    let args = [&["diff", "-"], args].concat();
    cli.command(&args).stdin(&document.to_string()).run()
}

fn given_document(cli: &Cli, example: &str) -> Value {
    let guid = &cli.import_guides(&[example])[0];
    cli.exported(guid)
}

#[apply(on_one_database)]
fn changes_are_shown_by_step_and_field(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let guid = text(&document["task"]["guid"]);
    document["task"]["name"] = json!("Restart it");
    document["task"]["translations"]["de"] = json!({"name": "Neu starten"});
    let steps = document["steps"].as_array_mut().expect("steps");
    steps[0]["body"] = json!("<p>one</p>\n<p>two</p>");
    steps[0]["published"] = json!(0);
    steps.swap(3, 4);
    steps.push(json!({"product_id": 1204, "type": "STEP_TYPE_END", "title": "The end"}));
    let output = diff(&cli, &document, &[]);
    assert_eq!(output.code, Some(1));
    output.stdout.says(&[
        &format!("~ task Restart a laptop safely  {guid}\n"),
        "  name: \"Restart a laptop safely\" -> \"Restart it\"\n",
        "  translations[\"de\"].name: \"Einen Laptop sicher neu starten\" -> \"Neu starten\"",
        "~ step 1 ",
        "  body:\n",
        "    + <p>two</p>\n",
        "  published: 1 -> 0\n",
        "+ step 7 The end\n",
    ]);
    let moved = output
        .stdout
        .lines()
        .filter(|it| it.contains(" becomes step "));
    assert_eq!(moved.count(), 1, "{}", output.stdout);
    // What is shown is what the import does.
    let import = cli.command(&["import", "-"]).stdin(&document.to_string());
    import.run().succeeded();
    let output = diff(&cli, &document, &[]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].starts_with("- step 7 The end  "), "{}", lines[0]);
    assert_eq!(lines[1], "+ step 7 The end", "a step without an id is new");
    assert_eq!(lines.len(), 2, "{}", output.stdout);
}

#[apply(on_one_database)]
fn changes_of_managed_tasks_are_shown(cli: Cli) {
    let mut document = given_document(&cli, "laptop-will-not-start.json");
    let steps = document["steps"].as_array_mut().expect("steps");
    let linked = |step: &&mut Value| step["feedback_config"][0]["linked"] == json!(true);
    let step = steps.iter_mut().find(linked).expect("a linked observation");
    let value = &mut step["feedback_config"][0]["values"][0];
    value["value"] = json!("Another answer");
    let managed = text(&value["link"]);
    value["task_json"]["steps"][0]["title"] = json!("Another title");
    let output = diff(&cli, &document, &[]);
    assert_eq!(output.code, Some(1));
    output.stdout.says(&[
        &managed,
        "-> \"Another answer\"",
        "-> \"Another title\"",
        "  feedback_config:\n    ~ answer ",
    ]);
}

#[apply(on_one_database)]
fn a_step_that_leads_to_a_task_no_longer_managed_is_named(cli: Cli) {
    let mut document = given_document(&cli, "laptop-will-not-start.json");
    let steps = document["steps"].as_array_mut().expect("steps");
    let linked = |step: &&mut Value| step["feedback_config"][0]["linked"] == json!(true);
    let step = steps.iter_mut().find(linked).expect("a linked observation");
    let values = step["feedback_config"][0]["values"].as_array_mut();
    let removed = values.expect("values").remove(0);
    let mut places = steps.iter();
    let place = places.position(|step| step["subtask_id"] == removed["link"]);
    let place = place.expect("the step that leads to its task") + 1;
    let line = format!("stays as a task of its own; step {place} still leads to it");
    let output = diff(&cli, &document, &[]);
    assert!(output.stdout.contains(&line), "{}", output.stdout);
    assert!(
        !output.stderr.contains("--absent-steps"),
        "no step is left out"
    );
    let json = diff(&cli, &document, &["--format=json"]).json();
    let changes = json["changes"].as_array().expect("changes");
    let task = changes.iter().find(|it| it["task"] == removed["link"]);
    assert_eq!(task.expect("its task")["subtask_step"], place);
    // Without the step, nothing leads there.
    let steps = document["steps"].as_array_mut().expect("steps");
    steps.remove(place - 1);
    let output = diff(&cli, &document, &["--absent-steps=DELETE"]);
    assert!(!output.stdout.contains("still leads"), "{}", output.stdout);
}

#[apply(on_one_database)]
fn tasks_of_an_observation_that_is_deleted_are_named(cli: Cli) {
    let mut document = given_document(&cli, "laptop-will-not-start.json");
    let steps = document["steps"].as_array_mut().expect("steps");
    let linked = |step: &Value| step["feedback_config"][0]["linked"] == json!(true);
    let place = steps.iter().position(linked).expect("a linked observation");
    let removed = steps.remove(place);
    let output = diff(&cli, &document, &["--absent-steps=DELETE"]);
    let values = removed["feedback_config"][0]["values"].as_array();
    for value in values.expect("values") {
        let link = text(&value["link"]);
        let mut lines = output.stdout.lines();
        let line = lines.find(|line| line.ends_with(&link)).expect(&link);
        let unlinked = "is no longer managed, and stays as a task of its own; step ";
        assert!(line.contains(unlinked), "{line}");
    }
}

#[apply(on_one_database)]
fn findings_have_the_line_in_the_file(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let product = document["steps"][0]["product_id"].clone();
    let steps = document["steps"].as_array_mut().expect("steps");
    steps.push(json!({
        "title": "Added", "product_id": product, "type": "STEP_TYPE_INFORMATION",
    }));
    let text = serde_json::to_string_pretty(&document).expect("a text");
    let output = cli.command(&["diff", "-"]).stdin(&text).run();
    let mut lines = text.lines();
    let line = 1 + lines
        .position(|it| it.contains("\"Added\""))
        .expect("its line");
    // The step begins two lines above its title: its members are sorted by name.
    let at = format!("at line {}: document.steps[6]", line - 2);
    assert!(output.stderr.contains(&at), "{at}: {}", output.stderr);
}

#[apply(on_one_database)]
fn left_out_fields_stay_as_an_import_leaves_them(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    for step in document["steps"].as_array_mut().expect("steps") {
        let step = step.as_object_mut().expect("a step");
        for name in [
            "body",
            "tags",
            "dependencies",
            "dependency_shorthand",
            "published",
        ] {
            step.remove(name);
        }
    }
    let output = diff(&cli, &document, &[]).succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn left_out_steps_are_shown_with_what_to_do(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let step = document["steps"].as_array_mut().expect("steps").pop();
    let title = text(&step.expect("a step")["title"]);
    let removed = format!("- step 6 {title}");
    let output = diff(&cli, &document, &[]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with(&removed), "{}", output.stdout);
    output
        .stderr
        .says(&["--absent-steps keep or --absent-steps delete"]);
    let output = diff(&cli, &document, &["--absent-steps=delete"]);
    assert!(output.stdout.starts_with(&removed), "{}", output.stdout);
    output.stderr.says_none_of(&["--absent-steps"]);
    let output = diff(&cli, &document, &["--absent-steps=keep"]).succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn a_document_without_an_id_is_a_new_guide(cli: Cli) {
    let document = json!({"task": {"name": "New", "product_id": 7}});
    let output = diff(&cli, &document, &[]);
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stdout, "+ task New, with every step\n");
}

#[apply(on_one_database)]
fn findings_do_not_count_the_stored_form_as_another_guide(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let steps = document["steps"].as_array_mut().expect("steps");
    let read = steps
        .iter_mut()
        .find(|step| step["dependencies"].is_object());
    let read = read.expect("a condition")["dependencies"].to_string();
    let asked = steps.iter_mut().find(|step| {
        let name = step["feedback_config"][0]["name"].as_str();
        name.is_some_and(|name| read.contains(name))
    });
    asked.expect("an observation")["feedback_config"][0]["name"] = json!("renamed");
    let output = diff(&cli, &document, &[]);
    let rule = "(condition/unknown-variable)";
    assert!(output.stderr.contains(rule), "{}", output.stderr);
}

#[apply(on_one_database)]
fn findings_name_the_number_and_title_of_their_step(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][2]["dependencies"] = json!(null);
    document["steps"][2]["dependency_shorthand"] = json!("components.1204.nothing = x");
    let title = text(&document["steps"][2]["title"]);
    let output = diff(&cli, &document, &[]);
    output.stdout.says(&[&format!("~ step 3 {title}  ")]);
    let label = format!(" in step 3 \"{title}\": ");
    assert!(output.stderr.contains(&label), "{}", output.stderr);
}

#[apply(on_one_database)]
fn conditions_are_shown_in_words(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][2]["dependencies"]["nodes"][0]["condition"]["targets"] = json!(["no"]);
    document["steps"][2]["dependency_shorthand"] = Value::Null;
    let output = diff(&cli, &document, &[]);
    let expected = "  dependencies: components.1204.reacts is one of \"yes\", \"slowly\" -> \
                    components.1204.reacts is \"no\"\n";
    assert!(output.stdout.contains(expected), "{}", output.stdout);
    // Another operator of a group of one condition reads the same.
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][2]["dependencies"]["operator"] = json!("LOGICAL_OPERATOR_OR");
    document["steps"][2]["dependency_shorthand"] = Value::Null;
    let output = diff(&cli, &document, &[]);
    output.stdout.says(&["    - all of:\n    + any of:\n"]);
}

#[apply(on_one_database)]
fn long_conditions_are_shown_one_by_one(cli: Cli) {
    let condition = |name: &str, target: &str| {
        json!({"condition": {
            "path": "components.1204", "variable": name, "operator": "=", "targets": [target]
        }})
    };
    let mut document = given_document(&cli, "restart-safely.json");
    let set = |document: &mut Value, nodes: Vec<Value>| {
        document["steps"][2]["dependency_shorthand"] = Value::Null;
        document["steps"][2]["dependencies"] =
            json!({"operator": "LOGICAL_OPERATOR_AND", "nodes": nodes});
    };
    let mut nodes: Vec<Value> = (0..8)
        .map(|number| condition(&format!("a_long_name_{number}"), "yes"))
        .collect();
    set(&mut document, nodes.clone());
    let import = cli.command(&["import", "-"]).stdin(&document.to_string());
    import.run().succeeded();
    nodes[6] = condition("a_long_name_6", "no");
    set(&mut document, nodes);
    let output = diff(&cli, &document, &[]);
    let expected = "  dependencies:\n    \
                    -   components.1204.a_long_name_6 is \"yes\"\n    \
                    +   components.1204.a_long_name_6 is \"no\"\n";
    assert!(output.stdout.ends_with(expected), "{}", output.stdout);
}

#[apply(on_one_database)]
fn changed_answers_are_shown_one_by_one(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let steps = document["steps"].as_array_mut().expect("steps");
    let asks = |step: &&mut Value| step["feedback_config"][0]["name"] == json!("reacts");
    let step = steps.iter_mut().find(asks).expect("an observation");
    let question = &mut step["feedback_config"][0];
    question["name"] = json!("responds");
    question["values"] = json!([
        {"key": "slowly", "value": "Another"},
        {"key": "yes", "value": question["values"][0]["value"]},
        {"key": "never", "value": "Never"},
    ]);
    let output = diff(&cli, &document, &[]);
    output.stdout.says(&[
        "  feedback_config:\n    name: \"reacts\" -> \"responds\"\n",
        "    - answer no: \"",
        "    ~ answer slowly: \"",
        " -> \"Another\"\n",
        "    + answer never: \"Never\"\n",
        "    order of the answers: yes, slowly -> slowly, yes\n",
    ]);
    assert!(!output.stdout.contains("answer yes"), "{}", output.stdout);
}

#[apply(on_one_database)]
fn an_answer_that_changes_behind_its_shown_part_is_named(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let steps = document["steps"].as_array().expect("steps");
    let asks = |step: &Value| step["feedback_config"][0]["name"] == json!("reacts");
    let index = steps.iter().position(asks).expect("an observation");
    let with_answer = |document: &Value, text: &str| {
        let mut document = document.clone();
        document["steps"][index]["feedback_config"][0]["values"][0]["value"] = json!(text);
        document
    };
    let long = "x".repeat(300);
    document = with_answer(&document, &long);
    cli.import(&document);
    let output = diff(&cli, &with_answer(&document, &format!("{long}y")), &[]);
    output.stdout.says(&["~ answer yes: "]);
}

#[apply(on_one_database)]
fn added_translations_are_shown_by_field(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][0]["translations"]["nl"] = json!({"title": "Eerst opslaan"});
    let output = diff(&cli, &document, &[]);
    let expected = "  translations[\"nl\"].title: nothing -> \"Eerst opslaan\"\n";
    assert!(output.stdout.contains(expected), "{}", output.stdout);
}

#[apply(on_one_database)]
fn changes_fit_the_terminal(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen";
    document["task"]["name"] = json!(long);
    document["steps"][0]["body"] = json!(format!("{long}\n{long}"));
    let directory = directory_with_guide(&document.to_string());
    for arguments in ["diff guides/a.json", "apply --dry-run guides"] {
        let command = format!("{arguments} 2>/dev/null");
        let shown = shown_in_terminal(&cli, 60, &directory, &command);
        let (_, changes) = shown.split_once("~ task ").expect(&shown);
        assert!(changes.contains("thirteen"), "{shown}");
        assert_lines_fit(60, changes);
    }
}

/// A directory with a document in `guides/a.json`.
fn directory_with_guide(document: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("guides")).expect("a directory");
    fs::write(directory.path().join("guides/a.json"), document).expect("a file");
    directory
}

/// What a command shows in a terminal of this width, run in a directory.
fn shown_in_terminal(cli: &Cli, columns: usize, directory: &TempDir, arguments: &str) -> String {
    let environment = [
        ("EXPERTISE_SERVER", cli.server.as_str()),
        ("EXPERTISE_ACCOUNT", cli.account.as_str()),
    ];
    let line = format!(
        "cd {}; {} {arguments}",
        directory.path().display(),
        binary_text()
    );
    shown_in(columns, &line, &environment)
}

fn assert_lines_fit(columns: usize, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{line}\n{text}");
    }
}

#[apply(on_one_database)]
fn failures_end_with_exit_code_2(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][0]["cost"] = json!(1);
    let output = diff(&cli, &document, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    output.stderr.says(&["document.steps[0].cost: "]);
    document["task"]["guid"] = json!(uuid::Uuid::now_v7().to_string());
    diff(&cli, &document, &[]).fails_with(
        2,
        &[
            "TASK_NOT_FOUND",
            "`expertise import --as-new`",
            "`expertise apply FILE`",
        ],
    );
    let line = cli.command(&["diff", "none.json"]).run().failure(2);
    let part = "none.json: it cannot be read: there is no such file: this command takes documents";
    assert!(line.contains(part), "{line}");
    let server = format!("http://127.0.0.1:{}", crate::kit::postgres::free_port());
    cli.command(&["diff", "-", "--server", &server])
        .run()
        .fails_with(2, &["refuses the connection"]);
}

#[apply(on_one_database)]
fn json_output_has_the_values(cli: Cli) {
    let mut document = given_document(&cli, "restart-safely.json");
    document["steps"][0]["title"] = json!("Another");
    let report = diff(&cli, &document, &["--format=json"]).json();
    assert_eq!(report["guid"], document["task"]["guid"]);
    assert_eq!(report["outcome"], "IMPORT_OUTCOME_UPDATED");
    let change = &report["changes"][0];
    assert_eq!(change["kind"], "changed");
    assert_eq!(change["place"], 1);
    assert_eq!(change["path"], "title");
    assert_eq!(change["after"], "Another");
    assert_eq!(report["changes"][1], json!(null));
}

#[apply(on_one_database)]
fn a_document_is_compared_with_the_guide_of_its_external_id(cli: Cli) {
    let step = json!({
        "product_id": 7,
        "type": "STEP_TYPE_END",
        "title": "Done",
        "external_id": "done",
    });
    let mut document = json!({
        "task": {"name": "Pump", "product_id": 7, "external_id": "pump"},
        "steps": [step],
    });
    let created = diff(&cli, &document, &[]);
    assert!(
        created.stdout.starts_with("+ task Pump"),
        "{}",
        created.stdout
    );
    let guid = cli.import(&document);
    assert_eq!(diff(&cli, &document, &[]).succeeded().stdout, "");
    document["steps"][0]["title"] = json!("It is done");
    let changed = diff(&cli, &document, &[]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.stdout.contains("It is done"), "{}", changed.stdout);
    // An import changes the same guide, and one as a new one makes another.
    assert_eq!(cli.import(&document), guid);
    let text = document.to_string();
    let copied = cli.command(&["import", "-", "--as-new"]).stdin(&text).run();
    assert!(copied.succeeded().stdout.starts_with("created "));
}
