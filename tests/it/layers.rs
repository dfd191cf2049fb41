//! Compares the modules of `src` with the table "Modules" in docs/architecture.md. Each module uses
//! exactly the modules that its row names, all of which are in rows above it, so there are no
//! cycles. A use is a path that begins with `crate::`, or with `expertise::` in `main.rs`.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

#[test]
fn modules_use_what_the_table_names_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let mut code = uses_of_sources(&root.join("src"));
    let mut above = BTreeSet::new();
    for (module, named) in table_of(&page) {
        let used = code.remove(module);
        let used = used.unwrap_or_else(|| panic!("{module} has a row and no code"));
        assert_eq!(named, used.iter().map(String::as_str).collect(), "{module}");
        assert!(named.is_subset(&above), "{module} uses one below it");
        above.insert(module);
    }
    assert!(code.is_empty(), "no rows: {code:?}");
}

/// The rows of the table: the first name in the first column may use the names in the last.
fn table_of(page: &str) -> Vec<(&str, BTreeSet<&str>)> {
    let (_, table) = page.split_once("\n## Modules\n").expect("the table");
    let (table, _) = table.split_once("\n## ").expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let names = |cell: usize| cells[cell].split('`').skip(1).step_by(2);
        (names(1).next().expect("a module"), names(3).collect())
    })
    .collect()
}

/// What each module uses; `lib.rs` only declares them.
fn uses_of_sources(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses = BTreeMap::<_, BTreeSet<String>>::new();
    let mut paths = vec![src.to_owned()];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            paths.extend(entries.map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let below = path.strip_prefix(src).expect("a path below");
        let first = below.iter().next().expect("a name").to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        if module == "lib" {
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source file");
        let code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        let root = if module == "main" {
            "expertise::"
        } else {
            "crate::"
        };
        let used = code.split(root).skip(1).flat_map(first_names);
        let used = used.filter(|used| *used != module);
        let used: Vec<String> = used.map(str::to_owned).collect();
        uses.entry(module).or_default().extend(used);
    }
    uses
}

/// The first name of a path, or of each path in a group.
fn first_names(path: &str) -> Vec<&str> {
    let is_group = path.starts_with('{');
    let mut depth = 0;
    let mut names = Vec::new();
    for part in path.split_inclusive(['{', '}', ',', ';']) {
        let name = part
            .trim_start()
            .split(|c: char| !c.is_alphanumeric() && c != '_');
        if depth == usize::from(is_group) {
            names.extend(name.take(1).filter(|name| !name.is_empty()));
        }
        if !is_group {
            break;
        }
        depth += part.matches('{').count();
        depth -= part.matches('}').count();
        if depth == 0 {
            break;
        }
    }
    names
}
