//! `expertise --version`.

use std::{fs, process::Command};

use crate::command::command;

/// The commit and the schema that the version names.
fn version() -> (String, String) {
    let printed = command(&["--version"]).run().succeeded().stdout;
    let version = env!("CARGO_PKG_VERSION");
    let rest = printed.strip_prefix(&format!("expertise {version} (commit "));
    let (commit, schema) = rest
        .and_then(|it| it.strip_suffix(")\n")?.split_once(", schema "))
        .expect(&printed);
    (commit.to_owned(), schema.to_owned())
}

#[test]
fn the_version_names_the_newest_schema() {
    let newest = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/schema"));
    let newest = newest.expect("the migrations").filter_map(|file| {
        let name = file.expect("a file").file_name().into_string();
        let migration = name.ok()?.strip_suffix(".rs")?.to_owned();
        migration.starts_with("m0").then_some(migration)
    });
    assert_eq!(Some(version().1), newest.max());
}

/// A build may name another commit. Without git, it names none.
#[test]
fn the_version_names_the_commit_that_was_built() {
    let git = |arguments: &[&str]| {
        let git = Command::new("git")
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output();
        git.is_ok_and(|output| output.status.success())
    };
    let (commit, _) = version();
    let named = option_env!("EXPERTISE_COMMIT").filter(|named| !named.trim().is_empty());
    match named {
        Some(named) => assert_eq!(commit, named.trim()),
        None if git(&["rev-parse", "HEAD"]) => {
            assert!(commit.len() >= 7, "{commit}");
            let is_commit = git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]);
            assert!(is_commit, "{commit} is no commit of this repository");
        }
        None => assert_eq!(commit, "unknown"),
    }
}
