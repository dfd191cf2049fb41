//! `expertise import`.

use std::fs;

use serde_json::json;

use crate::kit::{
    apply,
    command::{Cli, Says, command, example_guide, text},
    on_one_database,
    scratch::{Scratch, make_fifo},
};

fn count_standard_tasks(cli: &Cli) -> usize {
    let tasks = cli
        .command(&["list", "--format=json"])
        .run()
        .succeeded()
        .json();
    let standard = |task: &&serde_json::Value| task.get("parent_guid").is_none();
    tasks
        .as_array()
        .expect("an array")
        .iter()
        .filter(standard)
        .count()
}

/// A small guide of one step.
fn guide(name: &str) -> String {
    json!({
        "task": {"name": name, "product_id": 7},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
    })
    .to_string()
}

#[apply(on_one_database)]
fn a_second_task_of_one_name_is_warned_of(cli: Cli) {
    let import = |args: &[&str]| {
        let args = [&["import", "a.json"], args].concat();
        let import = cli.command(&args).file("a.json", &guide("Twin"));
        import.run().succeeded()
    };
    assert_eq!(import(&[]).stderr, "");
    let tasks = cli.command(&["list", "--format=json"]).run().json();
    let first = text(&tasks[0]["guid"]);
    let warning = format!(
        "warning: a.json has no task.guid, but the name and product of task {first}: each import \
         of it creates a task; set its task.guid to {first} to update that one\n"
    );
    assert_eq!(import(&["--dry-run"]).stderr, warning);
    assert_eq!(import(&["--as-new"]).stderr, "");
    assert_eq!(import(&[]).stderr, warning);
    assert_eq!(import(&["--quiet"]).stderr, "");
    let report = import(&["--format=json"]).json();
    assert_eq!(report[0]["same_name_as"], first.as_str());
    assert_eq!(count_standard_tasks(&cli), 5);
    let of_other_product = guide("Twin").replace(":7", ":8");
    let import = cli.command(&["import", "-"]).stdin(&of_other_product);
    assert_eq!(import.run().succeeded().stderr, "");
}

#[apply(on_one_database)]
fn findings_have_the_final_name_of_a_managed_task(cli: Cli) {
    let document = json!({
        "task": {"name": "Coffee", "product_id": 7},
        "steps": [{
            "product_id": 7,
            "type": "STEP_TYPE_OBSERVATION",
            "title": "Which lamp?",
            "feedback_config": [{
                "name": "lamp",
                "type": "enum",
                "linked": true,
                "values": [{
                    "key": "on",
                    "value": "The lamp is on",
                    "task_json": {
                        "task": {"name": "Another name", "product_id": 7},
                        "steps": [{
                            "product_id": 7,
                            "type": "STEP_TYPE_SOLUTION",
                            "title": "Wait",
                            "dependency_shorthand": "components.7.nothing = x",
                        }],
                    },
                }],
            }],
        }],
    });
    let import = cli.command(&["import", "--dry-run", "-"]);
    let output = import.stdin(&document.to_string()).run().succeeded();
    let label = "in step 1 \"Wait\" of task \"The lamp is on\": ";
    assert!(output.stdout.contains(label), "{}", output.stdout);
    assert!(!output.stdout.contains("Another name"), "{}", output.stdout);
}

#[apply(on_one_database)]
fn the_page_of_commands_has_a_guide_that_is_imported(cli: Cli) {
    const PAGE: &str = include_str!("../../../docs/command-line.md");
    let (_, guide) = PAGE.split_once("```json\n").expect("a guide");
    let (guide, _) = guide.split_once("```").expect("its end");
    let import = cli.command(&["import", "--dry-run", "-"]).stdin(guide);
    let output = import.run().succeeded();
    assert_eq!(output.stdout.lines().count(), 1, "no findings: {output:?}");
    let guid = cli.command(&["import", "--format=json", "-"]).stdin(guide);
    let guid = text(&guid.run().succeeded().json()[0]["guid"]);
    let stored = cli.exported(&guid);
    assert_eq!(stored["task"]["published"], 1);
    assert_eq!(stored["steps"][0]["published"], 1);
}

