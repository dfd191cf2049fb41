//! Stored dependencies: they are the same after they are read and stored again.

use expertise::domain::dependency::Group;

use super::{
    corpus,
    executions::{Input, execute},
    mutations::mutate_text,
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
fn stored_dependencies_are_the_same_when_they_are_stored_again() {
    let corpus = corpus::texts("dependencies");
    for text in &corpus {
        assert!(
            survives_storage(text),
            "the corpus is of stored dependencies: {text}"
        );
    }
    let mut valid = 0_u64;
    execute("dependencies", 200, |rng| {
        let text = rng.pick(&corpus);
        valid += u64::from(survives_storage(&mutate_text(rng, text, &WORDS)));
    });
    assert!(valid > 0, "no mutated text is valid");
}

/// Whether the text holds dependencies, which must be the same after they are stored.
fn survives_storage(text: &str) -> bool {
    let _input = Input {
        target: "dependencies",
        bytes: text.as_bytes(),
    };
    let Ok(group) = serde_json::from_str::<Group>(text) else {
        return false;
    };
    let stored = serde_json::to_string(&group).expect("JSON");
    assert_eq!(
        serde_json::from_str(&stored).ok(),
        Some(group.clone()),
        "{stored}"
    );
    assert!(group.wire_bytes() >= stored.len() / 8, "{stored}");
    true
}
