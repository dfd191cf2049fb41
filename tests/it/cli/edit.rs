//! `expertise edit`. The editors are commands of the shell, which get the file as `$1`.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{
    apply,
    command::{Cli, CommandOutput, Says, binary_text, text},
    on_both_databases, on_one_database,
};

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

/// The texts in a directory.
fn kept(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory).expect("a directory");
    let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()));
    texts.map(|text| text.expect("a text")).collect()
}

#[apply(on_one_database)]
fn an_edited_text_is_imported(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = format!("sed -i \"s/{NAME}/Restart it/\"");
    let output = edit(&cli, NAME, &editor, &directory).succeeded();
    assert_eq!(
        output.stdout,
        format!("updated {guid}: Restart it, 6 steps; `restore {guid}@1` undoes it\n")
    );
    output
        .stderr
        .says(&[&format!("name: \"{NAME}\" -> \"Restart it\"")]);
    assert_eq!(cli.exported(&guid)["task"]["name"], "Restart it");
    assert!(kept(directory.path()).is_empty());
}

#[apply(on_one_database)]
fn what_is_removed_from_the_text_is_removed_from_the_guide(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.exported(&guid);
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
    let after = cli.exported(&guid);
    for step in after["steps"].as_array().expect("steps") {
        assert_ne!(step["guid"], last.as_str());
        assert_eq!(step["body"], Value::Null);
        assert_eq!(step["translations"], Value::Null);
    }
}

#[apply(on_one_database)]
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

#[apply(on_one_database)]
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
        "# it is not a guide: trailing characters at line ",
        "# the server refuses it",
        "#   line ",
        ": document.steps[0].title: is required (FIELD_REQUIRED)",
    ] {
        assert!(seen.contains(part), "{part}");
    }
    assert_eq!(cli.exported(&guid)["steps"][0]["title"], "Mended");
    assert_eq!(kept(directory.path()).len(), 1, "only what was seen");
}

#[apply(on_one_database)]
fn a_refused_field_has_the_line_on_which_it_stands(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let lines: Vec<String> = cli.authored(&guid).lines().map(str::to_owned).collect();
    let is_published = |line: &String| line.trim_start().starts_with("\"published\": ");
    let published: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_published(line))
        .map(|(index, _)| index + 1)
        .collect();
    // The first one is that of the task, the third one of the second step.
    let line = published[2];
    let editor = shell(&format!("sed -i \"{line}s/: [0-9]*/: -1/\" \"$1\""));
    let output = edit(&cli, &guid, &editor, &directory);
    let expected = format!("  line {line}, step 2 \"");
    let refusal = output.stderr.lines().find(|it| it.starts_with(&expected));
    let refusal = refusal.expect(&output.stderr);
    refusal.says(&["\": document.steps[1].published: "]);
    let lost = uuid::Uuid::now_v7();
    let editor = python(
        &directory,
        &format!(
            "guide[\"steps\"].append({{\"type\": \"STEP_TYPE_SUBTASK\", \"product_id\": 1204, \
             \"subtask_pid\": 1204, \"subtask_id\": \"{lost}\"}})"
        ),
    );
    let output = edit(&cli, &guid, &editor, &directory);
    let expected = ": task ";
    let named = format!("{lost} not found, which document.steps[6].subtask_id names");
    let refusal = output.stderr.lines().find(|line| line.contains(&named));
    let refusal = refusal.expect(&output.stderr);
    assert!(
        refusal.starts_with("line ") && refusal.contains(expected),
        "{refusal}"
    );
}

#[apply(on_one_database)]
fn a_script_in_place_of_an_editor_ends(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    // Each time another text that is no JSON.
    let editor = shell("cat \"$1\" > \"$TMPDIR/seen\"; echo oops >> \"$1\"");
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!(output.code, Some(1));
    let refused = "it is not a guide: ";
    assert_eq!(
        output.stderr.matches(refused).count(),
        5,
        "{}",
        output.stderr
    );
    let given_up = "the text was refused too often, and nothing is imported: the text is kept in ";
    assert!(output.stderr.contains(given_up), "{}", output.stderr);
    // The text stands in front of the comments.
    let seen = fs::read_to_string(directory.path().join("seen")).expect("a file");
    let reason = seen
        .lines()
        .find(|line| line.starts_with("# it is not a guide"));
    let (_, number) = reason.expect(&seen).split_once(" at line ").expect(&seen);
    let (number, _) = number.split_once(' ').expect(&seen);
    let at: usize = number.parse().expect(&seen);
    assert_eq!(seen.lines().nth(at - 1), Some("oops"), "{seen}");
    assert_eq!(seen.matches("# it is not a guide").count(), 1, "{seen}");
    let mut values = serde_json::Deserializer::from_str(&seen).into_iter::<Value>();
    let guide = values.next().expect("a value").expect("JSON");
    assert_eq!(guide["task"]["guid"], guid.as_str());
}