#[apply(on_one_database)]
fn a_document_that_names_its_task_updates_it(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let changed = cli
        .export(guid)
        .replace("Restart a laptop safely", "Restart it");
    let output = cli
        .command(&["import", "d.json"])
        .file("d.json", &changed)
        .run()
        .succeeded();
    assert_eq!(
        output.stdout,
        format!("updated {guid} from d.json: Restart it, 6 steps; `restore {guid}@1` undoes it\n")
    );
    assert_eq!(output.stderr, "");
    assert_eq!(count_standard_tasks(&cli), 1);
    let changed = changed.replace("Restart it", "Restart again");
    let import = cli.command(&["import", "-", "--format=json"]);
    let report = import.stdin(&changed).run().succeeded().json()[0].clone();
    assert_eq!(report["outcome"], "IMPORT_OUTCOME_UPDATED");
    assert_eq!(report["previous_revision"], "2");
    assert_eq!(report["task"]["etag"], cli.exported(guid)["task"]["etag"]);
}

#[apply(on_one_database)]
fn a_file_that_fails_does_not_stop_the_others(cli: Cli) {
    let output = cli
        .command(&[
            "import",
            "a.json",
            "none.json",
            "b.json",
            "c.json",
            "d.json",
            "e.json",
        ])
        .file("a.json", &guide("A"))
        .file("b.json", "{\"task\": ")
        .file("c.json", &guide("C").replace("name", "nmae"))
        .file("d.json", &guide(""))
        .file("e.json", &guide("E"))
        .run();
    assert_eq!(output.code, Some(1));
    let created: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(created.len(), 2, "{}", output.stdout);
    created[0].says(&["from a.json: A, 1 step"]);
    created[1].says(&["from e.json: E, 1 step"]);
    output.stderr.says(&[
        "failed none.json: it cannot be read: ",
        "failed b.json: it is not a guide: EOF while parsing a value at line ",
        "unrecognized field name 'nmae' at line 1 column ",
        " (is `name` meant?)\n",
        "failed d.json: the server refuses it:\n  line 1: document.task.name: is required (FIELD_REQUIRED)\n",
        "2 created, 0 updated, 0 unchanged, 4 failed\n",
    ]);
    assert_eq!(count_standard_tasks(&cli), 2);
}

#[apply(on_one_database)]
fn violations_are_named_by_their_path(cli: Cli) {
    let wrong = json!({
        "task": {"name": "Wrong", "product_id": 0},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"},
            {"product_id": 7, "type": "STEP_TYPE_OBSERVATION", "title": " "},
        ],
    });
    let output = cli
        .command(&["import", "w.json"])
        .file("w.json", &wrong.to_string())
        .run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        output.stderr,
        "failed w.json: the server refuses it for 3 reasons:\n  \
           line 1: document.task.product_id: must be greater than 0 (FIELD_OUT_OF_RANGE)\n  \
           line 1, step 2 \" \": document.steps[1].title: is required (FIELD_REQUIRED)\n  \
           line 1, step 2 \" \": document.steps[1].feedback_config: is required for an observation (FIELD_REQUIRED)\n"
    );
}

#[apply(on_one_database)]
fn more_violations_than_an_answer_holds_are_counted(cli: Cli) {
    let step = json!({"product_id": 7, "type": "STEP_TYPE_END", "title": ""});
    let wrong = json!({"task": {"name": "W", "product_id": 7}, "steps": vec![step; 500]});
    let import = cli.command(&["import", "w.json"]);
    let output = import.file("w.json", &wrong.to_string()).run();
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(
        lines[0],
        "failed w.json: the server refuses it for 500 reasons:"
    );
    let more = format!("  and {} more", 500 - (lines.len() - 2));
    assert_eq!(lines.last(), Some(&more.as_str()));
}

