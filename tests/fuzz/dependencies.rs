//! Stored dependencies: what is read is written back as the same, whatever
//! stands in the row.

use expertise::domain::dependency::Group;

use super::{
    corpus,
    run::{Input, run},
};

const WORDS: [&str; 14] = [
    "[\"AND\", []]",
    "[\"OR\", [",
    "]]",
    "{\"variable\": \"a\", \"operator\": \"=\", \"targets\": [1], \"path\": \"\"}",
    "\"targets\"",
    "-0.0",
    "1e308",
    "9007199254740993",
    "0.1",
    "true",
    "null",
    "\"\\u0000\"",
    "\\ud83d",
    ",",
];

#[test]
fn dependencies() {
    let corpus = corpus::texts("dependencies");
    for text in &corpus {
        assert!(
            is_kept(text),
            "the corpus is of stored dependencies: {text}"
        );
    }
    let mut kept = 0_u64;
    run("dependencies", 200, |chance| {
        let text = chance.pick(&corpus);
        kept += u64::from(is_kept(&chance.text(text, &WORDS)));
    });
    assert!(kept > 0, "nothing that was tried is valid");
}

/// Whether the text is of dependencies, which are then the same after they have
/// been stored.
fn is_kept(text: &str) -> bool {
    let _input = Input {
        target: "dependencies",
        bytes: text.as_bytes(),
    };
    let Ok(value) = serde_json::from_str(text) else {
        return false;
    };
    let Some(group) = Group::from_json(&value) else {
        return false;
    };
    let stored = group.to_json().to_string();
    let again = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(Group::from_json(&again).as_ref(), Some(&group), "{stored}");
    assert!(group.wire_bytes() >= stored.len() / 8, "{stored}");
    true
}
