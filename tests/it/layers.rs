//! Holds the modules of `src` against the table "Modules" in docs/architecture.md: each
//! module uses exactly those that its row names, and no two use each other.
//!
//! A use is a path that begins with `crate::`, or with `expertise::` in `main.rs`. Code
//! of tests (`#[cfg(test)]`) counts too; comments and texts do not.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The modules that each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_use_what_the_table_names_and_no_two_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let faults = faults(&table_of(&page), &uses_of_sources(&root.join("src")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_table_that_does_not_match_is_refused() {
    let page = "\
## Modules
| Module | Holds | May use |
|---|---|---|
| `auth` (`src/auth/`) | credentials | `domain` ids |
| `domain` | values | nothing |
| `store` | queries | `auth`, `domain` |
## Other
| `proto` | not in the table | `store` |
";
    let table = table_of(page);
    let uses = |pairs: &[(&str, &[&str])]| -> Uses {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let pairs = pairs.iter();
        pairs
            .map(|(module, used)| ((*module).to_owned(), names(used)))
            .collect()
    };
    let good = uses(&[
        ("auth", &["domain"]),
        ("domain", &[]),
        ("store", &["auth", "domain"]),
    ]);
    assert_eq!(table, good);
    assert!(faults(&table, &good).is_empty());
    for (code, expected) in [
        (
            uses(&[
                ("auth", &["domain", "store"]),
                ("domain", &[]),
                ("store", &["auth", "domain"]),
            ]),
            vec![
                "auth uses store, which its row does not name",
                "auth, store are in a circle",
            ],
        ),
        (
            uses(&[
                ("auth", &["domain"]),
                ("domain", &[]),
                ("store", &["domain"]),
            ]),
            vec!["store does not use auth, which its row names"],
        ),
        (
            uses(&[
                ("auth", &["domain"]),
                ("domain", &[]),
                ("grpc", &[]),
                ("store", &["auth", "domain"]),
            ]),
            vec!["grpc has no row"],
        ),
        (
            uses(&[("domain", &[]), ("store", &["domain"])]),
            vec![
                "store does not use auth, which its row names",
                "auth has a row and no code",
            ],
        ),
    ] {
        assert_eq!(faults(&table, &code), expected);
    }
}

#[test]
fn uses_are_read_from_groups_and_paths_but_not_from_comments_and_texts() {
    let source = r##"
//! [`crate::cli`]
use crate::{
    config::{Config, Tls}, /* crate::client */
    domain::ids,
    self,
};
use other_crate::telemetry;
pub(in crate::server) fn f<'a>(quote: char) -> &'a str {
    let _ = ('"', "crate::proto \"", r#"crate::grpc ""#, crate::store::open('\''));
}
"##;
    let used: Vec<_> = uses_of(source, "crate").into_iter().collect();
    assert_eq!(used, ["config", "domain", "server", "store"]);
    assert_eq!(uses_of("expertise::cli::run();", "expertise").len(), 1);
}

/// What is wrong, one line each.
fn faults(table: &Uses, code: &Uses) -> Vec<String> {
    let mut faults = Vec::new();
    for (module, used) in code {
        let Some(allowed) = table.get(module) else {
            faults.push(format!("{module} has no row"));
            continue;
        };
        for other in used.difference(allowed) {
            faults.push(format!(
                "{module} uses {other}, which its row does not name"
            ));
        }
        for other in allowed.difference(used) {
            faults.push(format!(
                "{module} does not use {other}, which its row names"
            ));
        }
    }
    let absent = table.keys().filter(|module| !code.contains_key(*module));
    faults.extend(absent.map(|module| format!("{module} has a row and no code")));
    let circle = circle(code);
    if !circle.is_empty() {
        faults.push(format!("{} are in a circle", circle.join(", ")));
    }
    faults
}

/// The modules that use each other, directly or through others.
fn circle(code: &Uses) -> Vec<String> {
    let reaches = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(module) = next.pop() {
            for used in code.get(module).into_iter().flatten() {
                if reached.insert(used) {
                    next.push(used);
                }
            }
        }
        reached.contains(from)
    };
    code.keys()
        .filter(|module| reaches(module))
        .cloned()
        .collect()
}

/// The rows of the table "Modules": the first name in the first column may use the
/// names in the last one.
fn table_of(page: &str) -> Uses {
    let lines = page
        .lines()
        .skip_while(|line| *line != "## Modules")
        .skip(1);
    let rows = lines
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `"));
    let names = |cell: &str| -> Vec<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    let table: Uses = rows
        .map(|row| {
            let (module, cells) = row.split_once('`').expect("a module");
            let (_, used) = cells
                .trim_end_matches([' ', '|'])
                .rsplit_once('|')
                .expect("columns");
            (module.to_owned(), names(used).into_iter().collect())
        })
        .collect();
    assert!(!table.is_empty(), "no table of modules");
    table
}

/// What each module of a source directory uses; `lib.rs` only declares them.
fn uses_of_sources(directory: &Path) -> Uses {
    let mut uses = Uses::new();
    let mut files = vec![directory.to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            files.extend(entries.map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let name = path
            .strip_prefix(directory)
            .expect("a path below")
            .to_string_lossy();
        let module = name
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        let krate = match module {
            "lib" => continue,
            "main" => "expertise",
            _ => "crate",
        };
        let source = fs::read_to_string(&path).expect("a source file");
        let mut used = uses_of(&source, krate);
        used.remove(module);
        uses.entry(module.to_owned()).or_default().extend(used);
    }
    uses
}

/// The modules in paths that begin with `krate::`, single or in a group.
fn uses_of(source: &str, krate: &str) -> BTreeSet<String> {
    let code = without_comments_and_texts(source);
    let prefix = format!("{krate}::");
    let paths = code
        .match_indices(&prefix)
        .filter(|(start, _)| !code[..*start].ends_with(is_word));
    let names = paths.flat_map(|(start, _)| first_names(&code[start + prefix.len()..]));
    let names = names.filter(|name| !name.is_empty() && *name != "self");
    names.map(str::to_owned).collect()
}

/// The first name of a path, or of each path in a group.
fn first_names(path: &str) -> Vec<&str> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![first_word(path)];
    };
    let (mut names, mut depth, mut start) = (Vec::new(), 1, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (c == ',' && depth == 1) {
            names.push(first_word(&group[start..at]));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c| !is_word(c)).next().unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Rust code with its comments, strings and characters left out.
fn without_comments_and_texts(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let after_word = code.ends_with(is_word);
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string_length(rest).filter(|_| !after_word) {
            length
        } else if c == '"' || rest.starts_with("'\\") {
            quoted_length(rest, c)
        } else if c == '\'' && rest.chars().nth(2) == Some('\'') {
            2 + rest.chars().nth(1).map_or(0, char::len_utf8)
        } else {
            code.push(c);
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    code
}

/// The length of a raw string that the text begins with.
fn raw_string_length(text: &str) -> Option<usize> {
    let hashed = text.strip_prefix('r')?;
    let content = hashed.trim_start_matches('#').strip_prefix('"')?;
    let hashes = hashed.len() - content.len() - 1;
    let end = format!("\"{}", "#".repeat(hashes));
    let open = text.len() - content.len();
    content.find(&end).map(|at| open + at + end.len())
}

/// The length of a string or character with its quotes, in which `\` escapes the next one.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}