#[apply(on_one_database)]
fn json_output_reports_each_file(cli: Cli) {
    let output = cli
        .command(&["import", "--format=json", "a.json", "b.json", "c.json"])
        .file("a.json", &guide("A"))
        .file("b.json", "{}{}")
        .file("c.json", &guide(""))
        .run();
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    let reports = output.json();
    assert_eq!(reports[0]["outcome"], "IMPORT_OUTCOME_CREATED");
    assert_eq!(reports[0]["file"], "a.json");
    assert_eq!(reports[0]["task"]["name"], "A");
    assert_eq!(reports[0]["guid"], reports[0]["task"]["guid"]);
    assert_eq!(text(&reports[0]["guid"]).len(), 36);
    assert_eq!(reports[1]["file"], "b.json");
    assert!(
        text(&reports[1]["error"]["message"]).starts_with("it is not a guide: trailing characters")
    );
    assert_eq!(reports[2]["error"]["code"], "INVALID_ARGUMENT");
    assert_eq!(
        reports[2]["error"]["violations"][0]["field"],
        "document.task.name"
    );
    assert_eq!(
        reports[2]["error"]["violations"][0]["reason"],
        "FIELD_REQUIRED"
    );
    assert_eq!(reports[3], json!(null));
}

#[apply(on_one_database)]
fn a_dry_run_stores_nothing(cli: Cli) {
    let output = cli
        .command(&["import", "--dry-run", "a.json"])
        .file("a.json", &guide("A"))
        .run()
        .succeeded();
    assert_eq!(
        output.stdout,
        "would create a task from a.json: A, 1 step\n"
    );
    let output = cli
        .command(&["import", "--dry-run", "--format=json", "a.json"])
        .file("a.json", &guide("A"))
        .run()
        .succeeded();
    let report = &output.json()[0];
    assert_eq!(report["dry_run"], json!(true));
    assert_eq!(report["guid"], json!(null), "a dry run has no guid");
    assert_eq!(count_standard_tasks(&cli), 0);
}

#[apply(on_one_database)]
fn a_duplicate_json_name_is_refused(cli: Cli) {
    for (task, error) in [
        (
            r#"{"name": "A", "name": "B"}"#,
            "task: `name` appears twice",
        ),
        (
            r#"{"parent_guid": "A", "parentGuid": "B"}"#,
            "task: `parentGuid` and `parent_guid` are the same field",
        ),
    ] {
        let output = cli
            .command(&["import", "a.json"])
            .file("a.json", &format!("{{\"task\": {task}}}"))
            .run();
        output.fails_with(1, &[&format!("it is not a guide: {error}")]);
    }
    // Names within a value of the user are not spellings of a field.
    let document = guide("A").replace(
        "\"title\"",
        "\"instructions\": [{\"a_b\": 1, \"aB\": 2}], \"title\"",
    );
    let output = cli.command(&["import", "a.json"]).file("a.json", &document);
    output.run().succeeded();
    assert_eq!(count_standard_tasks(&cli), 1);
}

#[apply(on_one_database)]
fn snake_case_and_camel_case_names_are_read(cli: Cli) {
    let output = cli
        .command(&["import", "a.json"])
        .file("a.json", &guide("A").replace("product_id", "productId"))
        .run();
    output.succeeded();
    assert_eq!(count_standard_tasks(&cli), 1);
}

#[apply(on_one_database)]
fn a_document_may_come_from_standard_input(cli: Cli) {
    let output = cli
        .command(&["import", "-"])
        .stdin(&guide("A"))
        .run()
        .succeeded();
    output.stdout.says(&["from -: A, 1 step"]);
}

