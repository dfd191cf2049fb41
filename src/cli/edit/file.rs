//! The file that the editor gets.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use crate::cli::CliError;

/// The prefix of lines that say why a text was refused. They follow the text, so that tools can
/// read the JSON before them. No line of JSON begins with it.
const COMMENT: &str = "#";

/// A temporary file that only this user can read. It stays unless it is removed, so that no text is
/// lost.
pub(super) struct EditedFile {
    pub path: PathBuf,
    original: String,
    refusal: Option<Refusal>,
}

/// Why a text returns to the editor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The text must be corrected.
    Error,
    /// The text can be imported. The user agrees to it by deleting the comments.
    Conflict,
}

impl EditedFile {
    pub fn new(text: &str) -> Result<Self, CliError> {
        let create = || {
            let mut file = tempfile::Builder::new()
                .prefix("expertise-")
                .suffix(".json")
                .tempfile()?;
            file.write_all(text.as_bytes())?;
            Ok::<_, io::Error>(file.into_temp_path().keep()?)
        };
        Ok(Self {
            path: create().map_err(|reason| CliError::cannot_write("a temporary file", reason))?,
            original: text.to_owned(),
            refusal: None,
        })
    }

    /// The text without comments.
    pub fn read(&self) -> Result<String, CliError> {
        Ok(without_comments(&self.read_all()?))
    }

    /// The text with its comments.
    pub fn read_all(&self) -> Result<String, CliError> {
        let text = fs::read(&self.path).map_err(|reason| {
            CliError::Failed(format!("cannot read {}: {reason}", self.path.display()))
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Whether the text differs from the original.
    pub fn is_changed(&self, text: &str) -> bool {
        text.trim() != self.original.trim()
    }

    /// Why the edit ends, if the editor has left a refused text as it was. Both texts have comments.
    pub fn reason_to_stop(&self, before: &str, saved: &str) -> Option<&'static str> {
        let (is_same, reason) = match self.refusal? {
            Refusal::Error => (
                without_comments(saved) == without_comments(before),
                "the refused text was not corrected, so nothing was imported",
            ),
            Refusal::Conflict => (
                saved == before,
                "the conflict was not resolved, so nothing was imported",
            ),
        };
        is_same.then_some(reason)
    }

    /// Writes the text, followed by the reason as comments.
    pub fn refuse(&mut self, text: &str, refusal: Refusal, reason: &str) -> Result<(), CliError> {
        self.refusal = Some(refusal);
        let import =
            "The text has your side of each conflict. To import it as it is, delete these lines.";
        let stop = "Close the editor without a change to stop.";
        let import = (refusal == Refusal::Conflict).then_some(import);
        let comments = reason.lines().chain(import).chain([stop]);
        let comments: String = comments.map(|line| format!("{COMMENT} {line}\n")).collect();
        fs::write(&self.path, format!("{}\n\n{comments}", text.trim_end()))
            .map_err(|reason| CliError::cannot_write(&self.path.display().to_string(), reason))
    }

    /// Removes the comments, so that other commands can read the file.
    pub fn remove_comments(&self) {
        if let Ok(text) = self.read() {
            // If it fails, the file still has the text before the comments.
            let _ = fs::write(&self.path, text);
        }
    }

    pub fn remove(self) {
        let _ = fs::remove_file(self.path);
    }
}

/// A text without its comments. Earlier lines keep their numbers.
pub(super) fn without_comments(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    let lines = lines.map(|line| match line.starts_with(COMMENT) {
        true => "\n",
        false => line,
    });
    let lines: String = lines.collect();
    match lines == text {
        true => lines,
        false => lines.trim_end().to_owned() + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_removed_and_lines_keep_their_numbers() {
        for (text, read) in [
            ("{}\n", "{}\n"),
            ("{}\n\n# a\n# b\n", "{}\n"),
            ("{\n# a\n\"b\": \"# c\"}", "{\n\n\"b\": \"# c\"}\n"),
            ("{}\n\n# a\noops\n", "{}\n\n\noops\n"),
        ] {
            assert_eq!(without_comments(text), read);
        }
    }
}
