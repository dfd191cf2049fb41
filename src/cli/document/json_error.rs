//! What is wrong with a JSON text, in plain words.

use serde_json::Error;

use crate::domain::misspelling::closest;

/// The fields of a document.
const DOCUMENT_FIELDS: [&str; 2] = ["task", "steps"];

const WHOLE_NUMBER: &str = "expected a whole number";
const TOO_LARGE: &str = "the number is too large or too small for the field";

/// Messages of the parser, and the same in plain words.
const PLAIN_MESSAGES: [(&str, &str); 24] = [
    (
        "EOF while parsing a list",
        "the text ends before a list is closed with `]`",
    ),
    (
        "EOF while parsing an object",
        "the text ends before an object is closed with `}`",
    ),
    (
        "EOF while parsing a string",
        "the text ends before a string is closed with `\"`",
    ),
    ("EOF while parsing a value", "the text ends before a value"),
    ("expected ident", "expected true, false or null"),
    (
        "expected value",
        "expected a value: a string in `\"`, a number, true, false, null, a list or an object",
    ),
    (
        "invalid escape",
        "a string has an unknown escape: write a backslash as `\\\\`",
    ),
    ("invalid number", "a number is malformed"),
    ("number out of range", "a number is too large"),
    (
        "invalid unicode code point",
        "the text is not UTF-8, or an escape names no character",
    ),
    (
        "control character (\\u0000-\\u001F) found while parsing a string",
        "a string has a line break or another control character: write a line break as `\\n`",
    ),
    (
        "key must be a string",
        "the name of a field must be in `\"`",
    ),
    (
        "lone leading surrogate in hex escape",
        "an escape `\\u…` is only half of a character",
    ),
    (
        "unexpected end of hex escape",
        "an escape `\\u…` is only half of a character",
    ),
    (
        "trailing comma",
        "a comma stands before the end of a list or object: remove it",
    ),
    (
        "trailing characters",
        "more text follows the end of the document: remove it",
    ),
    ("recursion limit exceeded", "it is nested too deeply"),
    ("expected `\"`", "expected a name in `\"`"),
    ("expected integer value", WHOLE_NUMBER),
    ("invalid digit found in string", WHOLE_NUMBER),
    ("cannot parse integer from empty string", WHOLE_NUMBER),
    ("number too large to fit in target type", TOO_LARGE),
    ("number too small to fit in target type", TOO_LARGE),
    ("out of range integral type conversion attempted", TOO_LARGE),
];

/// The names that the contract has at the place of an error.
#[derive(Default)]
pub(super) struct KnownNames {
    /// The values of the enum, if it is one.
    pub values: Vec<String>,
    /// The fields of the message, if it is one.
    pub fields: Vec<String>,
}

/// What is wrong, and the line and column where there is one.
pub(super) fn plain_message(error: &Error, known: &KnownNames) -> String {
    let text = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    let (what, at) = match text.strip_suffix(&location) {
        Some(what) => (
            what,
            format!(" at line {}, column {}", error.line(), error.column()),
        ),
        None => (text.as_str(), String::new()),
    };
    let listed = PLAIN_MESSAGES
        .iter()
        .find(|(of_parser, _)| *of_parser == what);
    let plain = listed.map_or_else(
        || wrong_value(what, known),
        |(_, plain)| (*plain).to_owned(),
    );
    format!("{plain}{at}")
}

/// What is wrong with a value that is JSON and does not fit its field.
fn wrong_value(what: &str, known: &KnownNames) -> String {
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
    match types.and_then(|types| types.split_once(", expected ")) {
        Some((found, expected)) => {
            let (expected, found) = (json_type(expected), json_type(found));
            format!("expected {expected}, found {found}")
        }
        None => what.to_owned(),
    }
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
    fn no_word_of_the_parser_is_left() {
        for (json, expected) in [
            ("", "the text ends before a value at line 1, column 0"),
            (
                "[1",
                "the text ends before a list is closed with `]` at line 1, column 2",
            ),
            (
                "{\"a\":1",
                "the text ends before an object is closed with `}` at line 1, column 6",
            ),
            (
                "\"a",
                "the text ends before a string is closed with `\"` at line 1, column 2",
            ),
            ("[nul]", "expected true, false or null at line 1, column 5"),
            ("[,]", "expected a value: "),
            ("[\"\\q\"]", "a string has an unknown escape: "),
            ("[-]", "a number is malformed at line 1, column 3"),
            ("[1e999]", "a number is too large at line 1, column "),
            (
                "[\"\\ud800\"]",
                "an escape `\\u…` is only half of a character at ",
            ),
            (
                "[\"a\nb\"]",
                "a string has a line break or another control character",
            ),
            (
                "{a:1}",
                "the name of a field must be in `\"` at line 1, column 2",
            ),
            (
                "{\"a\":1,}",
                "a comma stands before the end of a list or object: remove it at ",
            ),
            (
                "{} x",
                "more text follows the end of the document: remove it at line 1, column 4",
            ),
            ("{\"a\" 1}", "expected `:` at line 1, column 6"),
            ("[1 2]", "expected `,` or `]` at line 1, column 4"),
            (
                &"[".repeat(200),
                "it is nested too deeply at line 1, column 128",
            ),
        ] {
            let read: Result<serde_json::Value, _> = serde_json::from_str(json);
            let Err(error) = read else {
                panic!("{json}");
            };
            let message = plain_message(&error, &KnownNames::default());
            assert!(message.starts_with(expected), "{json}: {message}");
        }
    }
}
