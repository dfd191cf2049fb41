//! The file that an editor changes. It stays unless it is removed, so that no text is lost.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use crate::cli::CliError;

/// The start of the lines above a refused text, which say why it was refused.
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

    /// Writes the reason above the text, as comments. Its line numbers count from the start of
    /// the text, and are raised to count from the start of the file.
    pub fn refuse(&mut self, text: &str, reason: &str) -> Result<(), CliError> {
        self.is_refused = true;
        let lines_above = reason.lines().count() + 1;
        let comments: String = reason
            .lines()
            .map(|line| format!("{COMMENT} {}\n", with_raised_line(line, lines_above)))
            .collect();
        let help = format!("{COMMENT} Leave the text as it is to give it up.\n");
        self.write(&format!("{comments}{help}{text}"))
            .map_err(|reason| CliError::Write {
                place: self.path.display().to_string(),
                reason,
            })
    }

    /// Removes the comments, so that other commands can read the file.
    pub fn remove_comments(&self) {
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

/// A line of a reason, with the line number in it raised: the one after `line ` at its start,
/// or else after its last ` at line `.
fn with_raised_line(text: &str, by: usize) -> String {
    const LINE: &str = "line ";
    const AT_LINE: &str = " at line ";
    let start = text.len() - text.trim_start().len();
    let number = match text.rfind(AT_LINE) {
        _ if text.trim_start().starts_with(LINE) => start + LINE.len(),
        Some(at) => at + AT_LINE.len(),
        None => return text.to_owned(),
    };
    let Some((before, from_number)) = text.split_at_checked(number) else {
        return text.to_owned();
    };
    let end = from_number.find(|c: char| !c.is_ascii_digit());
    let (digits, after) = from_number.split_at(end.unwrap_or(from_number.len()));
    match digits.parse::<usize>() {
        Ok(line) => format!("{before}{}{after}", line + by),
        Err(_) => text.to_owned(),
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
    fn only_the_number_of_the_line_is_raised() {
        for (text, raised) in [
            (
                "  line 7, step 2 \"line 3\": is required",
                "  line 10, step 2 \"line 3\": is required",
            ),
            (
                "line 7: task.name: is required",
                "line 10: task.name: is required",
            ),
            (
                "steps[1]: expected `,` at line 12, column 4",
                "steps[1]: expected `,` at line 15, column 4",
            ),
            (
                "task.guid must stay the same",
                "task.guid must stay the same",
            ),
        ] {
            assert_eq!(with_raised_line(text, 3), raised);
        }
    }

    #[test]
    fn comments_are_above_the_text_only() {
        assert_eq!(without_comments("# a\n#b\n{\n# c\n}"), "{\n# c\n}");
        assert_eq!(without_comments("{}\n"), "{}\n");
        assert_eq!(without_comments("# a"), "");
    }
}
