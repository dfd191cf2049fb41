//! `expertise lint`.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, CommandOutput, Says, binary_text, command, example_guide, text},
    on_one_database,
    terminal::shown_in,
};

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

#[test]
fn the_other_example_guides_have_no_error() {
    let guides = example_guides();
    assert!(guides.len() >= 3, "{guides:?}");
    let guides: Vec<&str> = guides.iter().map(String::as_str).collect();
    let reports = lint_json(&guides).succeeded().json();
    for report in reports.as_array().expect("an array") {
        assert_eq!(report["counts"].get("errors"), None, "{report}");
        assert!(report.get("error").is_none(), "{report}");
    }
}

#[test]
fn findings_are_printed_with_what_they_are_about() {
    let output = command(&["lint", &example_guide(BROKEN)]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    let shown = output.stdout.replace(&example_guide(BROKEN), BROKEN);
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("lint", shown));
    assert!(output.stderr.contains("without the account"), "{output:?}");
}

#[test]
fn findings_fit_a_terminal_of_80_columns() {
    let command = format!("{} lint {}", binary_text(), example_guide(BROKEN));
    let shown = shown_in(80, &command, &[]);
    assert!(shown.contains("step/unreachable"), "{shown}");
    for line in shown.lines() {
        // The first line is the name of the file, which may be long.
        let is_name = line.contains(BROKEN);
        assert!(line.chars().count() <= 80 || is_name, "{line}");
    }
}