#[apply(on_one_database)]
fn left_out_steps_need_the_option_absent_steps(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let empty = json!({"task": {"guid": guid, "name": "Restart it", "product_id": 1204}});
    let import = |args: &[&str]| {
        let args = [&["import", "e.json"], args].concat();
        cli.command(&args).file("e.json", &empty.to_string()).run()
    };
    let refused = import(&[]);
    assert_eq!(refused.code, Some(1));
    refused.stderr.says(&[
        "does not list 6 steps",
        "; set --absent-steps to keep or delete them (ABSENT_STEPS)",
    ]);
    let titled = refused
        .stderr
        .lines()
        .find(|line| line.contains(" step 1 "));
    let titled = titled.expect(&refused.stderr);
    assert!(titled.ends_with(" step 1 \"Save first\""), "{titled}");
    let refused = import(&["--dry-run"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let planned = import(&["--dry-run", "--absent-steps=delete"]).succeeded();
    planned
        .stdout
        .says(&["would update ", "Restart it, 0 steps"]);
    let kept = import(&["--absent-steps=keep"]).succeeded();
    kept.stdout.says(&["Restart it, 6 steps"]);
    let deleted = import(&["--absent-steps=delete"]).succeeded();
    deleted.stdout.says(&["Restart it, 0 steps"]);
}

#[apply(on_one_database)]
fn an_export_of_another_account_needs_as_new(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let exported = cli.export(guid);
    let elsewhere = Cli {
        account: format!("{}-2", cli.account),
        ..cli
    };
    let import = |args: &[&str]| {
        let args = [&["import", "l.json"], args].concat();
        elsewhere.command(&args).file("l.json", &exported).run()
    };
    let refused = import(&[]);
    assert_eq!(refused.code, Some(1));
    let advice = format!(
        "the document is of task {guid}, which this account does not have: `expertise import \
         --as-new` creates a task from it"
    );
    refused.stderr.says(&[
        advice.as_str(),
        "`expertise apply FILE`",
        "(TASK_NOT_FOUND)",
    ]);
    let created = import(&["--as-new"]).succeeded();
    assert!(created.stdout.starts_with("created "), "{}", created.stdout);
    assert_eq!(count_standard_tasks(&elsewhere), 1);
}

#[apply(on_one_database)]
fn an_etag_guards_the_import_of_a_file(cli: Cli) {
    let guid = cli.import_guides(&["restart-safely.json"]).remove(0);
    let keep = cli.command(&["keep", &guid, "--format=json"]).run();
    let etag = text(&keep.json()["revision"]["guide_etag"]);
    let mut document = cli.exported(&guid);
    document["task"]["name"] = json!("Restart it");
    let run = |args: &[&str]| {
        let args = [&["import", "--if-unchanged", &etag], args].concat();
        cli.command(&args).stdin(&document.to_string()).run()
    };
    let planned = run(&["-", "--dry-run"]).succeeded();
    planned.stdout.says(&["would update "]);
    run(&["-"]).succeeded();
    for args in [&["-"][..], &["-", "--dry-run"]] {
        let output = run(args);
        assert_eq!(output.code, Some(1), "{args:?}: {}", output.stdout);
        output.stderr.says(&["ETAG_MISMATCH"]);
    }
    let of_another_guide = cli.command(&["import", "-", "--if-unchanged", "--a1_b2"]);
    let output = of_another_guide.stdin(&document.to_string()).run();
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    output.stderr.says(&["ETAG_MISMATCH"]);
    // A file that was exported names no state of the guide, and is imported as it is.
    let import = cli.command(&["import", "-"]).stdin(&document.to_string());
    import.run().succeeded();
    run(&["-", "-"]).fails_with(2, &["--if-unchanged is the etag of one guide"]);
    assert_eq!(run(&["-", "--as-new"]).code, Some(2));
}

#[apply(on_one_database)]
fn an_external_id_names_the_guide_of_a_document(cli: Cli) {
    let mut document: serde_json::Value = serde_json::from_str(&guide("Pump")).expect("JSON");
    document["task"]["external_id"] = json!("pump");
    document["steps"][0]["external_id"] = json!("done");
    let import = |document: &serde_json::Value, args: &[&str]| {
        let import = cli.command(&[&["import", "-"], args].concat());
        import.stdin(&document.to_string()).run()
    };
    // As there is no guide yet, there is no etag that differs.
    let created = import(&document, &["--if-unchanged=none"]);
    let created = created.succeeded().stdout;
    let guid = created.split(' ').nth(1).expect(&created);
    let before = cli.exported(guid);
    document["task"]["name"] = json!("Large pump");
    document["steps"][0]["title"] = json!("It runs");
    let refused = import(&document, &["--if-unchanged=none"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    refused.stderr.says(&["ETAG_MISMATCH"]);
    let planned = import(&document, &["--dry-run"]).succeeded().stdout;
    planned.says(&[&format!("would update {guid} from -: Large pump, 1 step")]);
    let copied = import(&document, &["--as-new"]).succeeded().stdout;
    let copy = copied.split(' ').nth(1).expect(&copied);
    assert_ne!(copy, guid);
    assert_eq!(cli.exported(copy)["task"].get("external_id"), None);
    assert_eq!(cli.exported(guid), before);
    let updated = import(&document, &[]).succeeded().stdout;
    updated.says(&[&format!("updated {guid} from -: Large pump, 1 step")]);
    let after = cli.exported(guid);
    assert_eq!(after["steps"][0]["title"], "It runs");
    assert_eq!(after["steps"][0]["guid"], before["steps"][0]["guid"]);
    assert_eq!(after["task"]["external_id"], "pump");
}

#[test]
fn without_a_file_there_is_nothing_to_import() {
    let output = command(&["import", "--account=demo"]).run();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("<FILE>"), "{}", output.stderr);
}

#[apply(on_one_database)]
fn a_byte_order_mark_is_skipped(cli: Cli) {
    let output = cli
        .command(&["import", "a.json"])
        .file("a.json", &format!("\u{feff}{}", guide("A")))
        .run()
        .succeeded();
    assert!(output.stdout.contains("from a.json: A, 1 step"));
}

#[apply(on_one_database)]
fn a_too_large_file_is_refused_without_reading_it_all(cli: Cli) {
    // A file of 4 TB without blocks: the command ends only because it stops reading at the limit.
    let scratch = Scratch::of_this_run();
    let endless = scratch.path("endless.json");
    let file = fs::File::create(&endless).expect("a file");
    file.set_len(1 << 42).expect("a length");
    let endless = endless.to_str().expect("a path");
    cli.command(&["import", endless])
        .run()
        .fails_with(1, &["larger than 75497472 bytes"]);
    let text = guide("A");
    for (limit, fits) in [(text.len(), true), (text.len() - 1, false)] {
        let limit = format!("--max-file-bytes={limit}");
        let output = cli.command(&["import", &limit, "-"]).stdin(&text).run();
        assert_eq!(output.code == Some(0), fits, "{}", output.stderr);
    }
}

#[apply(on_one_database)]
fn a_fifo_is_refused_by_every_command_that_reads_files(cli: Cli) {
    let directory = tempfile::tempdir().expect("a directory");
    let guides = directory.path().join("guides");
    fs::create_dir(&guides).expect("a directory");
    make_fifo(&guides.join("a.json"));
    for arguments in [
        &["import", "guides/a.json"][..],
        &["diff", "guides/a.json"],
        &["lint", "guides/a.json"],
        &["lint", "guides", "--closed"],
        &["preview", "guides/a.json"],
        &["graph", "guides/a.json"],
        &["apply", "guides"],
    ] {
        let command = cli.command(arguments).in_directory(directory.path());
        let output = command.run();
        assert!(
            !output.stderr.is_empty() && output.code != Some(0),
            "{arguments:?}"
        );
        let said = format!("{}{}", output.stdout, output.stderr);
        let says_why = said.contains("guides/a.json") && said.contains("it is not a regular file");
        assert!(says_why, "{arguments:?}: {said}");
    }
}

#[apply(on_one_database)]
fn json_output_escapes_bidirectional_characters(cli: Cli) {
    let name = "ab\u{202e}cd\u{2066}e";
    let output = cli
        .command(&["import", "--format=json", "-"])
        .stdin(&guide(name))
        .run()
        .succeeded();
    assert!(output.stdout.is_ascii(), "{}", output.stdout);
    assert_eq!(text(&output.json()[0]["task"]["name"]), name);
}

#[apply(on_one_database)]
fn an_import_that_changes_nothing_is_unchanged(cli: Cli) {
    let guides = ["restart-safely.json", "laptop-will-not-start.json"];
    let guids = cli.import_guides(&guides);
    let same = cli.export(&guids[0]);
    let other = cli.export(&guids[1]);
    let changed = other.replacen("<p>", "<p>Changed: ", 1);
    assert_ne!(changed, other);
    for args in [&["--dry-run"][..], &[]] {
        let output = cli
            .command(&[&["import", "a.json", "b.json"], args].concat())
            .file("a.json", &same)
            .file("b.json", &changed)
            .run()
            .succeeded();
        let unchanged = format!("unchanged {} in a.json: ", guids[0]);
        assert!(output.stdout.starts_with(&unchanged), "{}", output.stdout);
        let to_be = if args.is_empty() { "" } else { "to be " };
        assert_eq!(
            output.stderr,
            format!("0 {to_be}created, 1 {to_be}updated, 1 unchanged, 0 failed\n")
        );
    }
    assert_eq!(cli.export(&guids[0]), same);
    let output = cli
        .command(&["import", "--format=json", "-"])
        .stdin(&same)
        .run();
    let outcome = output.succeeded().json()[0]["outcome"].clone();
    assert_eq!(outcome, "IMPORT_OUTCOME_UNCHANGED");
}

#[apply(on_one_database)]
fn failures_are_repeated_behind_the_counts(cli: Cli) {
    let output = cli
        .command(&["import", "none.json", "a.json", "b.json"])
        .file("a.json", &guide("A"))
        .file("b.json", &guide(""))
        .run();
    assert_eq!(output.code, Some(1));
    let (before, after) = output
        .stderr
        .split_once("1 created, 0 updated, 0 unchanged, 2 failed\n")
        .expect(&output.stderr);
    assert_eq!(before, after);
    assert!(after.starts_with("failed none.json: "), "{after}");
    assert!(after.contains("failed b.json: "), "{after}");
}

#[apply(on_one_database)]
fn a_quiet_import_prints_failures_and_counts(cli: Cli) {
    let output = cli
        .command(&["import", "--quiet", "a.json", "b.json"])
        .file("a.json", &guide("A"))
        .file("b.json", &guide(""))
        .run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        output.stderr,
        "failed b.json: the server refuses it:\n  line 1: document.task.name: is required \
         (FIELD_REQUIRED)\n\
         1 created, 0 updated, 0 unchanged, 1 failed\n"
    );
}

#[apply(on_one_database)]
fn an_error_in_a_document_names_field_and_line(cli: Cli) {
    let mut document: serde_json::Value = serde_json::from_str(&guide("A")).expect("JSON");
    document["steps"][0]["type"] = json!("STEP_TYPE_FINISH");
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    let wrong_line = text.lines().position(|line| line.contains("FINISH"));
    let wrong_line = wrong_line.expect("a line") + 1;
    let import = |args: &[&str]| {
        let args = [&["import", "a.json"], args].concat();
        cli.command(&args).file("a.json", &text).run()
    };
    import(&[]).fails_with(
        1,
        &[
            "it is not a guide: steps[0].type: ",
            &format!(" at line {wrong_line} "),
        ],
    );
}

#[apply(on_one_database)]
fn a_dry_run_shows_findings(cli: Cli) {
    let mut document: serde_json::Value = serde_json::from_str(&guide("A")).expect("JSON");
    document["steps"][0]["published"] = json!(0);
    let import = |args: &[&str]| {
        let args = [&["import", "a.json"], args].concat();
        let import = cli.command(&args).file("a.json", &document.to_string());
        import.run().succeeded()
    };
    let output = import(&["--dry-run"]);
    output.stdout.says(&[
        "warning at line 1: document.task in \"A\": ",
        "(path/no-outcome)\n",
    ]);
    let report = &import(&["--dry-run", "--format=json"]).json()[0];
    assert_eq!(report["findings"][0]["rule"], "path/no-outcome");
    let findings = report["findings"].as_array().map_or(0, Vec::len);
    let counts = ["errors", "warnings"].map(|count| report["counts"][count].as_u64());
    let counted: u64 = counts.iter().flatten().sum();
    assert_eq!(counted, findings as u64);
    let lines = import(&[]).stdout.lines().count();
    assert_eq!(lines, 1, "only a dry run prints warnings");
    let steps = (0..25).map(|number| {
        json!({
            "product_id": 7,
            "type": "STEP_TYPE_SOLUTION",
            "title": format!("S{number}"),
            "dependency_shorthand": format!("components.7.nothing{number} = x"),
        })
    });
    let steps: Vec<_> = steps.collect();
    let many = json!({"task": {"name": "Many", "product_id": 7}, "steps": steps}).to_string();
    let plan = |args: &[&str]| {
        let args = [&["import", "-", "--dry-run"], args].concat();
        cli.command(&args).stdin(&many).run().succeeded()
    };
    let report = plan(&["--format=json"]).json()[0].clone();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(20));
    let counts = ["errors", "warnings"].map(|count| report["counts"][count].as_u64());
    let counted: u64 = counts.iter().flatten().sum();
    assert!(counted >= 25, "{report}");
    let more = format!("  and {} more findings\n", counted - 20);
    assert!(plan(&[]).stdout.ends_with(&more));
}

#[apply(on_one_database)]
fn errors_of_what_is_stored_are_printed(cli: Cli) {
    let broken = fs::read_to_string(example_guide("broken/measure-a-power-supply.json"));
    let broken = broken.expect("the guide");
    let import = |document: &str, args: &[&str]| {
        let import = cli.command(&[&["import", "-"], args].concat());
        import.stdin(document).run().succeeded()
    };
    let error = "  error in step 5 \"The power supply is defective\": ";
    let created = import(&broken, &[]).stdout;
    assert_eq!(created.matches(error).count(), 1, "{created}");
    let guid = created.split(' ').nth(1).expect(&created);
    let changed = cli.export(guid).replacen("<p>", "<p>Changed: ", 1);
    assert!(import(&changed, &[]).stdout.contains(error));
    assert!(!import(&changed, &[]).stdout.contains(error), "unchanged");
    assert_eq!(import(&broken, &["--quiet"]).stdout, "");
    let report = import(&broken, &["--format=json"]).json()[0].clone();
    let findings = report["findings"].as_array().expect("findings");
    let is_error = |it: &serde_json::Value| it["severity"] == "SEVERITY_ERROR";
    assert!(
        !findings.is_empty() && findings.iter().all(is_error),
        "{report}"
    );
    let report = import(&guide("A"), &["--format=json"]).json()[0].clone();
    assert_eq!(report.get("findings"), None, "{report}");
}

#[apply(on_one_database)]
fn numbers_are_kept_exactly_or_refused(cli: Cli) {
    let with = |number: &str| {
        let instructions = format!("\"instructions\": [{{\"a\": {number}}}], \"title\"");
        guide("A").replace("\"title\"", &instructions)
    };
    for number in ["-0.0", "9007199254740992", "0.1", "20"] {
        let import = cli.command(&["import", "-", "--format=json"]);
        let made = import.stdin(&with(number)).run().succeeded().json();
        let exported = cli.authored(&text(&made[0]["guid"]));
        let kept = format!("\"a\": {number}\n");
        assert!(exported.contains(&kept), "{exported}");
    }
    let import = cli
        .command(&["import", "-"])
        .stdin(&with("9007199254740993"));
    import.run().fails_with(
        1,
        &[
            "steps[0].instructions[0].a: 9007199254740993 would be rounded",
            "at line 1",
        ],
    );
}