#[apply(on_one_database)]
fn a_refused_text_that_is_given_up_is_kept(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.authored(&guid);
    let editor = "sed -i \"s/STEP_TYPE_INFORMATION/STEP_TYPE_NONSENSE/\"";
    let output = edit(&cli, &guid, editor, &directory);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    let path = directory.path().display().to_string();
    output
        .stderr
        .says(&[&format!("the text is kept in {path}/expertise-")]);
    let kept = kept(directory.path());
    let expected = before.replace("STEP_TYPE_INFORMATION", "STEP_TYPE_NONSENSE");
    assert_ne!(expected, before);
    assert_eq!(kept, [expected]);
    assert_eq!(cli.authored(&guid), before);
}

#[apply(on_one_database)]
fn the_import_of_a_kept_text_undoes_no_change_of_others(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = "sed -i \"s/STEP_TYPE_INFORMATION/STEP_TYPE_NONSENSE/\"";
    let output = edit(&cli, &guid, editor, &directory);
    let import = output.stderr.split('`').find(|it| it.contains(" import "));
    let import = import.expect(&output.stderr).to_owned();
    let (_, arguments) = import.split_once(" import ").expect(&import);
    let file = arguments.rsplit(' ').next().expect("a file");
    let corrected = cli.export(&guid).replace("Save first", "Save it all");
    fs::write(file, corrected).expect("a file");
    let mut others = cli.exported(&guid);
    others["task"]["name"] = json!("Renamed by others");
    cli.import(&others);
    let arguments: Vec<&str> = ["import"].into_iter().chain(arguments.split(' ')).collect();
    let output = cli.command(&arguments).run();
    output.fails_with(1, &["ETAG_MISMATCH"]);
    assert_eq!(cli.exported(&guid)["task"]["name"], "Renamed by others");
}

#[apply(on_one_database)]
fn a_failed_editor_keeps_the_text(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = shell("echo more >> \"$1\"; exit 3");
    edit(&cli, &guid, &editor, &directory)
        .fails_with(1, &["exit status: 3", "the text is kept in "]);
    let kept = kept(directory.path());
    assert!(kept[0].ends_with("more\n"), "{}", kept[0]);
}

#[apply(on_one_database)]
fn a_failed_editor_that_changed_nothing_leaves_no_file(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let line = edit(&cli, &guid, "false", &directory).failure(1);
    assert!(line.ends_with(": nothing is changed\n"), "{line}");
    assert!(kept(directory.path()).is_empty());
}