#[test]
fn options_that_are_refused_are_no_fault_of_the_file() {
    let output = command(&["lint", &example_guide(BROKEN), "--variable="]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    let expected = ": the options are refused:\n  options.known_variables[0]: ";
    let printed = [output.stdout, output.stderr].concat();
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn options_leave_out_findings() {
    let broken = example_guide(BROKEN);
    let all = places(&lint_json(&[&broken]));
    let errors = lint_json(&[&broken, "--min-severity=error"]);
    assert_eq!(errors.code, Some(1));
    assert!(places(&errors).len() < all.len());
    let none = lint_json(&[
        &broken,
        "--min-severity=error",
        "--rule=step/unreachable=off",
    ]);
    assert_eq!(places(&none.succeeded()), BTreeSet::new());
    let warning = lint_json(&[&broken, "--rule", "step/unreachable=warning"]);
    assert_eq!(places(&warning.succeeded()), all);
    let output = lint_json(&[&broken, "--language=fr"]);
    let french = places(&output).into_iter();
    let missing = french.filter(|(rule, _)| rule == "translation/missing");
    assert!(missing.count() > 1);
    let report = lint_json(&[&broken, "--language=fr", "--language=it"]).json();
    let found = report[0]["findings"].as_array().expect("findings").iter();
    let missing = found.filter(|finding| finding["rule"] == "translation/missing");
    let languages: BTreeSet<String> = missing.map(|it| text(&it["language"])).collect();
    assert_eq!(languages, BTreeSet::from(["fr", "it"].map(str::to_owned)));
    let end = json!({"product_id": 7, "type": "STEP_TYPE_END", "title": "Done", "published": 0});
    let hidden = json!({"task": {"name": "A", "product_id": 7}, "steps": [end]}).to_string();
    let found = |flag: &str| {
        let lint = command(&["lint", "-", "--format=json", flag]).stdin(&hidden);
        places(&lint.run()).len()
    };
    assert_ne!(found("--variable=other"), 0);
    assert_eq!(found("--include-unpublished"), 0);
}

#[test]
fn a_file_that_cannot_be_checked_does_not_stop_the_others() {
    let good = example_guide("restart-safely.json");
    let invalid = json!({"task": {"name": "A"}, "steps": [{"title": " "}]}).to_string();
    let output = command(&["lint", "absent.json", "bad.json", "invalid.json", &good])
        .file("bad.json", "{")
        .file("invalid.json", &invalid)
        .run();
    assert_eq!(output.code, Some(1), "{output:?}");
    output.stdout.says(&["restart-safely.json: "]);
    output.stderr.says(&[
        "failed absent.json: it cannot be read: ",
        "failed bad.json: it is not a guide: ",
        "failed invalid.json: an import would refuse it:\n  line 1: document.",
        "line 1, step 1 \" \": document.steps[0].title: is required",
    ]);
}

#[test]
fn an_id_that_is_listed_twice_is_refused_at_the_second() {
    let id = uuid::Uuid::now_v7().to_string();
    let step = json!({
        "guid": id, "type": "STEP_TYPE_END", "product_id": 7, "title": "Done",
    });
    let task = uuid::Uuid::now_v7().to_string();
    let inner = json!({"task": {"guid": task}, "steps": [step]});
    let values = json!([{"key": "no", "value": "No", "task_json": inner}]);
    let linked = json!([{"name": "it", "type": "enum", "linked": true, "values": values}]);
    let observation = json!({
        "type": "STEP_TYPE_OBSERVATION", "product_id": 7, "title": "Ask", "feedback_config": linked,
    });
    let document = json!({
        "task": {"guid": task, "name": "A", "product_id": 7},
        "steps": [step, observation, step],
    });
    let output = command(&["lint", "-"]).stdin(&document.to_string()).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    let nested = "document.steps[1].feedback_config[0].values[0].task_json";
    output.stderr.says(&[
        "an import would refuse it:\n",
        "document.steps[2].guid: is the id of another step of the document",
        &format!("{nested}.task.guid: is the id of another task of the document"),
        &format!("{nested}.steps[0].guid: is the id of another step of the document"),
    ]);
    output.stderr.says_none_of(&["document.steps[0].guid"]);
}

/// The file does not have the step, so the finding is at the line of the answer.
#[test]
fn a_finding_about_the_step_that_leads_to_the_task_of_an_answer_is_at_the_answer() {
    let inner = json!({
        "task": {"roles": ["ACCESS_LEVEL_TECH"]},
        "steps": [{"type": "STEP_TYPE_END", "product_id": 7, "title": "Inner"}],
    });
    let value = |key: &str| json!({"key": key, "value": key, "task_json": inner});
    let values = json!([value("no"), value("yes")]);
    let linked = json!([{"name": "it", "type": "enum", "linked": true, "values": values}]);
    let document = json!({
        "task": {"name": "A", "product_id": 7},
        "steps": [
            {
                "type": "STEP_TYPE_OBSERVATION", "product_id": 7, "title": "Ask",
                "feedback_config": linked,
            },
            {"type": "STEP_TYPE_END", "product_id": 7, "title": "Done"},
        ],
    });
    let document = serde_json::to_string_pretty(&document).expect("JSON");
    let args = ["lint", "-", "--rule=linked/always-shown=off"];
    let output = command(&args).stdin(&document).run().succeeded();
    for (index, key) in ["no", "yes"].iter().enumerate() {
        let above = document.split(&format!("\"key\": \"{key}\"")).next();
        let line = above.expect("a text").lines().count() - 1;
        let at = format!("at line {line}: document.steps[0].feedback_config[0].values[{index}]\n");
        assert_eq!(output.stdout.matches(&at).count(), 1, "{at}: {output:?}");
    }
    assert_eq!(output.stdout.matches("subtask/levels").count(), 2);
}

#[test]
fn a_subtask_of_the_account_is_taken_for_one_with_an_outcome() {
    let other = uuid::Uuid::now_v7().to_string();
    let document = json!({
        "task": {"name": "A", "product_id": 7},
        "steps": [{"type": "STEP_TYPE_SUBTASK", "product_id": 7, "subtask_id": other, "subtask_pid": 8}],
    });
    let output = command(&["lint", "--format=json", "-"]);
    let output = output.stdin(&document.to_string()).run().succeeded();
    assert_eq!(places(&output), BTreeSet::new());
}

/// A guide whose last step has this field, and whose first one is the observation `lamp`.
fn guide_with(field: &str, value: Value) -> String {
    let document = json!({
        "task": {"name": "A", "product_id": 77},
        "steps": [
            {
                "product_id": 77,
                "type": "STEP_TYPE_OBSERVATION",
                "title": "Which lamp?",
                "feedback_config": [{
                    "name": "lamp",
                    "type": "enum",
                    "values": [{"key": "on", "value": "On"}, {"key": "off", "value": "Off"}],
                }],
            },
            {"product_id": 77, "type": "STEP_TYPE_SOLUTION", "title": "Done"},
            {
                "product_id": 77,
                "type": "STEP_TYPE_SOLUTION",
                "title": "Wait",
                field: value,
            },
        ],
    });
    document.to_string()
}

/// The same with a condition.
fn guide_with_condition(shorthand: &str) -> String {
    guide_with("dependency_shorthand", json!(shorthand))
}

#[test]
fn a_name_that_no_other_guide_sets_is_checked_without_the_account() {
    const RULE: &str = "condition/unknown-variable";
    const UNCHECKED: &str = "not checked without the account: whether an observation sets \
                             components.77.lmap; is components.77.lamp meant?";
    let stdout = |guide: &str| {
        let lint = command(&["lint", "-"]).stdin(guide);
        lint.run().succeeded().stdout
    };
    let lint = |shorthand: &str| stdout(&guide_with_condition(shorthand));
    let own = json!({"operator": "LOGICAL_OPERATOR_AND", "nodes": [
        {"condition": {"variable": "lmap", "operator": "=", "targets": ["on"]}},
    ]});
    let own = stdout(&guide_with("dependencies", own));
    own.says(&[RULE, "Is `lamp` meant?"]);
    assert!(!own.contains("not checked"), "{own}");
    let full = lint("components.77.lmap = on");
    let head = "-: no findings, 1 variable not checked\n";
    assert!(full.starts_with(head), "{full}");
    assert!(!full.contains(RULE) && full.contains(UNCHECKED), "{full}");
    for right in ["components.77.lamp = on", "components.5.other = x"] {
        let right = lint(right);
        right.says_none_of(&[RULE, "not checked"]);
    }
    let args = ["lint", "--format=json", "-"];
    let lint = command(&args).stdin(&guide_with_condition("components.77.lmap = on"));
    let report = &lint.run().succeeded().json()[0];
    let expected = json!([{"variable": "components.77.lmap", "suggestion": "components.77.lamp"}]);
    assert_eq!(report["unchecked_variables"], expected);
}

#[test]
fn a_finding_about_a_shorthand_names_it_with_its_line() {
    let guide =
        guide_with_condition("components.77.lamp = of").replace("\"steps\":", "\n\"steps\":");
    let shown = command(&["lint", "-"]).stdin(&guide).run().stdout;
    let place = "    at line 2: document.steps[2].dependency_shorthand\n";
    assert!(shown.contains(place), "{shown}");
    let keys = "a key of the observations that set the variable: `on`, `off`.\n";
    assert!(shown.contains(keys), "{shown}");
}

#[test]
fn a_value_that_holds_several_conditions_has_a_hint() {
    for (shorthand, join) in [
        (
            "components.77.lamp = on AND components.77.beeps < 70",
            "AND",
        ),
        ("components.77.lamp = off|on", "|"),
    ] {
        let lint = command(&["lint", "-"]).stdin(&guide_with_condition(shorthand));
        let shown = lint.run().stdout;
        let hint = format!("The value contains `{join}`, which joins nothing: ");
        assert!(shown.contains(&hint), "{shown}");
    }
    let lint = command(&["lint", "-"]).stdin(&guide_with_condition("components.77.lamp = of"));
    let shown = lint.run().stdout;
    assert!(shown.contains("is never \"of\""), "{shown}");
    assert!(!shown.contains("joins nothing"), "{shown}");
}

#[test]
fn an_unknown_field_is_refused_with_the_one_that_is_meant() {
    let step = json!({"task": {"name": "A"}, "steps": [{"dependancy_shorthand": "a = b"}]});
    for (document, part) in [
        (step, " (is `dependency_shorthand` meant?)"),
        (
            json!({"name": "A", "product_id": 7}),
            "unrecognized field name 'name' at",
        ),
        (
            json!({"document": {"task": {}}}),
            "unrecognized field name 'document' at",
        ),
    ] {
        let output = command(&["lint", "-"]).stdin(&document.to_string()).run();
        assert!(output.stderr.contains(part), "{output:?}");
    }
}

#[test]
fn a_text_of_another_format_is_no_json() {
    let lint = command(&["lint", "a.json"]).file("a.json", "task:\n  name: A\n");
    let line = lint.run().failure(1);
    let part = "a.json: it is not a guide: expected ";
    assert!(line.contains(part), "{line}");
    assert!(!line.contains("checked without the account"), "{line}");
    command(&["lint", "nosuch.json"])
        .run()
        .fails_with(1, &["there is no such file: "]);
}

/// A guide with more findings than a page holds.
fn many_findings() -> Value {
    let steps = (0..600).map(|number| {
        json!({"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": format!("I{number}")})
    });
    let end = json!({"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"});
    let steps: Vec<Value> = steps.chain([end]).collect();
    json!({"task": {"name": "Long", "product_id": 7}, "steps": steps})
}

fn imported(cli: &Cli, document: &str) -> String {
    let import = cli.command(&["import", "-", "--format=json"]);
    text(&import.stdin(document).run().succeeded().json()[0]["guid"])
}

#[apply(on_one_database)]
fn a_stored_guide_is_checked_page_by_page(cli: Cli) {
    let guid = imported(&cli, &many_findings().to_string());
    let output = cli
        .command(&["lint", &guid, "--format=json"])
        .run()
        .succeeded();
    let report = &output.json()[0];
    assert_eq!(report["guide"], guid.as_str());
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(600));
    assert_eq!(report["counts"]["infos"], 600);
    let fails = cli.command(&["lint", &guid, "--fail-on=info"]).run();
    assert_eq!(fails.code, Some(1), "{}", fails.stderr);
    let unknown = uuid::Uuid::now_v7().to_string();
    let output = cli.command(&["lint", &unknown]).run();
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("TASK_NOT_FOUND"), "{output:?}");
}

