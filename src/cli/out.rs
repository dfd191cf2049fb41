//! Standard output.

use std::io::{self, Write};

use serde::Serialize;

use super::CliError;
pub(super) use crate::terminal::{escape_formatting, print_error, print_message, sanitize};

/// Prints to standard output, and fails where the text cannot be kept, as on a full
/// disk. A reader that has closed its end is no failure.
pub fn print(text: &str) -> Result<(), CliError> {
    print_to_reader(text).map(|_| ())
}

/// Prints to standard output, and returns whether its reader has not closed its end.
pub(super) fn print_to_reader(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(true),
        Err(reason) if reason.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(reason) => Err(CliError::Write {
            place: "to standard output".to_owned(),
            reason,
        }),
    }
}

/// Prints a value as JSON, indented.
pub(super) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(value).map_err(|error| CliError::Write {
        place: "JSON".to_owned(),
        reason: error.into(),
    })?;
    print(&escape_formatting(&(json + "\n")))
}

/// A value as JSON on one line.
pub(super) fn json_line(value: &impl Serialize) -> Result<String, CliError> {
    let json = serde_json::to_string(value).map_err(|error| CliError::Write {
        place: "JSON".to_owned(),
        reason: error.into(),
    })?;
    Ok(escape_formatting(&json))
}

/// A JSON array that is printed element by element, a line each, so that a long one is
/// never held in memory.
pub(super) struct JsonArray {
    is_empty: bool,
}

impl JsonArray {
    pub fn new() -> Self {
        Self { is_empty: true }
    }

    pub fn push(&mut self, element: &impl Serialize) -> Result<(), CliError> {
        let lead = if self.is_empty { "[\n" } else { ",\n" };
        self.is_empty = false;
        let element = json_line(element)?;
        print(&format!("{lead}{element}"))
    }

    pub fn end(self) -> Result<(), CliError> {
        print(if self.is_empty { "[]\n" } else { "\n]\n" })
    }
}

/// A number of steps.
pub(super) fn step_count(count: usize) -> String {
    match count {
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    }
}

/// A value of `published` in words.
pub(super) fn published_state(published: i32) -> String {
    match published {
        0 => "hidden".to_owned(),
        1 => "published".to_owned(),
        other => format!("state {other}"),
    }
}
