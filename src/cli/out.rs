//! Standard output.

use std::io::{self, Write};

use serde::Serialize;

use super::CliError;
pub(super) use crate::plain::{complain, plain, plain_json};

/// Writes to standard output; a reader that went away is no failure of ours.
pub fn say(text: &str) {
    let _ = write(text);
}

/// The same, where the text is what was asked for: one that cannot be kept, as on
/// a full disk, is a failure.
pub fn write(text: &str) -> Result<(), CliError> {
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

/// A JSON array that is written element by element, a line each, so that a long
/// one takes no room.
pub(super) struct Array {
    written: usize,
}

impl Array {
    pub fn begin() -> Self {
        Self { written: 0 }
    }

    pub fn push(&mut self, element: &impl Serialize) -> Result<(), CliError> {
        let lead = if self.written == 0 { "[\n" } else { ",\n" };
        self.written += 1;
        let element = serde_json::to_string(element).map_err(|error| CliError::Write {
            place: "JSON".to_owned(),
            reason: error.into(),
        })?;
        write(&plain_json(format!("{lead}{element}")))
    }

    pub fn end(self) -> Result<(), CliError> {
        write(if self.written == 0 { "[]\n" } else { "\n]\n" })
    }
}

/// So many steps.
pub(super) fn steps(count: usize) -> String {
    match count {
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    }
}

/// What a value of `published` means.
pub(super) fn state(published: i32) -> String {
    match published {
        0 => "hidden".to_owned(),
        1 => "published".to_owned(),
        other => format!("state {other}"),
    }
}