#[apply(on_one_database)]
fn a_file_checked_online_has_the_findings_of_its_import(cli: Cli) {
    let broken = example_guide(BROKEN);
    let output = cli
        .command(&["lint", "--online", "--format=json", &broken])
        .run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(places(&output), explained("\n## More"));
    let guid = imported(&cli, &fs::read_to_string(&broken).expect("the guide"));
    let stored = cli.command(&["lint", "--format=json", &guid]).run();
    let rules = |output: &CommandOutput| -> Vec<String> {
        let findings = output.json()[0]["findings"].clone();
        let findings = findings.as_array().cloned().unwrap_or_default();
        findings.iter().map(|one| text(&one["rule"])).collect()
    };
    assert_eq!(stored.code, Some(1));
    assert_eq!(rules(&stored), rules(&output));
    let options = ["--rule=step/unreachable=off", "--min-severity=error"];
    for guide in [&[guid.as_str()][..], &[broken.as_str(), "--online"]] {
        let args = [&["lint", "--format=json"][..], guide, &options].concat();
        let output = cli.command(&args).run().succeeded();
        assert_eq!(rules(&output), [""; 0], "{guide:?}");
    }
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

#[apply(on_one_database)]
fn findings_of_a_stored_guide_have_titles_and_conditions(cli: Cli) {
    let broken = example_guide(BROKEN);
    let lines = |guide: &str| -> Vec<String> {
        let output = cli.command(&["lint", "--online", guide]).run();
        let about =
            |line: &&str| line.trim_start().starts_with("in ") || line.contains(" is \"low\"");
        let lines = output
            .stdout
            .lines()
            .map(|line| match line.rsplit_once(": ") {
                // The paths differ: a stored guide has ids.
                Some((_, condition)) if line.contains("dependencies.nodes") => condition,
                _ => line,
            });
        lines.filter(about).map(str::to_owned).collect()
    };
    let of_file = lines(&broken);
    assert!(
        of_file.contains(&"    in step 5 \"The power supply is defective\"".to_owned()),
        "{of_file:?}"
    );
    assert!(
        of_file.contains(&"components.2310.supply_voltage is \"low\"".to_owned()),
        "{of_file:?}"
    );
    let guid = imported(&cli, &fs::read_to_string(&broken).expect("the guide"));
    assert_eq!(lines(&guid), of_file);
}

#[test]
fn a_step_behind_an_end_names_the_end() {
    let document = json!({
        "task": {"name": "A", "product_id": 7},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"},
            {"product_id": 7, "type": "STEP_TYPE_SOLUTION", "title": "Repair"},
        ],
    });
    let output = command(&["lint", "-"]).stdin(&document.to_string()).run();
    let hint = "to do: Every walkthrough ends at the END \"Done\" before it. \
                Move that END behind the step, give it conditions, or delete the step.\n";
    assert!(output.stdout.contains(hint), "{}", output.stdout);
}

