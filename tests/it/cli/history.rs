//! The history of guides: `history`, `keep`, `restore` and `alias`, revisions in place of guides,
//! and how a write is undone.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    client::Client,
    command::{Cli, CommandOutput, Says, text},
    on_both_databases, on_one_database, sample,
};

fn given_guide(cli: &Cli, name: &str) -> String {
    let step = |title: &str| json!({"product_id": 7, "type": "STEP_TYPE_END", "title": title});
    cli.import(&json!({
        "task": {"name": name, "product_id": 7},
        "steps": [step("First"), step("Second")],
    }))
}

fn run(cli: &Cli, args: &[&str]) -> CommandOutput {
    cli.command(args).run()
}

fn document(cli: &Cli, guide: &str) -> Value {
    cli.exported(guide)
}

/// Imports the guide with another title of its first step.
fn retitle(cli: &Cli, guid: &str, title: &str) -> CommandOutput {
    let mut document = document(cli, guid);
    document["steps"][0]["title"] = json!(title);
    let import = cli.command(&["import", "-"]);
    import.stdin(&document.to_string()).run().succeeded()
}

fn titles(document: &Value) -> Vec<&str> {
    let steps = document["steps"].as_array().expect("steps").iter();
    steps
        .map(|step| step["title"].as_str().expect("a title"))
        .collect()
}

