//! What is wrong with a JSON text: the words of the parser, with hints from the contract.

use serde_json::Error;

use crate::domain::misspelling::closest;

/// The fields of a document.
const DOCUMENT_FIELDS: [&str; 2] = ["task", "steps"];

/// The names that the contract has at the place of an error.
#[derive(Default)]
pub(super) struct KnownNames {
    /// The values of the enum, if it is one.
    pub values: Vec<String>,
    /// The fields of the message, if it is one.
    pub fields: Vec<String>,
}

/// What is wrong, and the line and column where there is one.
pub(super) fn message(error: &Error, known: &KnownNames) -> String {
    let text = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    let (what, at) = match text.strip_suffix(&location) {
        Some(what) => (
            what,
            format!(" at line {}, column {}", error.line(), error.column()),
        ),
        None => (text.as_str(), String::new()),
    };
    format!("{}{at}", with_hints(what, known))
}

/// The message of the parser; for a value that does not fit its field, with what would fit.
fn with_hints(what: &str, known: &KnownNames) -> String {
    if let Some(name) = what.strip_prefix("unrecognized field name ") {
        let fields = known.fields.iter().map(String::as_str);
        let hint = match closest(name.trim_matches('\''), fields) {
            Some(field) => format!(" (is `{field}` meant?)"),
            None if known.fields == DOCUMENT_FIELDS => " (expected `task` and `steps`)".to_owned(),
            None => String::new(),
        };
        return format!("the field {name} is unknown{hint}");
    }
    if let Some(name) = what.strip_prefix("unrecognized enum value ") {
        return match known.values.as_slice() {
            [] => format!("the value {name} is unknown"),
            known => format!(
                "the value {name} is unknown (known are {})",
                known.join(", ")
            ),
        };
    }
    let types = what.strip_prefix("invalid type: ");
    if let Some((found, expected)) = types.and_then(|types| types.split_once(", expected ")) {
        let (expected, found) = (json_type(expected), json_type(found));
        return format!("expected {expected}, found {found}");
    }
    let plain = match what {
        "key must be a string" => "expected a name in double quotes (JSON has no comments)",
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "expected a whole number"
        }
        "number too large to fit in target type" => "the number is too large",
        "number too small to fit in target type" => "the number is too small",
        _ if what.starts_with("EOF while parsing") => "the text ends too early",
        _ => what,
    };
    plain.to_owned()
}

/// The name that JSON has for a type of the parser.
fn json_type(text: &str) -> &str {
    match text {
        "map" | "a map" => "an object",
        "sequence" => "a list",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_place_behind_the_words_of_the_parser() {
        for (json, expected) in [
            ("{\"a\": [", "the text ends too early at line 1, column 7"),
            (
                "{// a\n}",
                "expected a name in double quotes (JSON has no comments) at line 1, column 2",
            ),
            ("{} x", "trailing characters at line 1, column 4"),
            ("{\"a\" 1}", "expected `:` at line 1, column 6"),
        ] {
            let read: Result<serde_json::Value, _> = serde_json::from_str(json);
            let error = read.expect_err(json);
            assert_eq!(message(&error, &KnownNames::default()), expected);
        }
    }
}