#[test]
fn a_directory_stands_for_the_files_below_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    for name in ["b", "b/c", ".hidden", "empty"] {
        fs::create_dir(at(name)).expect("a directory");
    }
    let good = fs::read_to_string(example_guide("restart-safely.json")).expect("the example");
    for name in [
        "z.json",
        "b/c/a.json",
        "a.json",
        ".hidden/x.json",
        ".x.json",
        "a.txt",
    ] {
        fs::write(at(name), &good).expect("a file");
    }
    fs::write(at("b/bad.json"), "{}{").expect("a file");
    let lint = command(&["lint", "--format=json", ".", "empty"]);
    let output = lint.in_directory(directory.path()).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    let reports = output.json();
    let reports = reports.as_array().expect("an array");
    let names: Vec<String> = reports.iter().map(|it| text(&it["guide"])).collect();
    let expected = [
        "./a.json",
        "./b/bad.json",
        "./b/c/a.json",
        "./z.json",
        "empty",
    ];
    assert_eq!(names, expected);
    let failed = reports.iter().filter(|it| it.get("error").is_some());
    let failed: Vec<String> = failed.map(|it| text(&it["guide"])).collect();
    assert_eq!(failed, ["./b/bad.json", "empty"]);
    let error = text(&reports[4]["error"]["message"]);
    assert_eq!(error, "it has no .json files");
    let graph = command(&["graph", "./b"]);
    let line = graph.in_directory(directory.path()).run().failure(1);
    line.says(&["it is a directory: this command takes files"]);
}

