//! Asks the user at the terminal.

use std::io::{self, IsTerminal, Write};

use super::CliError;

/// Fails with this message without a terminal.
pub(super) fn require_terminal(message: &'static str) -> Result<(), CliError> {
    match is_terminal() {
        true => Ok(()),
        false => Err(CliError::Argument(message.to_owned())),
    }
}

/// Printed when the user does not confirm a deletion.
pub(super) const NOTHING_DELETED: &str = "Nothing was deleted.";

/// Whether the user can be asked.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, which only `y` or `yes` confirms.
pub(super) fn agrees(question: &str) -> bool {
    let answer = ask(&format!("{question} [y/N] "));
    matches!(answer.as_str(), "y" | "yes")
}

/// Asks a question. The answer is in lower case; empty if there is none.
pub(super) fn ask(question: &str) -> String {
    let mut error = io::stderr();
    let _ = write!(error, "{question}").and_then(|()| error.flush());
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    answer.trim().to_lowercase()
}
