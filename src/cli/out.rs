//! Standard output.

use std::io::{self, Write};

use serde::Serialize;

use super::CliError;
pub(super) use crate::terminal::{escape_formatting, print_error, print_message, sanitize};

/// Prints to standard output, and fails where the text cannot be kept, as on a full
/// disk. A reader that has closed its end is no failure.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(reason) if reason.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Write {
            place: "to standard output".to_owned(),
            reason,
        }),
        Ok(()) | Err(_) => Ok(()),
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
        let element = serde_json::to_string(element).map_err(|error| CliError::Write {
            place: "JSON".to_owned(),
            reason: error.into(),
        })?;
        print(&escape_formatting(&format!("{lead}{element}")))
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
