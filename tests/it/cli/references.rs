//! `expertise references`.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, binary_text, command, text},
    on_one_database,
    terminal::shown_in,
};

const REACTS: &str = "--variable=components.1204.reacts";

fn references(cli: &Cli, args: &[&str]) -> Vec<Value> {
    let args = [&["references", "--format=json"], args].concat();
    let list = cli.command(&args).run().succeeded().json();
    list.as_array().expect("an array").clone()
}

fn kinds(list: &[Value]) -> Vec<String> {
    list.iter().map(|one| text(&one["kind"])).collect()
}

fn subtask_of(task: &str) -> Value {
    json!({"product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": task, "subtask_pid": 1204})
}

#[apply(on_one_database)]
fn a_variable_is_set_and_read(cli: Cli) {
    cli.import_guides(&["restart-safely.json"]);
    let list = references(&cli, &[REACTS]);
    let expected = [
        "REFERENCE_KIND_SETS",
        "REFERENCE_KIND_READS",
        "REFERENCE_KIND_READS",
    ];
    assert_eq!(kinds(&list), expected);
    let table = cli
        .command(&["references", REACTS])
        .run()
        .succeeded()
        .stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].starts_with("KIND "), "{table}");
    assert!(lines[1].starts_with("sets "), "{table}");
    let reads = "is one of \"yes\", \"slowly\"";
    table.says(&[reads, "Restart through the menu"]);
}

#[apply(on_one_database)]
fn an_answer_narrows_the_list(cli: Cli) {
    cli.import_guides(&["restart-safely.json"]);
    let list = references(&cli, &[REACTS, "--answer=no"]);
    assert_eq!(
        kinds(&list),
        ["REFERENCE_KIND_SETS", "REFERENCE_KIND_READS"]
    );
    assert_eq!(list[1]["targets"], json!(["no"]));
    assert_eq!(
        references(&cli, &[REACTS, "--answer=perhaps"]),
        [Value::Null; 0]
    );
}

#[apply(on_one_database)]
fn a_task_is_referred_to_by_subtask_steps(cli: Cli) {
    let task = &cli.import_guides(&["restart-safely.json"])[0];
    let document = json!({"task": {"name": "A", "product_id": 7}, "steps": [subtask_of(task)]});
    let guide = cli.import(&document);
    let list = references(&cli, &["--task", task]);
    assert_eq!(kinds(&list), ["REFERENCE_KIND_SUBTASK"]);
    assert_eq!(list[0]["place"]["task"], guide.as_str());
    let table = cli.command(&["references", "--task", task]).run();
    let table = table.succeeded().stdout;
    let words: Vec<&str> = table.lines().flat_map(str::split_whitespace).collect();
    let head = [
        "KIND",
        "TASK",
        "STEP",
        "OR",
        "TASK",
        "CONDITION",
        "PATH",
        "TITLE",
    ];
    assert_eq!(words[..8], head);
    assert_eq!(words[8..10], ["subtask", "A"], "{table}");
    let absent = uuid::Uuid::now_v7().to_string();
    cli.command(&["references", "--task", &absent])
        .run()
        .fails_with(1, &["TASK_NOT_FOUND"]);
}

#[apply(on_one_database)]
fn every_page_is_listed(cli: Cli) {
    const COUNT: usize = 600;
    let task = &cli.import_guides(&["restart-safely.json"])[0];
    let steps = vec![subtask_of(task); COUNT];
    cli.import(&json!({"task": {"name": "A", "product_id": 7}, "steps": steps}));
    assert_eq!(references(&cli, &["--task", task]).len(), COUNT);
    let table = cli.command(&["references", "--task", task]).run();
    assert_eq!(table.succeeded().stdout.lines().count(), COUNT + 1);
}

#[apply(on_one_database)]
fn nothing_found_is_no_failure(cli: Cli) {
    let output = cli
        .command(&["references", "--variable=components.1.x"])
        .run();
    let output = output.succeeded();
    assert_eq!(output.stdout, "");
    assert_eq!(
        output.stderr,
        "nothing in this account sets or reads components.1.x: `expertise show GUID` shows the \
         names and answers of a guide\n"
    );
    assert_eq!(
        references(&cli, &["--variable=components.1.x"]),
        [Value::Null; 0]
    );
}

