//! Ctrl-C during an import, and the run that resumes it.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::json;
use tempfile::TempDir;

use crate::kit::{
    command::{Cli, CommandOutput, Says, text},
    on_both_databases,
    rng::Rng,
};

on_both_databases![an_interrupted_import_finishes_its_file_and_is_resumed];

on_both_databases![slow: imports_that_are_interrupted_at_random_miss_and_repeat_nothing,];

/// Names the seed of the random moments.
const SEED: &str = "EXPERTISE_TEST_INTERRUPT_SEED";

/// Files of small guides. Every seventh is the same as the one before.
fn files(count: usize) -> (TempDir, Vec<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let names: Vec<String> = (0..count).map(|at| format!("{at}.json")).collect();
    for (at, name) in names.iter().enumerate() {
        let guide = match at % 7 {
            6 => at - 1,
            _ => at,
        };
        let document = json!({
            "task": {"name": format!("Guide {guide}"), "product_id": 7},
            "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
        });
        fs::write(directory.path().join(name), document.to_string()).expect("a file");
    }
    (directory, names)
}

/// Runs an import, and interrupts it after so many lines.
fn interrupted_import(
    cli: &Cli,
    directory: &Path,
    files: &[String],
    request_id: Option<&str>,
    lines: usize,
) -> CommandOutput {
    let mut args = vec!["import"];
    args.extend(files.iter().map(String::as_str));
    args.extend(request_id.iter().flat_map(|id| ["--request-id", id]));
    let run = cli.command(&args).in_directory(directory).start();
    let mut read = String::new();
    for _ in 0..lines {
        match run.next_line() {
            Some(line) => read = read + &line + "\n",
            None => break,
        }
    }
    run.signal("INT");
    let mut output = run.end();
    output.stdout = read + &output.stdout;
    output
}

/// The id under which an interrupted run is resumed.
fn resume_id(output: &CommandOutput) -> String {
    let line = output.stderr.lines().last().expect("a line");
    let (done, id) = line.split_once("--request-id ").expect(line);
    let tried = output.stdout.lines().count();
    assert!(
        done.starts_with(&format!("interrupted after {tried} of ")),
        "{line}"
    );
    id.to_owned()
}

/// How often each name is there.
fn names(cli: &Cli) -> BTreeMap<String, usize> {
    let tasks = cli.command(&["list", "--format=json"]).run().succeeded();
    let mut names = BTreeMap::new();
    for task in tasks.json().as_array().expect("an array") {
        *names.entry(text(&task["name"])).or_default() += 1;
    }
    names
}

fn expected_names(count: usize) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for at in 0..count {
        let guide = if at % 7 == 6 { at - 1 } else { at };
        *names.entry(format!("Guide {guide}")).or_default() += 1;
    }
    names
}

fn an_interrupted_import_finishes_its_file_and_is_resumed(cli: Cli) {
    let count = 40;
    let (directory, files) = files(count);
    let output = interrupted_import(&cli, directory.path(), &files, None, 3);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let id = resume_id(&output);
    let done = output.stdout.lines().count();
    assert!((3..count).contains(&done), "{done}");
    output.stderr.says(&[&format!(
        "{done} created, 0 updated, 0 unchanged, 0 failed\n"
    )]);
    assert_eq!(names(&cli).values().sum::<usize>(), done);
    let mut args = vec!["import", "--request-id", &id];
    args.extend(files.iter().map(String::as_str));
    let resumed = cli.command(&args).in_directory(directory.path()).run();
    resumed.succeeded();
    assert_eq!(names(&cli), expected_names(count));
}

fn imports_that_are_interrupted_at_random_miss_and_repeat_nothing(cli: Cli) {
    let count = 500;
    let (directory, files) = files(count);
    let mut rng = Rng::from_env("interrupted imports", SEED);
    let mut id: Option<String> = None;
    let mut interruptions = 0;
    loop {
        // Later runs go through what is done first.
        let lines = 1 + rng.below(count + count / 4);
        let output = interrupted_import(&cli, directory.path(), &files, id.as_deref(), lines);
        if output.code == Some(0) {
            break;
        }
        interruptions += 1;
        id = Some(resume_id(&output));
    }
    println!("{interruptions} interruptions");
    assert_eq!(names(&cli), expected_names(count));
}