/// The rules that are found in each file.
fn rules(output: &CommandOutput) -> Vec<Vec<String>> {
    let reports = output.json();
    let reports = reports.as_array().expect("an array").iter();
    let rules = reports.map(|report| {
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().map(|it| text(&it["rule"])).collect()
    });
    rules.collect()
}

#[test]
fn in_closed_files_a_variable_that_none_of_them_sets_is_a_warning() {
    const UNKNOWN: &str = "condition/unknown-variable";
    const UNKNOWN_ANSWER: &str = "condition/unknown-answer";
    let reader = |shorthand: &str| {
        json!({
            "task": {"name": "Reader", "product_id": 77},
            "steps": [
                {
                    "product_id": 77,
                    "type": "STEP_TYPE_SOLUTION",
                    "title": "Wait",
                    "dependency_shorthand": shorthand,
                },
                {"product_id": 77, "type": "STEP_TYPE_END", "title": "Done"},
            ],
        })
    };
    let lint = |args: &[&str], shorthand: &str| {
        let lint = command(
            &[
                &["lint", "--format=json", "reader.json", "setter.json"],
                args,
            ]
            .concat(),
        );
        lint.file("setter.json", &guide_with("cost", json!(0)))
            .file("reader.json", &reader(shorthand).to_string())
            .run()
    };
    for (shorthand, found) in [
        ("components.77.lamp = on", &[][..]),
        ("components.77.nobody = on", &[UNKNOWN]),
        ("components.77.lamp = on, of", &[UNKNOWN_ANSWER]),
    ] {
        let output = lint(&["--closed"], shorthand).succeeded();
        assert_eq!(rules(&output), [found, &[]], "{shorthand}");
        // A setter elsewhere is not known without the flag.
        let output = lint(&[], shorthand).succeeded();
        assert_eq!(rules(&output), [&[], &[]] as [&[&str]; 2], "{shorthand}");
    }
    let output = lint(
        &["--closed", "--fail-on=warning"],
        "components.77.nobody = on",
    );
    assert_eq!(output.code, Some(1), "{output:?}");
    let declared = ["--closed", "--variable=components.77.nobody"];
    let output = lint(&declared, "components.77.nobody = on").succeeded();
    assert_eq!(rules(&output), [&[], &[]] as [&[&str]; 2]);
}