#[apply(on_one_database)]
fn what_was_looked_for_is_named_with_what_to_do(cli: Cli) {
    let task = &cli.import_guides(&["restart-safely.json"])[0];
    for (args, expected) in [
        (
            &["--task", task, "--variable=raects"][..],
            "nothing in this task sets or reads raects: `expertise show GUID` shows the names and \
             answers of a guide\n",
        ),
        (
            &["--variable=components.1204.reacts", "--answer=nope"],
            "nothing in this account sets or reads components.1204.reacts with the answer \"nope\": \
             `expertise show GUID` shows the names and answers of a guide\n",
        ),
        (
            &["--variable=something else"],
            "nothing in this account sets or reads something else: an account-wide name is \
             components.PRODUCT.NAME, and an own name needs --task\n",
        ),
        (
            &["--task", task],
            "no step refers to this task, and no answer manages it\n",
        ),
    ] {
        let output = cli.command(&[&["references"], args].concat()).run();
        assert_eq!(output.succeeded().stderr, expected);
    }
}

#[apply(on_one_database)]
fn a_search_for_a_full_name_names_the_search_for_the_own_name(cli: Cli) {
    let task = &cli.import_guides(&["restart-safely.json"])[0];
    let args = ["references", "--variable=components.1204.reacts"];
    let output = cli.command(&args).run().succeeded();
    let expected = format!(
        "readers of the own name: `expertise references --task {task} --variable reacts` lists \
         them\n"
    );
    assert_eq!(output.stderr, expected);
}

#[apply(on_one_database)]
fn a_search_for_an_own_name_names_the_search_for_the_full_name(cli: Cli) {
    let task = &cli.import_guides(&["restart-safely.json"])[0];
    let args = ["references", "--task", task, "--variable"];
    let named = "`expertise references --variable components.1204.reacts` lists them";
    let output = cli.command(&[&args[..], &["reacts"]].concat()).run();
    let output = output.succeeded();
    assert!(output.stderr.contains(named), "{output:?}");
    for variable in ["components.1204.reacts", "nothing"] {
        let output = cli.command(&[&args[..], &[variable]].concat()).run();
        assert!(!output.stderr.contains("full name"), "{output:?}");
    }
}

#[apply(on_one_database)]
fn tables_fit_the_terminal(cli: Cli) {
    let guid = &cli.import_guides(&["measure-a-power-supply.json"])[0];
    let environment = [
        ("EXPERTISE_SERVER", cli.server.as_str()),
        ("EXPERTISE_ACCOUNT", cli.account.as_str()),
    ];
    let variable = "--variable=components.2310.supply_voltage";
    for arguments in [
        "list".to_owned(),
        format!("references {variable}"),
        format!("show --full {guid}"),
        format!("preview --explain {guid}"),
    ] {
        let line = format!("{} {arguments}", binary_text());
        let shown = shown_in(80, &line, &environment);
        assert!(shown.lines().count() > 2, "{shown}");
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{line}\n{shown}");
        }
        if arguments != format!("references {variable}") {
            // Ids stay whole.
            assert!(shown.contains(guid.as_str()), "{shown}");
        }
    }
}

#[apply(on_one_database)]
fn no_word_is_broken_on_a_narrow_terminal(cli: Cli) {
    cli.import_guides(&["laptop-will-not-start.json"]);
    let environment = [
        ("EXPERTISE_SERVER", cli.server.as_str()),
        ("EXPERTISE_ACCOUNT", cli.account.as_str()),
    ];
    for columns in [50, 80, 110] {
        let line = format!(
            "{} references --variable components.1204.damage",
            binary_text()
        );
        let shown = shown_in(columns, &line, &environment);
        for word in [
            "dependencies.nodes[1].condition",
            "feedback_config[0]",
            "swollen:",
            "recently?",
        ] {
            assert!(shown.contains(word), "{columns}: {word}\n{shown}");
        }
        for line in shown.lines() {
            assert!(line.chars().count() <= columns, "{line}\n{shown}");
        }
    }
}

#[test]
fn a_task_or_a_variable_is_needed() {
    for args in [&["references"][..], &["references", "--answer=on"]] {
        let args = [args, &["--account=demo"]].concat();
        let output = command(&args).run();
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains("--variable <NAME>"), "{output:?}");
    }
    let help = command(&["references", "--help"]).run().succeeded().stdout;
    let usage = help.lines().find(|line| line.starts_with("Usage:"));
    let usage = usage.expect("a usage line");
    assert!(usage.contains("--variable <NAME>>"), "{usage}");
    assert!(!usage.contains("--answer"), "{usage}");
}
