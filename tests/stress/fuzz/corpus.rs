//! The corpus: inputs that failed once. Valid ones are in the catalogue of calls.

use std::{fs, path::PathBuf};

/// The files of a folder of the corpus by their paths within it, in order.
pub fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stress/fuzz/corpus");
    let mut folders = vec![root.join(folder)];
    let root = root.join(folder);
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the corpus") {
            let path = entry.expect("an entry of the corpus").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).expect("below the folder");
            let name = name.to_string_lossy().into_owned();
            files.push((name, fs::read(&path).expect("a file of the corpus")));
        }
    }
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files
}