/// An editor that runs these lines of Python on the guide, after somebody else has changed it.
fn python_after(
    cli: &Cli,
    directory: &TempDir,
    guid: &str,
    others: impl FnOnce(&mut Value),
    lines: &str,
) -> String {
    let mut document = cli.exported(guid);
    others(&mut document);
    let path = directory.path().join("others");
    fs::write(&path, document.to_string()).expect("a file");
    let program = binary_text();
    let path = path.display().to_string();
    let import = format!(
        "import subprocess
subprocess.run([\"{program}\", \"import\", \"--absent-steps=delete\", \"{path}\"], \
         check=True, stdout=subprocess.DEVNULL)
{lines}"
    );
    python(directory, &import)
}

#[apply(on_both_databases)]
fn what_others_have_changed_meanwhile_is_merged(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let others = |guide: &mut Value| {
        guide["steps"][0]["title"] = json!("Theirs");
        guide["steps"][4]["translations"]["es"] = json!({"title": "Suyo"});
        let steps = guide["steps"].as_array_mut().expect("steps");
        let last = steps.pop().expect("a step");
        steps.insert(1, last);
    };
    let lines = "steps[0][\"body\"] = \"<p>Mine</p>\"
steps.insert(2, {\"product_id\": 1204, \"type\": \"STEP_TYPE_INFORMATION\", \"title\": \"New\"})
del steps[4]";
    let editor = python_after(&cli, &directory, &guid, others, lines);
    let output = edit(&cli, &guid, &editor, &directory).succeeded();
    output.stderr.says(&[
        "merged with what has changed since the guide was opened:\n  ~ step 1 Save first  ",
        "    title: \"Save first\" -> \"Theirs\"",
        "your changes:\n~ step 1 Theirs  ",
        "+ step 4 New",
    ]);
    assert!(output.stdout.starts_with(&format!("updated {guid}: ")));
    let after = cli.exported(&guid);
    let steps = after["steps"].as_array().expect("steps");
    let titles: Vec<&str> = steps.iter().filter_map(|it| it["title"].as_str()).collect();
    assert_eq!(
        titles,
        [
            "Theirs",
            "Restarted",
            "Does the mouse or the keyboard still react?",
            "New",
            "Restart through the menu",
            "After the restart",
        ]
    );
    assert_eq!(steps[0]["body"], "<p>Mine</p>");
    assert_eq!(steps[5]["translations"]["es"]["title"], "Suyo");
    assert_eq!(steps[5]["translations"]["de"]["locked"], false);
}

#[apply(on_one_database)]
fn what_both_have_changed_is_a_conflict_and_the_text_is_kept(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let others = |guide: &mut Value| guide["task"]["name"] = json!("Theirs");
    let lines = "guide[\"task\"][\"name\"] = \"Mine\"";
    let editor = python_after(&cli, &directory, &guid, others, lines);
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    output.stderr.says(&[
        "conflict at line 1:\n  your text:\n",
        &format!("      name: \"{NAME}\" -> \"Mine\""),
        "  the stored guide:\n",
        &format!("      name: \"{NAME}\" -> \"Theirs\""),
        "the text is kept in ",
    ]);
    assert_eq!(cli.exported(&guid)["task"]["name"], "Theirs");
    let kept = kept(directory.path());
    assert!(kept.iter().any(|text| text.contains("\"Mine\"")));
}

#[apply(on_one_database)]
fn a_step_that_others_deleted_is_merged(cli: Cli) {
    // What is done with step 3, of which others have deleted number 2 and 3.
    for (lines, conflict) in [
        ("steps[0][\"title\"] = \"Mine\"", None),
        ("del steps[2]", None),
        ("steps[2][\"title\"] = \"Mine\"", Some("    - step 3 ")),
        ("steps.insert(0, steps.pop(2))", Some("becomes step 1")),
    ] {
        let (guid, directory) = given_guide(&cli);
        let others = |guide: &mut Value| {
            let steps = guide["steps"].as_array_mut().expect("steps");
            steps.drain(1..3);
        };
        let editor = python_after(&cli, &directory, &guid, others, lines);
        let output = edit(&cli, &guid, &editor, &directory);
        assert_eq!(
            output.code,
            Some(conflict.map_or(0, |_| 1)),
            "{}",
            output.stderr
        );
        let steps = cli.exported(&guid)["steps"]
            .as_array()
            .expect("steps")
            .len();
        assert_eq!(steps, 4, "{lines}");
        let part = conflict.unwrap_or("merged with");
        let is_named = output.stderr.contains(part) || lines == "del steps[2]";
        assert!(is_named, "{lines}: {}", output.stderr);
    }
}

#[apply(on_one_database)]
fn translations_that_an_edit_outdates_are_named(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let lines = "steps[0][\"title\"] = \"Save\"
steps[2][\"title\"] = \"Restart\"
steps[2][\"translations\"][\"de\"][\"title\"] = \"Neu starten\"
steps[3][\"translations\"][\"es\"] = {\"body\": \"<p>Pulse</p>\"}
guide[\"task\"][\"name\"] = \"Restart it\"";
    let editor = python(&directory, lines);
    let output = edit(&cli, &guid, &editor, &directory).succeeded();
    let outdates = "outdates the translations of ";
    let lines = output
        .stderr
        .lines()
        .filter(|line| line.starts_with(outdates));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(
        lines,
        [
            format!("{outdates}task \"{NAME}\": de"),
            format!("{outdates}step 1 \"Save first\": de"),
        ]
    );
    // Each source text outdates the translations that have it.
    for (lines, languages) in [
        ("steps[3][\"title\"] = \"Switch off\"", Some("de")),
        ("steps[3][\"body\"] = \"<p>Hold</p>\"", Some("de, es")),
        (
            "steps[3][\"instructions\"][0][\"seconds\"] = 11",
            Some("de"),
        ),
        (
            "steps[1][\"feedback_config\"][0][\"values\"][0][\"value\"] = \"Sure\"",
            Some("de"),
        ),
        ("steps[3][\"cost\"] = 9", None),
    ] {
        let editor = python(&directory, lines);
        let output = edit(&cli, &guid, &editor, &directory).succeeded();
        let mut outdated = output.stderr.lines().filter(|it| it.starts_with(outdates));
        let found = outdated.next().and_then(|line| line.rsplit_once("\": "));
        assert_eq!(found.map(|(_, found)| found), languages, "{lines}");
    }
}

#[apply(on_one_database)]
fn json_output_has_the_result(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let run = |editor: &str, code: i32| {
        let output = cli
            .command(&["edit", &guid, "--editor", editor, "--format=json"])
            .env("TMPDIR", &directory.path().display().to_string())
            .run();
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        output.json()
    };
    let report = run("true", 0);
    assert_eq!(
        report,
        json!({"outcome": "IMPORT_OUTCOME_UNCHANGED", "guid": guid})
    );
    let report = run(&python(&directory, "steps[0][\"title\"] = \"Save\""), 0);
    assert_eq!(report["outcome"], "IMPORT_OUTCOME_UPDATED");
    assert_eq!(report["previous_revision"], "1");
    assert_eq!(report["changes"][0]["after"], "Save");
    let others = |guide: &mut Value| guide["task"]["name"] = json!("Theirs");
    let lines = "guide[\"task\"][\"name\"] = \"Mine\"";
    let report = run(&python_after(&cli, &directory, &guid, others, lines), 1);
    let kept = fs::read_to_string(text(&report["text_kept_in"])).expect("the text");
    assert!(kept.contains("\"Mine\""), "{kept}");
}

#[apply(on_one_database)]
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

#[apply(on_one_database)]
fn findings_are_shown_before_the_import(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = "sed -i \"s/\\\"published\\\": 1/\\\"published\\\": 0/\"";
    let output = edit(&cli, &guid, editor, &directory).succeeded();
    output.stderr.says(&["(path/no-outcome)"]);
}

/// An editor that runs these lines of Python on the guide.
fn python(directory: &TempDir, lines: &str) -> String {
    let script = format!(
        "import json, sys
path = sys.argv[1]
text = open(path).read()
if \"\\n# \" in text:
    sys.exit()  # It was refused, and is given up.
guide = json.loads(text)
steps = guide[\"steps\"]
{lines}
json.dump(guide, open(path, \"w\"))"
    );
    let file = directory.path().join("edit.py");
    fs::write(&file, script).expect("a file");
    format!("python3 {}", file.display())
}

/// A guide of two steps, the second with a condition that has a shorthand.
fn given_guide_with_condition(cli: &Cli) -> String {
    let document = json!({
        "task": {"name": "Conditions", "product_id": 7},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Read"},
            {
                "product_id": 7,
                "type": "STEP_TYPE_END",
                "title": "Done",
                "dependency_shorthand": "components.7.colour = red",
            },
        ],
    });
    cli.import(&document)
}

#[apply(on_one_database)]
fn an_edited_shorthand_changes_the_conditions(cli: Cli) {
    let guid = given_guide_with_condition(&cli);
    let scripts = tempfile::tempdir().expect("a directory");
    let directory = tempfile::tempdir().expect("a directory");
    let run = |lines: &str| edit(&cli, &guid, &python(&scripts, lines), &directory).succeeded();
    let shorthand = || cli.exported(&guid)["steps"][1]["dependency_shorthand"].clone();
    let set = "steps[1][\"dependency_shorthand\"] = \"components.7.colour = ";
    let output = run(&format!("{set}blue\""));
    assert!(output.stdout.starts_with("updated "), "{}", output.stderr);
    assert_eq!(shorthand(), "components.7.colour = blue");
    // With another edit in the same text.
    run(&format!("{set}green\"\nsteps[0][\"title\"] = \"Look\""));
    assert_eq!(shorthand(), "components.7.colour = green");
    assert_eq!(cli.exported(&guid)["steps"][0]["title"], "Look");
    run("del steps[1][\"dependency_shorthand\"]");
    assert_eq!(shorthand(), Value::Null);
    assert_eq!(cli.exported(&guid)["steps"][1]["dependencies"], Value::Null);
}

#[apply(on_one_database)]
fn a_shorthand_that_contradicts_edited_conditions_is_refused(cli: Cli) {
    let guid = given_guide_with_condition(&cli);
    let before = cli.export(&guid);
    let scripts = tempfile::tempdir().expect("a directory");
    let directory = tempfile::tempdir().expect("a directory");
    let changed = "steps[1][\"dependencies\"] = {\"operator\": \"LOGICAL_OPERATOR_AND\", \"nodes\": [
    {\"condition\": {\"path\": \"components.7\", \"variable\": \"size\", \"operator\": \"=\", \"targets\": [\"red\"]}}]}";
    let unreadable = "steps[1][\"dependency_shorthand\"] = \"blue\"";
    for (lines, reason) in [
        (changed, "SHORTHAND_CONFLICT"),
        (unreadable, "SHORTHAND_INVALID"),
    ] {
        let editor = python(&scripts, lines);
        let output = edit(&cli, &guid, &editor, &directory);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let expected = "document.steps[1].dependency_shorthand: ";
        output.stderr.says(&[expected, reason]);
        assert_eq!(cli.export(&guid), before);
    }
}

#[apply(on_one_database)]
fn what_a_managed_task_ignores_is_listed(cli: Cli) {
    let guid = cli.import_guides(&["laptop-will-not-start.json"]).remove(0);
    let guide = cli.exported(&guid);
    let steps = guide["steps"].as_array().expect("steps");
    let place = steps.iter().position(|step| step["link"].is_string());
    let place = place.expect("a wiring step");
    let managed = text(&steps[place]["link"]);
    let scripts = tempfile::tempdir().expect("a directory");
    let directory = tempfile::tempdir().expect("a directory");
    let title = format!("steps[{place}][\"title\"] = \"Mine\"");
    let ignored_title = "document.steps.title";
    for (guid, lines, ignored) in [
        (
            &managed,
            "guide[\"task\"][\"name\"] = \"Mine\"",
            "document.task.name",
        ),
        (&guid, title.as_str(), ignored_title),
    ] {
        let output = edit(&cli, guid, &python(&scripts, lines), &directory);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let expected = format!(
            "ignored: {ignored}\nnothing is changed, as everything that was edited is ignored: the \
             text is kept in "
        );
        assert!(output.stderr.starts_with(&expected), "{}", output.stderr);
    }
    assert_eq!(kept(directory.path()).len(), 2);
}

#[apply(on_one_database)]
fn a_changed_type_is_named_with_both_values(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.export(&guid);
    let editor = "sed -i \"s/STEP_TYPE_INFORMATION/STEP_TYPE_SOLUTION/\"";
    let output = edit(&cli, &guid, editor, &directory);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let refused = "steps[0].type: step 1 \"Save first\" stays information, as a type never changes";
    assert!(output.stderr.contains(refused), "{}", output.stderr);
    let kept = kept(directory.path());
    assert!(kept[0].contains("STEP_TYPE_SOLUTION"), "{}", kept[0]);
    assert_eq!(cli.export(&guid), before);
}

#[apply(on_one_database)]
fn a_text_that_is_ignored_is_kept_although_others_have_changed_the_guide(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let others = |guide: &mut Value| guide["task"]["name"] = json!("Theirs");
    let lines = "steps[0][\"type\"] = \"STEP_TYPE_SOLUTION\"";
    let editor = python_after(&cli, &directory, &guid, others, lines);
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    output.stderr.says(&[
        "step 1 \"Save first\" stays information",
        "the text is kept in ",
    ]);
    let kept = kept(directory.path());
    assert!(kept.iter().any(|text| text.contains("STEP_TYPE_SOLUTION")));
}

#[apply(on_one_database)]
fn findings_that_the_guide_has_already_are_counted(cli: Cli) {
    let guid = cli
        .import_guides(&["broken/measure-a-power-supply.json"])
        .remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    let scripts = tempfile::tempdir().expect("a directory");
    let title = "steps[0][\"title\"] = \"Another title\"";
    let output = edit(&cli, &guid, &python(&scripts, title), &directory).succeeded();
    let known = format!(", which the stored guide has too: see `expertise lint {guid}`\n");
    assert!(output.stderr.contains(&known), "{}", output.stderr);
    output.stderr.says_none_of(&["(step/unreachable)"]);
    let new = "steps.insert(0, {\"product_id\": 2310, \"type\": \"STEP_TYPE_INFORMATION\", \
               \"title\": \"New\", \"dependency_shorthand\": \"components.2310.nothing = x\"})";
    let output = edit(&cli, &guid, &python(&scripts, new), &directory).succeeded();
    let count = output
        .stderr
        .matches("(condition/unknown-variable)")
        .count();
    assert_eq!(count, 1, "{}", output.stderr);
    assert!(output.stderr.contains(&known), "{}", output.stderr);
}

#[apply(on_one_database)]
fn printed_commands_have_the_given_flags(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let editor = "sed -i \"s/STEP_TYPE_INFORMATION/STEP_TYPE_NONSENSE/\"";
    let flags = ["--server", &cli.server, "-a", &cli.account];
    let edit = cli.command(&[&["edit", &guid, "--editor", editor], &flags[..]].concat());
    let edit = edit
        .without("EXPERTISE_SERVER")
        .without("EXPERTISE_ACCOUNT");
    let temporary = directory.path().display().to_string();
    let output = edit.env("TMPDIR", &temporary).run();
    let flags = format!(" --server {} --account {}` ", cli.server, cli.account);
    assert_eq!(
        output.stderr.matches(&flags).count(),
        2,
        "{}",
        output.stderr
    );
}

#[apply(on_one_database)]
fn a_new_subtask_step_is_shown_with_the_name_of_its_task(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let other = given_guide_with_condition(&cli);
    let scripts = tempfile::tempdir().expect("a directory");
    let lines = format!(
        "steps.append({{\"product_id\": 1204, \"type\": \"STEP_TYPE_SUBTASK\", \
         \"title\": \"Mine\", \"subtask_id\": \"{other}\", \"subtask_pid\": 7}})"
    );
    let output = edit(&cli, &guid, &python(&scripts, &lines), &directory).succeeded();
    output
        .stderr
        .says(&["ignored: document.steps.title", "+ step 7 Conditions\n"]);
    assert_eq!(cli.exported(&guid)["steps"][6]["title"], "Conditions");
}

#[apply(on_one_database)]
fn the_id_of_the_guide_stays(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let before = cli.export(&guid);
    let other = "0197a8f0-0000-7000-8000-000000000001";
    let editor = format!("sed -i s/{guid}/{other}/");
    let output = edit(&cli, &guid, &editor, &directory);
    assert_eq!(output.code, Some(1));
    let expected = format!("task.guid must stay {guid}: use `expertise import` for other tasks\n");
    assert!(output.stderr.starts_with(&expected), "{}", output.stderr);
    assert_eq!(cli.export(&guid), before);
}

#[apply(on_one_database)]
fn a_conflict_is_marked_in_the_text_that_comes_back_and_can_be_resolved(cli: Cli) {
    let (guid, directory) = given_guide(&cli);
    let others = |guide: &mut Value| {
        guide["task"]["name"] = json!("Theirs");
        guide["steps"][0]["title"] = json!("Also theirs");
    };
    let lines = "guide[\"task\"][\"name\"] = \"Mine\"";
    let first = python_after(&cli, &directory, &guid, others, lines);
    // The second time, the text has what the others have changed elsewhere.
    let second = "sed -i \"s/Mine/Both/\" \"$1\"";
    let seen = "cp \"$1\" \"$TMPDIR/seen\"";
    let editor = shell(&format!(
        "if grep -q \"^# conflict\" \"$1\"; then {seen}; {second}; else {first} \"$1\"; fi"
    ));
    edit(&cli, &guid, &editor, &directory).succeeded();
    let seen = fs::read_to_string(directory.path().join("seen")).expect("a file");
    seen.says(&["\"Mine\"", "\"Also theirs\"", "-> \"Theirs\""]);
    let after = cli.exported(&guid);
    assert_eq!(after["task"]["name"], "Both");
    assert_eq!(after["steps"][0]["title"], "Also theirs");
}
