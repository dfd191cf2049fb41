//! `expertise edit`. The editors are commands of the shell, which get the file as `$1`.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{
    command::{Cli, CommandOutput, text},
    on_both_databases,
};

on_both_databases![
    an_edited_text_is_imported,
    what_is_removed_from_the_text_is_removed_from_the_guide,
    a_text_that_is_left_as_it_is_changes_nothing,
    a_refused_text_comes_back_with_its_errors,
    a_refused_text_that_is_given_up_is_kept,
    a_required_field_that_is_removed_is_refused,
    a_failed_editor_keeps_the_text,
    a_guide_that_has_changed_meanwhile_is_not_overwritten,
    the_editor_is_that_of_the_flag_or_the_environment,
    findings_are_shown_before_the_import,
];

const NAME: &str = "Restart a laptop safely";

/// Runs `edit`; `TMPDIR` is the directory.
fn edit(cli: &Cli, guid: &str, editor: &str, directory: &TempDir) -> CommandOutput {
    cli.command(&["edit", guid, "--editor", editor])
        .env("TMPDIR", &directory.path().display().to_string())
        .run()
}

/// A shell command as an editor: it gets the name of the file as `$1`.
fn shell(script: &str) -> String {
    format!("sh -c '{script}' sh")
}

fn given_guide(cli: &Cli) -> (String, TempDir) {
    let guid = cli.import_guides(&["restart-safely.json"]).remove(0);
    (guid, tempfile::tempdir().expect("a directory"))
}

fn exported(cli: &Cli, guid: &str) -> Value {
    serde_json::from_str(&cli.export(guid)).expect("JSON")
}

/// The texts in a directory.
fn kept(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory).expect("a directory");
    let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()));
    texts.map(|text| text.expect("a text")).collect()
}

fn an_edited_text_is_imported(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = format!("sed -i \"s/{NAME}/Restart it/\"");
    let output = edit(&cli, NAME, &editor, &directory).succeeded();
    assert_eq!(
        output.stdout,
        format!("updated {guid}: Restart it, 6 steps\n")
    );
    assert!(
        output
            .stderr
            .contains(&format!("name: \"{NAME}\" -> \"Restart it\"")),
        "{}",
        output.stderr
    );
    assert_eq!(exported(&cli, &guid)["task"]["name"], "Restart it");
    assert!(kept(directory.path()).is_empty());
}