#[test]
fn in_closed_files_a_subtask_must_be_a_task_of_one_of_them() {
    let (known, unknown) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
    let reader = |subtask: uuid::Uuid| {
        json!({
            "task": {"name": "Reader", "product_id": 77},
            "steps": [{
                "product_id": 77,
                "type": "STEP_TYPE_SUBTASK",
                "subtask_id": subtask.to_string(),
                "subtask_pid": 77,
            }],
        })
    };
    let mut other: Value = serde_json::from_str(&guide_with("cost", json!(0))).expect("JSON");
    other["task"]["guid"] = json!(known.to_string());
    let lint = |flag: &str, subtask| {
        let lint = command(&["lint", flag, "--format=json", "other.json", "reader.json"]);
        let lint = lint.file("other.json", &other.to_string());
        lint.file("reader.json", &reader(subtask).to_string()).run()
    };
    lint("--closed", known).succeeded();
    lint("--include-unpublished", unknown).succeeded();
    let output = lint("--closed", unknown);
    assert_eq!(output.code, Some(1), "{output:?}");
    let error = text(&output.json()[1]["error"]["message"]);
    let part = "step 1: document.steps[0].subtask_id: is the id of no task of these guides";
    assert!(error.contains(part), "{error}");
}

#[test]
fn in_closed_files_a_subtask_may_be_named_by_its_external_id() {
    let reader = |subtask: &str| {
        json!({
            "task": {"name": "Reader", "product_id": 77},
            "steps": [{
                "product_id": 77,
                "type": "STEP_TYPE_SUBTASK",
                "subtask_external_id": subtask,
            }],
        })
    };
    let mut other: Value = serde_json::from_str(&guide_with("cost", json!(0))).expect("JSON");
    other["task"]["external_id"] = json!("other");
    let lint = |subtask| {
        let args = [
            "lint",
            "--closed",
            "--format=json",
            "other.json",
            "reader.json",
        ];
        let lint = command(&args).file("other.json", &other.to_string());
        lint.file("reader.json", &reader(subtask).to_string()).run()
    };
    lint("other").succeeded();
    let output = lint("unknown");
    assert_eq!(output.code, Some(1), "{output:?}");
    let error = text(&output.json()[1]["error"]["message"]);
    let part = "document.steps[0].subtask_external_id: is the external id of no task";
    assert!(error.contains(part), "{error}");
}

#[test]
fn in_closed_files_a_subtask_has_the_translations_of_its_file() {
    let subtask = uuid::Uuid::now_v7().to_string();
    let german = |name: &str| json!({"de": {"name": name}});
    let mut other: Value = serde_json::from_str(&guide_with("cost", json!(0))).expect("JSON");
    other["task"]["guid"] = json!(subtask);
    let reader = json!({
        "task": {"name": "Reader", "product_id": 77, "translations": german("Leser")},
        "steps": [{
            "product_id": 77,
            "type": "STEP_TYPE_SUBTASK",
            "subtask_id": subtask,
            "subtask_pid": 77,
        }],
    });
    let lint = |other: &Value| {
        let lint = command(&[
            "lint",
            "--closed",
            "--format=json",
            "other.json",
            "reader.json",
        ]);
        let lint = lint.file("other.json", &other.to_string());
        let output = lint.file("reader.json", &reader.to_string()).run();
        rules(&output)[1].clone()
    };
    assert_eq!(lint(&other), ["translation/missing"]);
    other["task"]["translations"] = german("Anderer");
    assert_eq!(lint(&other), [] as [&str; 0]);
}

#[test]
fn closed_files_are_not_mixed_with_an_account() {
    let guid = uuid::Uuid::now_v7().to_string();
    let good = example_guide("restart-safely.json");
    let lint = command(&[
        "lint",
        "--closed",
        &good,
        &guid,
        "-a=x",
        "-s=http://127.0.0.1:1",
    ]);
    let line = lint.run().failure(2);
    line.says(&[&format!("and {guid} is a stored one")]);
    assert_eq!(
        command(&["lint", "--closed", "--online", &good]).run().code,
        Some(2)
    );
}

