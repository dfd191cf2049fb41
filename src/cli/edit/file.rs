//! The file that an editor changes. It stays unless it is removed, so that no text is lost.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use crate::cli::CliError;

/// The start of the lines that say why a text was refused. They stand behind the text, so that
/// tools read the JSON before them. No JSON has a line that starts so.
const COMMENT: &str = "#";

/// A file that only this user can read, in the directory for temporary files.
pub(super) struct EditedFile {
    path: PathBuf,
    original: String,
    is_refused: bool,
}

impl EditedFile {
    pub fn new(text: &str) -> Result<Self, CliError> {
        let create = || {
            let mut file = tempfile::Builder::new()
                .prefix("expertise-")
                .suffix(".json")
                .tempfile()?;
            file.write_all(text.as_bytes())?;
            Ok(file.into_temp_path().keep()?)
        };
        Ok(Self {
            path: create().map_err(|reason| CliError::Write {
                place: "a temporary file".to_owned(),
                reason,
            })?,
            original: text.to_owned(),
            is_refused: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text without comments.
    pub fn read(&self) -> Result<String, CliError> {
        let text = fs::read(&self.path).map_err(|reason| CliError::Read {
            place: self.path.display().to_string(),
            reason,
        })?;
        Ok(without_comments(&String::from_utf8_lossy(&text)))
    }

    /// Whether the text is another than at the start.
    pub fn is_changed(&self, text: &str) -> bool {
        text.trim() != self.original.trim()
    }

    /// Whether the text was refused before.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Writes the reason behind the text, as comments.
    pub fn refuse(&mut self, text: &str, reason: &str) -> Result<(), CliError> {
        self.is_refused = true;
        let help = "Close the editor without a change to stop.";
        let comments = reason.lines().chain([help]);
        let comments: String = comments.map(|line| format!("{COMMENT} {line}\n")).collect();
        let text = text.trim_end();
        self.write(&format!("{text}\n\n{comments}"))
            .map_err(|reason| CliError::Write {
                place: self.path.display().to_string(),
                reason,
            })
    }

    /// Removes the comments, so that other commands can read the file.
    pub fn remove_comments(&self) {
        if let Ok(text) = self.read() {
            // If it fails, the file has the text all the same, before the comments.
            let _ = self.write(&text);
        }
    }

    pub fn remove(self) {
        let _ = fs::remove_file(self.path);
    }

    fn write(&self, text: &str) -> io::Result<()> {
        fs::write(&self.path, text)
    }
}

/// A text without its comments. Lines before them keep their numbers.
fn without_comments(text: &str) -> String {
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