fn what_is_removed_from_the_text_is_removed_from_the_guide(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = exported(&cli, &guid);
    let steps = before["steps"].as_array().expect("steps");
    let with_body = steps.iter().filter(|step| step["body"].is_string());
    assert!(with_body.count() > 1);
    let last = text(&steps[5]["guid"]);
    let script = "import json, sys
path = sys.argv[1]
guide = json.load(open(path))
for step in guide[\"steps\"]:
    step.pop(\"body\", None)
    step.pop(\"translations\", None)
guide[\"steps\"].pop()
json.dump(guide, open(path, \"w\"))";
    fs::write(directory.path().join("edit.py"), script).expect("a file");
    let editor = format!("python3 {}/edit.py", directory.path().display());
    let output = edit(&cli, &guid, &editor, &directory).succeeded();
    assert!(output.stderr.contains("- step 6 "), "{}", output.stderr);
    let after = exported(&cli, &guid);
    for step in after["steps"].as_array().expect("steps") {
        assert_ne!(step["guid"], last.as_str());
        assert_eq!(step["body"], Value::Null);
        assert_eq!(step["translations"], Value::Null);
    }
}

fn a_text_that_is_left_as_it_is_changes_nothing(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.export(&guid);
    let output = edit(&cli, &guid, "true", &directory).succeeded();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("", "nothing is changed\n")
    );
    assert_eq!(cli.export(&guid), before);
    assert!(kept(directory.path()).is_empty());
}

fn a_refused_text_comes_back_with_its_errors(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    // First it is no JSON, then the server refuses it, then it is right.
    let editor = shell(
        "cat \"$1\" >> \"$TMPDIR/seen\"; \
         if grep -q FIELD_REQUIRED \"$1\"; then sed -i \"s/\\\"title\\\": \\\" \\\"/\\\"title\\\": \\\"Mended\\\"/\" \"$1\"; \
         elif grep -q \"not a guide\" \"$1\"; then sed -i \"s/oops//; s/\\\"title\\\": \\\"[^\\\"]*\\\"/\\\"title\\\": \\\" \\\"/\" \"$1\"; \
         else echo oops >> \"$1\"; fi",
    );
    let output = edit(&cli, &guid, &editor, &directory).succeeded();
    assert!(output.stdout.starts_with("updated "), "{}", output.stdout);
    let seen = fs::read_to_string(directory.path().join("seen")).expect("a file");
    for part in [
        "# it is not a guide: more text follows the end of the document: remove it at line ",
        "# the server refuses it",
        "#   document.steps[0].title: is required (FIELD_REQUIRED)",
    ] {
        assert!(seen.contains(part), "{part}");
    }
    assert_eq!(exported(&cli, &guid)["steps"][0]["title"], "Mended");
    assert_eq!(kept(directory.path()).len(), 1, "only what was seen");
}

fn a_refused_text_that_is_given_up_is_kept(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.export(&guid);
    let editor = "sed -i \"s/STEP_TYPE_INFORMATION/STEP_TYPE_NONSENSE/\"";
    let output = edit(&cli, &guid, editor, &directory);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let path = directory.path().display().to_string();
    assert!(
        output
            .stderr
            .contains(&format!("the text is kept in {path}/expertise-")),
        "{}",
        output.stderr
    );
    let kept = kept(directory.path());
    let expected = before.replace("STEP_TYPE_INFORMATION", "STEP_TYPE_NONSENSE");
    assert_ne!(expected, before);
    assert_eq!(kept, [expected]);
    assert_eq!(cli.export(&guid), before);
}

fn a_required_field_that_is_removed_is_refused(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.export(&guid);
    for (editor, error) in [
        (
            "sed -i \"s/\\\"title\\\": \\\"[^\\\"]*\\\"/\\\"title\\\": \\\"\\\"/\"".to_owned(),
            "steps[0].title: is required\n",
        ),
        (format!("sed -i \"s/{NAME}//\""), "task.name: is required\n"),
    ] {
        let output = edit(&cli, &guid, &editor, &directory);
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
        assert!(output.stderr.contains(error), "{}", output.stderr);
        assert!(
            output.stderr.contains("the text was not changed: ")
                && output
                    .stderr
                    .contains("; correct it, then `expertise import "),
            "{}",
            output.stderr
        );
        assert_eq!(cli.export(&guid), before);
    }
    let script = "import json, sys
path = sys.argv[1]
guide = json.load(open(path))
for step in guide[\"steps\"]:
    step.pop(\"feedback_config\", None)
json.dump(guide, open(path, \"w\"))";
    let scripts = tempfile::tempdir().expect("a directory");
    fs::write(scripts.path().join("edit.py"), script).expect("a file");
    let editor = format!("python3 {}/edit.py", scripts.path().display());
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!(output.code, Some(1));
    assert!(
        output
            .stderr
            .contains("steps[1].feedback_config: is required\n"),
        "{}",
        output.stderr
    );
    assert_eq!(cli.export(&guid), before);
    assert_eq!(kept(directory.path()).len(), 3);
}

fn a_failed_editor_keeps_the_text(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = shell("echo more >> \"$1\"; exit 3");
    let line = edit(&cli, &guid, &editor, &directory).failure(1);
    assert!(line.contains("exit status: 3"), "{line}");
    assert!(line.contains("the text is kept in "), "{line}");
    let kept = kept(directory.path());
    assert!(kept[0].ends_with("more\n"), "{}", kept[0]);
}

fn a_guide_that_has_changed_meanwhile_is_not_overwritten(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let document = cli.export(&guid);
    // Somebody else changes one step, which leaves the etag of the task as it is.
    let others = document.replacen("<p>", "<p>Somebody wrote: ", 1);
    assert_ne!(others, document);
    let path = directory.path().join("others");
    fs::write(&path, &others).expect("a file");
    let editor = shell(&format!(
        "{} import {} > /dev/null; sed -i \"s/{NAME}/Mine/\" \"$1\"",
        env!("CARGO_BIN_EXE_expertise"),
        path.display()
    ));
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(
        output.stderr.contains("has changed since it was read"),
        "{}",
        output.stderr
    );
    let after = cli.export(&guid);
    assert!(after.contains("Somebody wrote: ") && after.contains(NAME));
    let kept = kept(directory.path());
    assert!(kept.iter().any(|text| text.contains("Mine")));
}

fn the_editor_is_that_of_the_flag_or_the_environment(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let touch = |name: &str| shell(&format!("touch \"$TMPDIR/{name}\""));
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let args = [&["edit", &guid], args].concat();
        let edit = cli.command(&args).without("VISUAL").without("EDITOR");
        edit.env("TMPDIR", &directory.path().display().to_string())
            .envs(environment)
            .run()
            .succeeded();
        let files = fs::read_dir(directory.path()).expect("a directory");
        let file = files.last().expect("one").expect("a file");
        fs::remove_file(file.path()).expect("it is there");
        file.file_name().into_string().expect("a name")
    };
    let (flag, visual, editor) = (touch("flag"), touch("visual"), touch("editor"));
    let editor = ("EDITOR", editor.as_str());
    let visual = ("VISUAL", visual.as_str());
    assert_eq!(run(&[], &[editor]), "editor");
    assert_eq!(run(&[], &[("VISUAL", " "), editor]), "editor");
    assert_eq!(run(&[], &[editor, visual]), "visual");
    assert_eq!(run(&["--editor", &flag], &[editor, visual]), "flag");
}

fn findings_are_shown_before_the_import(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = "sed -i \"s/\\\"published\\\": 1/\\\"published\\\": 0/\"";
    let output = edit(&cli, &guid, editor, &directory).succeeded();
    assert!(
        output.stderr.contains("(path/no-outcome)"),
        "{}",
        output.stderr
    );
}