#[test]
fn the_exit_code_says_whether_there_is_a_finding_that_counts() {
    let infos = many_findings().to_string();
    let answer = guide_with_condition("components.77.lamp = on, of");
    // The severity of the only finding, and the exit codes with each least severity that counts.
    for (guide, severity, codes) in [
        (&infos, "off", [1, 0, 0, 0]),
        (&answer, "off", [0, 0, 0, 0]),
        (&answer, "info", [1, 0, 0, 0]),
        (&answer, "warning", [1, 1, 0, 0]),
        (&answer, "error", [1, 1, 1, 1]),
    ] {
        let rule = format!("--rule=condition/unknown-answer={severity}");
        let fail_on = ["--fail-on=info", "--fail-on=warning", "--fail-on=ERROR"];
        let flags = fail_on.map(Some).into_iter().chain([None]);
        for (flag, code) in flags.zip(codes) {
            let args: Vec<&str> = ["lint", "-", &rule].into_iter().chain(flag).collect();
            let output = command(&args).stdin(guide).run();
            assert_eq!(output.code, Some(code), "{args:?}: {}", output.stdout);
        }
    }
    assert_eq!(command(&["lint", "-", "--fail-on=off"]).run().code, Some(2));
}

#[test]
fn an_unknown_value_of_an_enum_is_refused_with_its_path() {
    let steps = json!([{"type": "STEP_TYPE_FIN"}]);
    let translated = json!({"task": {"roles": ["TECH"]}});
    for (document, part) in [
        (
            json!({"steps": steps}),
            "steps[0].type: unrecognized enum value 'STEP_TYPE_FIN' at line 1 ",
        ),
        (translated, "unrecognized enum value 'TECH' at line 1 "),
    ] {
        let output = command(&["lint", "-"]).stdin(&document.to_string()).run();
        assert!(output.stderr.contains(part), "{output:?}");
    }
}

#[apply(on_one_database)]
fn hints_have_the_names_of_the_command_line(cli: Cli) {
    let document = json!({
        "task": {"name": "A", "product_id": 7},
        "steps": [{
            "product_id": 7,
            "type": "STEP_TYPE_END",
            "title": "Done",
            "dependency_shorthand": "components.7.nothing = x",
        }],
    });
    let guid = imported(&cli, &document.to_string());
    let output = cli.command(&["lint", &guid]).run();
    let hint = "an observation that sets it, or declare it in `--variable`.";
    assert!(output.stdout.contains(hint), "{output:?}");
}

#[apply(on_one_database)]
fn a_finding_about_the_task_of_an_answer_points_at_the_answer(cli: Cli) {
    let linked = json!([{
        "name": "cold",
        "type": "enum",
        "linked": true,
        "values": [{"key": "no", "value": "No"}, {"key": "yes", "value": "Yes"}],
    }]);
    let document = json!({
        "task": {"name": "Kettle stays cold", "product_id": 7},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Read", "body": "a"},
            {
                "product_id": 7,
                "type": "STEP_TYPE_OBSERVATION",
                "title": "Is it cold?",
                "feedback_config": linked,
            },
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"},
        ],
    });
    let alone = ["lint", "-", "--format=json"];
    let online = [&alone[..], &["--online"]].concat();
    let import = ["import", "-", "--dry-run", "--format=json"];
    for args in [&alone[..], &online, &import] {
        let output = cli.command(args).stdin(&document.to_string()).run();
        let reports = output.json();
        let findings = reports[0]["findings"].as_array().expect("findings");
        let no_steps = findings.iter().filter(|it| it["rule"] == "task/no-steps");
        let paths: Vec<String> = no_steps.map(|it| text(&it["path"])).collect();
        let values = "document.steps[1].feedback_config[0].values";
        assert_eq!(
            paths,
            [format!("{values}[0]"), format!("{values}[1]")],
            "{args:?}"
        );
    }
}

#[test]
fn a_severity_is_read_in_any_case() {
    let broken = example_guide(BROKEN);
    let lower = lint_json(&[
        &broken,
        "--min-severity=error",
        "--rule=step/unreachable=off",
    ]);
    let upper = lint_json(&[
        &broken,
        "--min-severity=ERROR",
        "--rule=step/unreachable=OFF",
    ]);
    assert_eq!(places(&upper.succeeded()), places(&lower.succeeded()));
}

