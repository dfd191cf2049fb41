//! The file that an editor changes. It stays unless it is removed, so that no text is lost.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use crate::cli::CliError;

/// Begins a line above the text that says why it was refused.
const COMMENT: &str = "#";

/// A file that only this user can read, in the directory for temporary files.
pub(super) struct EditedFile {
    path: PathBuf,
    original: String,
    is_refused: bool,
}

impl EditedFile {
    pub fn new(text: &str) -> Result<Self, CliError> {
        let written = || {
            let mut file = tempfile::Builder::new()
                .prefix("expertise-")
                .suffix(".json")
                .tempfile()?;
            file.write_all(text.as_bytes())?;
            Ok(file.into_temp_path().keep()?)
        };
        Ok(Self {
            path: written().map_err(|reason| CliError::Write {
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

    /// The text without the comments above it.
    pub fn read(&self) -> Result<String, CliError> {
        let text = fs::read(&self.path).map_err(|reason| CliError::Read {
            place: self.path.display().to_string(),
            reason,
        })?;
        Ok(without_comments(&String::from_utf8_lossy(&text)).to_owned())
    }

    /// Whether the text is another than at the start.
    pub fn is_changed(&self, text: &str) -> bool {
        text.trim() != self.original.trim()
    }

    /// Whether the text was refused before.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Puts the reason above the text.
    pub fn refuse(&mut self, text: &str, reason: &str) -> Result<(), CliError> {
        self.is_refused = true;
        let comments: String = reason
            .lines()
            .map(|it| format!("{COMMENT} {it}\n"))
            .collect();
        let help = format!(
            "{COMMENT} Lines are counted from the first one below. Leave the text as it is to give \
             it up.\n"
        );
        self.write(&format!("{comments}{help}{text}"))
            .map_err(|reason| CliError::Write {
                place: self.path.display().to_string(),
                reason,
            })
    }

    /// Leaves the file as a document that other commands read.
    pub fn keep(&self) {
        if let Ok(text) = self.read() {
            // If it fails, the file has the text all the same, below the comments.
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

fn without_comments(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with(COMMENT) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_above_the_text_only() {
        assert_eq!(without_comments("# a\n#b\n{\n# c\n}"), "{\n# c\n}");
        assert_eq!(without_comments("{}\n"), "{}\n");
        assert_eq!(without_comments("# a"), "");
    }
}
