//! `expertise delete`.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, text},
    on_one_database,
};

/// A guide whose only step stands for another task.
fn referring_to(name: &str, task: &str) -> Value {
    json!({
        "task": {"name": name, "product_id": 7},
        "steps": [{
            "product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": task, "subtask_pid": 7,
        }],
    })
}

fn empty_guide(name: &str) -> Value {
    json!({"task": {"name": name, "product_id": 7}})
}

#[apply(on_one_database)]
fn tasks_are_deleted_with_their_steps(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let other = cli.import(&empty_guide("Other"));
    // A task that is named twice is deleted once.
    let args = ["delete", guid, "Other", &other, "--force"];
    let output = cli.command(&args).run().succeeded();
    assert_eq!(
        output.stdout,
        format!(
            "deleted {guid}: Restart a laptop safely, 6 steps\n  to bring it back: expertise \
             restore {guid}@1\ndeleted {other}: Other, 0 steps\n  to bring it back: expertise \
             restore {other}@1\n"
        )
    );
    assert_eq!(output.stderr, "2 deleted, 0 failed\n");
    let output = cli.command(&["list"]).run().succeeded();
    assert_eq!(
        output.stderr,
        format!("account {} has no tasks\n", cli.account)
    );
}

#[apply(on_one_database)]
fn without_a_terminal_force_is_required(cli: Cli) {
    let guid = cli.import(&empty_guide("Stays"));
    cli.command(&["delete", &guid])
        .run()
        .fails_with(2, &["repeat it with --force"]);
    cli.export(&guid);
}

#[apply(on_one_database)]
fn nothing_is_deleted_unless_every_task_is_found(cli: Cli) {
    let guid = cli.import(&empty_guide("Stays"));
    let missing = uuid::Uuid::now_v7().to_string();
    let args = ["delete", &guid, &missing, "--force"];
    cli.command(&args).run().fails_with(1, &["TASK_NOT_FOUND"]);
    cli.export(&guid);
}

#[apply(on_one_database)]
fn a_refusal_names_the_steps_that_refer_to_the_task(cli: Cli) {
    let target = cli.import(&empty_guide("Target"));
    let referring = cli.import(&referring_to("Referring", &target));
    let document = cli.exported(&referring);
    let step = text(&document["steps"][0]["guid"]);
    let output = cli.command(&["delete", &target, "--force"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert!(lines[0].starts_with(&format!("failed {target}: Target")));
    assert!(lines[0].ends_with("(TASK_REFERENCED)"), "{}", lines[0]);
    assert_eq!(
        lines[1],
        format!(
            "  step {step} of task {referring} refers to it: remove that step in `expertise edit \
             {referring}`"
        )
    );
    let args = ["delete", &target, "--force", "--format=json"];
    let report = &cli.command(&args).run().json()[0];
    assert_eq!(report["error"]["reason"], "TASK_REFERENCED");
    assert_eq!(report["references"][0]["place"]["step"], step.as_str());
}

#[apply(on_one_database)]
fn a_managed_task_names_the_step_that_manages_it(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let document = cli.exported(guid);
    let steps = document["steps"].as_array().expect("steps");
    let managed = steps.iter().find_map(|step| step["link"].as_str());
    let managed = managed.expect("a wiring step");
    let output = cli.command(&["delete", managed, "--force"]).run();
    assert_eq!(output.code, Some(1));
    output.stderr.says(&[
        "(TASK_MANAGED)",
        &format!("of task {guid} manages it with its feedback_config[0]"),
    ]);
}

#[apply(on_one_database)]
fn tasks_that_a_deleted_task_managed_are_named(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let output = cli.command(&["delete", guid, "--force"]).run().succeeded();
    let (what, command) = output.stderr.trim().split_once(": ").expect("a command");
    assert!(what.ends_with(" as ordinary tasks; to delete what stays"));
    let guids = command.strip_prefix("expertise delete ").expect("guids");
    let args: Vec<&str> = ["delete", "--force"]
        .into_iter()
        .chain(guids.split(' '))
        .collect();
    let output = cli.command(&args).run().succeeded();
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "nothing else is left: {}", output.stderr);
    let output = cli.command(&["list"]).run().succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn tasks_that_refer_to_each_other_are_deleted_in_any_order(cli: Cli) {
    let last = cli.import(&empty_guide("Last"));
    let middle = cli.import(&referring_to("Middle", &last));
    let first = cli.import(&referring_to("First", &middle));
    let args = ["delete", &last, &middle, &first, "--force"];
    let output = cli.command(&args).run().succeeded();
    assert_eq!(output.stderr, "3 deleted, 0 failed\n");
}

#[apply(on_one_database)]
fn a_task_that_is_kept_does_not_keep_the_others(cli: Cli) {
    let target = cli.import(&empty_guide("Target"));
    cli.import(&referring_to("Referring", &target));
    let [one, other] = ["One", "Other"].map(|name| cli.import(&empty_guide(name)));
    let args = ["delete", &one, &target, &other, "--force"];
    let output = cli.command(&args).run();
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    for deleted in [&one, &other] {
        output.stdout.says(&[&format!("deleted {deleted}: ")]);
    }
    output
        .stderr
        .says(&["(TASK_REFERENCED)", "2 deleted, 1 failed\n"]);
    cli.export(&target);
}

#[apply(on_one_database)]
fn json_output_reports_each_task(cli: Cli) {
    for (flags, revision) in [(&[][..], json!("1")), (&["--purge-history"], Value::Null)] {
        let guids = ["One", "Other"].map(|name| cli.import(&empty_guide(name)));
        let args = ["delete", &guids[0], &guids[1], "--force", "--format=json"];
        let reports = cli.command(&[&args[..], flags].concat()).run();
        let reports = reports.succeeded().json();
        for (index, name) in ["One", "Other"].iter().enumerate() {
            let (guid, report) = (&guids[index], &reports[index]);
            assert_eq!(
                (&report["guid"], &report["name"]),
                (&json!(guid), &json!(name))
            );
            assert_eq!(report["previous_revision"], revision, "{flags:?}");
            let history = cli.command(&["history", guid]).run();
            assert_eq!(history.code == Some(0), !revision.is_null(), "{flags:?}");
        }
    }
}