#[test]
fn totals_are_printed_and_a_variable_or_hint_that_repeats_is_printed_once() {
    let reads = |count: usize| {
        let steps = (0..count).map(|number| {
            json!({
                "product_id": 7,
                "type": "STEP_TYPE_SOLUTION",
                "title": format!("S{number}"),
                "dependency_shorthand": "components.7.nobody = x",
            })
        });
        let steps: Vec<Value> = steps.collect();
        json!({"task": {"name": "A", "product_id": 7}, "steps": steps}).to_string()
    };
    let lint = command(&["lint", "--closed", "a.json", "b.json"]);
    let lint = lint.file("a.json", &reads(3)).file("b.json", &reads(1));
    let output = lint.run().succeeded();
    output.stderr.says(&["2 guides: ", " warnings"]);
    let unknown = output.stdout.matches("condition/unknown-variable").count();
    assert_eq!(unknown, 2, "{}", output.stdout);
    output.stdout.says(&[", and in 2 more places\n"]);
    let mut hints: Vec<&str> = output
        .stdout
        .lines()
        .filter(|it| it.contains("to do: "))
        .collect();
    let count = hints.len();
    hints.sort_unstable();
    hints.dedup();
    assert_eq!(hints.len(), count, "{}", output.stdout);
}

/// Checks two guides in files.
fn linted(first: &Value, second: &Value, args: &[&str]) -> CommandOutput {
    let lint = command(&[&["lint", "a.json", "b.json", "--format=json"], args].concat());
    let lint = lint.file("a.json", &first.to_string());
    lint.file("b.json", &second.to_string()).run()
}

#[test]
fn references_between_files_are_followed_and_cycles_are_found() {
    let guide = |ids: Value, subtask: Value| {
        let mut task = json!({"name": "A", "product_id": 7});
        let mut step = json!({"product_id": 7, "type": "STEP_TYPE_SUBTASK"});
        for (object, members) in [(&mut task, ids), (&mut step, subtask)] {
            let members = members.as_object().expect("an object").clone();
            object.as_object_mut().expect("an object").extend(members);
        }
        json!({"task": task, "steps": [step]})
    };
    let [first, second] = [(); 2].map(|()| uuid::Uuid::now_v7().to_string());
    let to = |id: &str| json!({"subtask_id": id, "subtask_pid": 7});
    let by_guid = [
        guide(json!({"guid": first}), to(&second)),
        guide(json!({"guid": second}), to(&first)),
    ];
    let by_name = [
        guide(
            json!({"external_id": "a"}),
            json!({"subtask_external_id": "b"}),
        ),
        guide(
            json!({"external_id": "b"}),
            json!({"subtask_external_id": "a"}),
        ),
    ];
    for [first, second] in [by_guid, by_name] {
        for args in [&["--closed"][..], &[]] {
            let output = linted(&first, &second, args);
            assert_eq!(output.code, Some(1), "{output:?}");
            for rules in rules(&output) {
                assert!(rules.contains(&"subtask/cycle".to_owned()), "{output:?}");
            }
            let reports = output.json();
            let findings = reports[0]["findings"].as_array().expect("findings");
            let cycle = findings.iter().find(|it| it["rule"] == "subtask/cycle");
            let places = cycle.expect("a cycle")["related"].to_string();
            assert!(places.contains("b.json: document.steps[0]"), "{places}");
        }
    }
}

#[test]
fn a_subtask_in_another_file_without_an_outcome_is_none() {
    let guide = |name: &str, step: Value| {
        json!({
            "task": {"name": name, "product_id": 7, "external_id": name},
            "steps": [step],
        })
    };
    let reader = json!({
        "product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_external_id": "other",
    });
    let step = |kind: &str| json!({"product_id": 7, "type": kind, "title": "S", "body": "a"});
    for (kind, has_outcome) in [
        ("STEP_TYPE_SOLUTION", true),
        ("STEP_TYPE_INFORMATION", false),
    ] {
        let other = guide("other", step(kind));
        let output = linted(&guide("reader", reader.clone()), &other, &[]).succeeded();
        let found = rules(&output)[0].contains(&"path/no-outcome".to_owned());
        assert_eq!(found, !has_outcome, "{kind}: {output:?}");
    }
}
