//! `expertise --version`.

use std::process::Command;

use crate::kit::command::command;

#[test]
fn the_version_names_commit_and_schema() {
    let printed = command(&["--version"]).run().succeeded().stdout;
    let version = env!("CARGO_PKG_VERSION");
    let rest = printed.strip_prefix(&format!("expertise {version} (commit "));
    let (commit, schema) = rest
        .and_then(|it| it.split_once(", schema "))
        .expect(&printed);
    assert!(
        !commit.is_empty() && !commit.contains(char::is_whitespace),
        "{printed}"
    );
    let newest = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/schema"));
    let newest = newest.expect("the migrations").filter_map(|file| {
        let name = file
            .expect("a file")
            .file_name()
            .into_string()
            .expect("a name");
        let migration = name
            .strip_suffix(".rs")
            .filter(|name| name.starts_with("m0"));
        migration.map(str::to_owned)
    });
    assert_eq!(
        schema.trim_end().strip_suffix(')'),
        newest.max().as_deref(),
        "{printed}"
    );
}

#[test]
fn the_version_names_the_checked_out_commit() {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    // A build may name another commit, and names none without git.
    let Some(commit) = git(&["rev-parse", "HEAD"]) else {
        return;
    };
    let printed = command(&["--version"]).run().succeeded().stdout;
    let (_, rest) = printed.split_once("(commit ").expect("a commit");
    let (shown, _) = rest.split_once(',').expect("its end");
    let named = option_env!("EXPERTISE_COMMIT").filter(|named| !named.is_empty());
    assert!(
        commit.starts_with(shown) || named == Some(shown),
        "{printed}"
    );
}