/// The lines of a table below its head, each without repeated spaces.
fn rows(output: &CommandOutput) -> Vec<String> {
    let rows = output.stdout.lines().skip(1);
    rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[apply(on_both_databases)]
fn a_deleted_guide_comes_back_by_the_printed_command(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let before = document(&cli, &guid);
    let output = run(&cli, &["delete", &guid, "--force"]).succeeded();
    let command = output.stdout.lines().nth(1).expect("a command");
    assert_eq!(
        command,
        format!("  to bring it back: expertise restore {guid}@1")
    );
    let output = run(&cli, &["restore", &format!("{guid}@1"), "--force"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("brought {guid} back as in revision 1: Guide, 2 steps\n")
    );
    let after = document(&cli, &guid);
    assert_eq!(titles(&after), titles(&before));
    assert_eq!(after["steps"][0]["guid"], before["steps"][0]["guid"]);
}

#[apply(on_both_databases)]
fn a_restored_guide_is_as_its_revision_and_the_restore_can_be_undone(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    let output = run(&cli, &["restore", &format!("{guid}@1"), "--force"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("restored {guid} to revision 1: Guide, 2 steps; `restore {guid}@2` undoes it\n")
    );
    output.stderr.says(&["    title: \"Changed\" -> \"First\""]);
    assert_eq!(titles(&document(&cli, &guid)), ["First", "Second"]);
    run(&cli, &["alias", &guid, "live", "2"]).succeeded();
    run(&cli, &["restore", "Guide@live", "--force"]).succeeded();
    assert_eq!(titles(&document(&cli, &guid)), ["Changed", "Second"]);
}

#[apply(on_one_database)]
fn revisions_are_listed_with_the_newest_first(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let output = run(&cli, &["history", &guid]).succeeded();
    assert_eq!(output.stdout, "");
    let keep = format!("task {guid} has no revision: `expertise keep {guid}` makes one\n");
    assert_eq!(output.stderr, keep);
    run(
        &cli,
        &["keep", &guid, "--note=as reviewed", "--alias", "live"],
    )
    .succeeded();
    retitle(&cli, &guid, "Changed");
    retitle(&cli, &guid, "Again");
    let output = run(&cli, &["history", "Guide"]).succeeded();
    let head: Vec<&str> = output
        .stdout
        .lines()
        .next()
        .expect("a head")
        .split_whitespace()
        .collect();
    assert_eq!(
        head,
        ["REVISION", "CREATED", "CAUSE", "BY", "ALIASES", "NOTE"]
    );
    let rows = rows(&output);
    assert_eq!(rows.len(), 2, "{}", output.stdout);
    assert!(rows[0].starts_with("2 20"), "{}", rows[0]);
    assert!(rows[0].ends_with("Z before import"), "{}", rows[0]);
    assert!(
        rows[1].ends_with("Z requested live as reviewed"),
        "{}",
        rows[1]
    );
}

#[apply(on_one_database)]
async fn revisions_and_deletions_are_listed_with_who_made_them(client: Client) {
    let cli = Cli {
        server: format!("http://{}", client.address()),
        account: client.account().to_owned(),
    };
    let guid = client.given_task(sample::task("Guide")).await.guid;
    let [ana, ben] = ["ana", "ben"].map(|name| client.with_metadata("x-subject", name));
    ana.kept_revision(&guid).await;
    let deleted = ben.delete_task(&guid).await;
    deleted.expect("the task is deleted");
    for (args, end) in [
        (["history", &guid], "Z requested ana"),
        (["history", "--deleted"], "Z ben Guide"),
    ] {
        let output = cli.command(&args).run_in_background().await.succeeded();
        let rows = rows(&output);
        assert!(rows[0].ends_with(end), "{}", rows[0]);
    }
}

#[apply(on_one_database)]
fn keeping_an_unchanged_guide_keeps_nothing_new(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let output = run(&cli, &["keep", "Guide"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("kept revision 1 of {guid}: Guide, 2 steps\n")
    );
    let output = run(&cli, &["keep", &guid, "--alias=live"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("nothing has changed since revision 1 of {guid}: Guide, 2 steps\n")
    );
    assert_eq!(
        document(&cli, &format!("{guid}@live")),
        document(&cli, &guid)
    );
    let output = run(&cli, &["keep", &guid, "--note=reviewed"]).succeeded();
    assert_eq!(
        output.stdout,
        format!(
            "nothing has changed since revision 1 of {guid}: Guide, 2 steps; the note \"reviewed\" \
             is not stored, as a revision keeps the note that it was requested with\n"
        )
    );
}

#[apply(on_one_database)]
fn an_alias_is_set_moved_and_removed(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    run(&cli, &["keep", &guid]).succeeded();
    let title = || text(&document(&cli, &format!("{guid}@live"))["steps"][0]["title"]);
    let output = run(&cli, &["alias", &guid, "live", "1"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("live is revision 1 of {guid}: Guide, 2 steps\n")
    );
    assert_eq!(title(), "First");
    run(&cli, &["alias", "Guide", "live", "2"]).succeeded();
    assert_eq!(title(), "Changed");
    let output = run(&cli, &["alias", &guid, "live"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("live is revision 2 of {guid}: Guide, 2 steps\n")
    );
    let output = run(&cli, &["alias", &guid, "live", "--remove"]).succeeded();
    assert_eq!(
        output.stdout,
        format!("live no longer names revision 2 of {guid}: Guide, 2 steps\n")
    );
    let output = run(&cli, &["alias", &guid, "live", "--remove"]).succeeded();
    assert_eq!(output.stdout, format!("live names no revision of {guid}\n"));
    run(&cli, &["alias", &guid, "live"]).fails_with(1, &["live names no revision"]);
    assert_eq!(
        run(&cli, &["alias", &guid, "live", "1", "--remove"]).code,
        Some(2)
    );
    let line = run(&cli, &["export", &format!("{guid}@live")]).failure(1);
    assert!(line.contains("REVISION_NOT_FOUND"), "{line}");
    let line = run(&cli, &["alias", &guid, "Live", "2"]).failure(2);
    assert!(line.contains("the first a letter"), "{line}");
}

#[apply(on_one_database)]
fn every_command_that_reads_a_guide_reads_a_revision(cli: Cli) {
    let guid = cli.import_guides(&["restart-safely.json"]).remove(0);
    let before = cli.export(&guid);
    run(&cli, &["keep", &guid, "--alias=reviewed"]).succeeded();
    let shown = |args: &[&str], guide: &str| run(&cli, &[args, &[guide]].concat()).stdout;
    let commands = [&["show", "--full"][..], &["preview", "--full"]];
    let expected = commands.map(|args| shown(args, &guid));
    retitle(&cli, &guid, "Changed");
    for revision in [
        format!("{guid}@1"),
        format!("{guid}@reviewed"),
        "Restart a laptop safely@1".to_owned(),
    ] {
        assert_eq!(cli.export(&revision), before);
        for (args, expected) in commands.iter().zip(&expected) {
            assert_eq!(shown(args, &revision), *expected, "{args:?}");
        }
        let output = run(&cli, &["lint", &revision]).succeeded();
        assert!(output.stdout.starts_with(&format!("{revision}: ")));
    }
    // The analysis is of the revision, too.
    let mut broken = document(&cli, &guid);
    broken["steps"][2]["dependencies"] = Value::Null;
    broken["steps"][2]["dependency_shorthand"] = json!("components.1204.nothing = x");
    let import = cli.command(&["import", "-"]).stdin(&broken.to_string());
    import.run().succeeded();
    let rule = "condition/unknown-variable";
    assert!(shown(&["lint"], &guid).contains(rule));
    assert!(!shown(&["lint"], &format!("{guid}@1")).contains(rule));
}

#[apply(on_one_database)]
fn a_name_with_an_at_sign_is_that_of_its_task(cli: Cli) {
    let other = given_guide(&cli, "Pump");
    run(&cli, &["keep", &other, "--alias=home"]).succeeded();
    let guid = given_guide(&cli, "Pump@home");
    assert_eq!(document(&cli, "Pump@home")["task"]["guid"], guid);
    let line = run(&cli, &["export", &format!("{guid}@Live")]).failure(2);
    assert!(line.contains("such as GUID@3"), "{line}");
    let line = run(&cli, &["export", "Pumb@3"]).failure(1);
    let part = "no task of this account has the name \"Pumb\": is \"Pump\" meant?";
    assert!(line.contains(part), "{line}");
    let line = run(&cli, &["delete", "Pump@3", "--force"]).failure(1);
    let part = "this command takes no revision, leave out `@3`";
    assert!(line.contains(part), "{line}");
}

#[apply(on_one_database)]
fn two_revisions_are_compared(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    run(&cli, &["keep", &guid, "--alias=live"]).succeeded();
    retitle(&cli, &guid, "Now");
    let (first, live) = (format!("{guid}@1"), format!("{guid}@live"));
    let diff = |args: &[&str]| run(&cli, &[&["diff"], args].concat());
    for (args, values) in [
        (&[first.as_str(), &live][..], "\"First\" -> \"Changed\""),
        (&[&live, &first], "\"Changed\" -> \"First\""),
        (&[&first], "\"First\" -> \"Now\""),
        (&[&guid, &first], "\"Now\" -> \"First\""),
    ] {
        let output = diff(args);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let (head, lines) = output.stdout.split_once('\n').expect("lines");
        assert!(head.starts_with("~ step 1 "), "{head}");
        assert_eq!(lines, format!("  title: {values}\n"));
    }
    let output = diff(&[&first, &format!("{guid}@1")]).succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn what_cannot_be_compared_is_refused(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let other = given_guide(&cli, "Other");
    for guide in [&guid, &other] {
        run(&cli, &["keep", guide]).succeeded();
    }
    let (first, of_other) = (format!("{guid}@1"), format!("{other}@1"));
    for (args, part) in [
        (&[guid.as_str()][..], "such as @3"),
        (&[&first, &of_other], "are two guides"),
        (&["guide.json", &first], "a document is compared with"),
        (&[&first, "--absent-steps=keep"], "no --absent-steps"),
        (&[&format!("{guid}@9")], "REVISION_NOT_FOUND"),
    ] {
        let line = run(&cli, &[&["diff"], args].concat()).failure(2);
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[apply(on_one_database)]
fn a_deleted_guide_is_named_by_its_name(cli: Cli) {
    let output = run(&cli, &["history", "--deleted"]).succeeded();
    assert_eq!(output.stdout, "");
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["delete", &guid, "--force"]).succeeded();
    let rows = rows(&run(&cli, &["history", "--deleted"]).succeeded());
    assert_eq!(rows.len(), 1);
    assert!(rows[0].starts_with(&format!("{guid} 1 20")), "{}", rows[0]);
    assert!(rows[0].ends_with("Z Guide"), "{}", rows[0]);
    let output = run(&cli, &["history", "guide"]).succeeded();
    assert!(output.stdout.contains("before delete"), "{}", output.stdout);
    assert_eq!(titles(&document(&cli, "Guide@1")), ["First", "Second"]);
    let line = run(&cli, &["show", "Guide"]).failure(1);
    assert!(line.contains("no task of this account"), "{line}");
    // A task that is there has the name.
    let second = given_guide(&cli, "Guide");
    run(&cli, &["keep", &second]).succeeded();
    assert_eq!(document(&cli, "Guide@1")["task"]["guid"], second);
    run(&cli, &["restore", &format!("{guid}@1"), "--force"]).succeeded();
    let output = run(&cli, &["history", "--deleted"]).succeeded();
    assert_eq!(output.stdout, "");
}

#[apply(on_one_database)]
fn deleted_guides_of_one_name_are_named_by_their_guids(cli: Cli) {
    let guides = [given_guide(&cli, "Guide"), given_guide(&cli, "Guide")];
    run(&cli, &["delete", &guides[0], &guides[1], "--force"]).succeeded();
    let line = run(&cli, &["restore", "Guide@1", "--force"]).failure(1);
    assert!(line.contains("2 tasks have the name \"Guide\""), "{line}");
    for guid in &guides {
        assert!(line.contains(guid.as_str()), "{line}");
    }
}

#[apply(on_one_database)]
fn a_purged_guide_has_no_history(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    let output = run(&cli, &["delete", &guid, "--force", "--purge-history"]).succeeded();
    assert_eq!(output.stdout, format!("deleted {guid}: Guide, 2 steps\n"));
    let line = run(&cli, &["history", &guid]).failure(1);
    assert!(line.contains("TASK_NOT_FOUND"), "{line}");
}

#[apply(on_one_database)]
fn a_restore_asks_and_shows_the_difference(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    let revision = format!("{guid}@1");
    let line = run(&cli, &["restore", &revision]).failure(2);
    assert!(line.contains("repeat it with --force"), "{line}");
    let line = run(&cli, &["restore", &guid]).failure(2);
    assert!(line.contains("a guide and its revision"), "{line}");
    let restore = format!("restore {revision}");
    let answer = |typed: &str| cli.answered(typed, &restore, &[]);
    let (shown, code) = answer("n\n");
    shown.says(&[
        "\"Changed\" -> \"First\"",
        "restore this revision? [y/N]",
        "Nothing was restored.",
    ]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(titles(&document(&cli, &guid)), ["Changed", "Second"]);
    let (shown, code) = answer("y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(titles(&document(&cli, &guid)), ["First", "Second"]);
}

#[apply(on_one_database)]
fn a_change_that_is_made_while_a_restore_asks_is_not_taken_back(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    let change = || drop(retitle(&cli, &guid, "Meanwhile"));
    let restore = format!("restore {guid}@1");
    let (shown, code) = cli.answered_after("[y/N]", change, "y\n", &restore, &[]);
    shown.says(&[&format!("the task {guid} has changed since it was read")]);
    assert_eq!(code, Some(1), "{shown}");
    assert_eq!(titles(&document(&cli, &guid)), ["Meanwhile", "Second"]);
}

#[apply(on_one_database)]
fn a_dry_run_of_a_restore_changes_nothing(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    retitle(&cli, &guid, "Changed");
    let before = cli.export(&guid);
    let args = ["restore", &format!("{guid}@1"), "--dry-run"];
    let output = run(&cli, &args).succeeded();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(
        lines[0],
        format!("would restore {guid} to revision 1: Guide, 2 steps")
    );
    assert!(lines[1].starts_with("  ~ step 1 Changed"), "{}", lines[1]);
    assert_eq!(lines[2], "    title: \"Changed\" -> \"First\"");
    assert_eq!(cli.export(&guid), before);
    run(&cli, &["delete", &guid, "--force"]).succeeded();
    let output = run(&cli, &args).succeeded();
    assert_eq!(
        output.stdout,
        format!("would bring {guid} back as in revision 1: Guide, 2 steps\n")
    );
    let by_name = run(&cli, &["restore", "Guide@1", "--dry-run"]).succeeded();
    assert_eq!(by_name.stdout, output.stdout);
    run(&cli, &["export", &guid]).failure(1);
}

#[apply(on_one_database)]
fn a_restore_of_what_is_there_changes_nothing(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    run(&cli, &["keep", &guid]).succeeded();
    let before = cli.export(&guid);
    for flag in ["--dry-run", "--force"] {
        let output = run(&cli, &["restore", &format!("{guid}@1"), flag]).succeeded();
        assert_eq!(
            output.stdout,
            format!("unchanged {guid}, as in revision 1: Guide, 2 steps\n")
        );
        assert_eq!(cli.export(&guid), before);
    }
}

#[apply(on_one_database)]
fn a_subtask_step_of_a_deleted_task_is_left_out_when_that_is_asked_for(cli: Cli) {
    let target = given_guide(&cli, "Target");
    let guid = cli.import(&json!({
        "task": {"name": "Guide", "product_id": 7},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": target, "subtask_pid": 7},
            {"product_id": 7, "type": "STEP_TYPE_END", "title": "End"},
        ],
    }));
    let step = document(&cli, &guid)["steps"][0]["guid"].clone();
    run(&cli, &["delete", &guid, &target, "--force"]).succeeded();
    let revision = format!("{guid}@1");
    let output = run(&cli, &["restore", &revision, "--force"]);
    assert_eq!(output.code, Some(1));
    output.stderr.says(&[
        "set `--skip-missing-subtasks` to leave the steps out",
        "step 1 \"Target\"",
        "REVISION_UNRESTORABLE",
    ]);
    let args = ["restore", &revision, "--dry-run", "--skip-missing-subtasks"];
    let planned = run(&cli, &[&args[..], &["--format=json"]].concat()).json();
    assert_eq!(planned["outcome"], "IMPORT_OUTCOME_CREATED");
    assert_eq!(planned["skipped_steps"], json!([step]));
    run(&cli, &["export", &guid]).failure(1);
    let args = ["restore", &revision, "--force", "--skip-missing-subtasks"];
    let output = run(&cli, &args).succeeded();
    assert_eq!(
        output.stdout,
        format!(
            "brought {guid} back as in revision 1: Guide, 1 step\n  left out: step 1 \"Target\", \
             as the task that it refers to is deleted\n"
        )
    );
    assert_eq!(titles(&document(&cli, &guid)), ["End"]);
}

#[apply(on_one_database)]
fn a_managed_task_that_somebody_changed_is_replaced(cli: Cli) {
    let guid = cli.import_guides(&["laptop-will-not-start.json"]).remove(0);
    let guide = document(&cli, &guid);
    let steps = guide["steps"].as_array().expect("steps");
    let managed = steps.iter().find_map(|step| step["link"].as_str());
    let managed = managed.expect("a managed task");
    run(&cli, &["delete", &guid, "--force"]).succeeded();
    retitle(&cli, managed, "Changed by somebody");
    let args = ["restore", &format!("{guid}@1"), "--dry-run"];
    let dry = run(&cli, &args).succeeded();
    dry.stdout.says(&["\" is now a new task, as "]);
    let json = run(&cli, &[&args[..], &["--format=json"]].concat()).json();
    assert!(json["replaced_ids"][managed].is_string(), "{json}");
    let output = run(&cli, &["restore", &format!("{guid}@1"), "--force"]).succeeded();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", output.stdout);
    assert!(lines[1].starts_with("  replaced: \""), "{}", lines[1]);
    let end = format!(
        ", as {managed} was changed after the guide had let it go; {managed} stays as it is"
    );
    assert!(lines[1].ends_with(&end), "{}", lines[1]);
    let (_, new) = lines[1].split_once("\" is now ").expect("a guid");
    let new = new.strip_suffix(&end).expect("a guid");
    assert_ne!(titles(&document(&cli, new))[0], "Changed by somebody");
    assert_eq!(titles(&document(&cli, managed))[0], "Changed by somebody");
}

#[apply(on_one_database)]
fn writes_name_the_revision_that_undoes_them(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let undo = |revision: u8| format!("; `restore {guid}@{revision}` undoes it\n");
    let output = retitle(&cli, &guid, "Changed");
    assert!(output.stdout.contains(&undo(1)), "{}", output.stdout);
    let edit = ["edit", &guid, "--editor", "sed -i s/Changed/Edited/"];
    let output = run(&cli, &edit).succeeded();
    assert!(output.stdout.contains(&undo(2)), "{}", output.stdout);
    let directory = tempfile::tempdir().expect("a directory");
    let applied = cli.export(&guid).replace("Edited", "Applied");
    std::fs::write(directory.path().join("guide.json"), applied).expect("a file");
    let apply = ["apply", &directory.path().display().to_string()];
    let output = run(&cli, &apply).succeeded();
    assert!(output.stdout.contains(&undo(3)), "{}", output.stdout);
    // Nothing is changed, so nothing is to be undone.
    let output = run(&cli, &apply).succeeded();
    assert!(!output.stdout.contains("undoes"), "{}", output.stdout);
    let titles = ["First", "Changed", "Edited"].into_iter();
    for (revision, title) in titles.enumerate() {
        let revision = format!("{guid}@{}", revision + 1);
        assert_eq!(document(&cli, &revision)["steps"][0]["title"], title);
    }
}

#[apply(on_one_database)]
fn output_for_scripts_is_json(cli: Cli) {
    let guid = given_guide(&cli, "Guide");
    let json = |args: &[&str]| run(&cli, &[args, &["--format=json"]].concat()).json();
    let kept = json(&["keep", &guid, "--note=first", "--alias=live"]);
    assert_eq!(kept["revision"]["revision"], "1");
    assert_eq!(kept["revision"]["note"], "first");
    let set = json(&["alias", &guid, "best", "live"]);
    assert_eq!(set["revision"]["aliases"], json!(["best", "live"]));
    let shown = json(&["alias", &guid, "best"]);
    assert_eq!(shown["revision"]["revision"], "1");
    assert_eq!(
        json(&["alias", &guid, "best", "--remove"])["revision"],
        Value::Null
    );
    let history = json(&["history", &guid]);
    assert_eq!(history[0]["cause"], "REVISION_CAUSE_REQUESTED");
    assert_eq!(history[1], Value::Null);
    retitle(&cli, &guid, "Changed");
    let (first, guide) = (format!("{guid}@1"), guid.as_str());
    let diff = json(&["diff", &first]);
    assert_eq!(diff["guid"], guide);
    assert_eq!(diff["base"], "1");
    assert_eq!(diff["target"], Value::Null);
    assert_eq!(diff["changes"][0]["after"], "Changed");
    let planned = json(&["restore", &first, "--dry-run"]);
    assert_eq!(planned["dry_run"], true);
    assert_eq!(planned["changes"][0]["path"], "title");
    let restored = json(&["restore", &first, "--force"]);
    assert_eq!(restored["outcome"], "IMPORT_OUTCOME_UPDATED");
    assert_eq!(restored["task"]["guid"], guide);
    assert_eq!(restored["previous_revision"], "2");
    let deleted = json(&["delete", guide, "--force"]);
    assert_eq!(deleted[0]["previous_revision"], "3");
    let listed = json(&["history", "--deleted"]);
    assert_eq!(listed[0]["latest"]["task"], guide);
    assert_eq!(listed[1], Value::Null);
}
