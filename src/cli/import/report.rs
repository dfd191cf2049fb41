//! The result of each file.

use std::{io, path::Path};

use serde::{Serialize, Serializer, ser::SerializeMap};
use uuid::Uuid;

use crate::{
    cli::{CliError, out},
    client::CallError,
    proto::v1::Task,
};

/// Whether an import made a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// It made one.
    Created,
    /// It updated the task that the document names.
    Updated,
}

/// A document that was imported.
pub struct ImportedFile {
    pub kind: ImportKind,
    pub task: Task,
    /// Read-only fields of the document, which were ignored.
    pub ignored_paths: Vec<String>,
}

/// Why a document was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportFailure {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error(
        "it is larger than {max_bytes} bytes: divide the guide, or raise --max-file-bytes and the \
         server's EXPERTISE_MAX_MESSAGE_BYTES"
    )]
    TooLarge { max_bytes: u64 },
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Refused(CallError),
    #[error("not tried, as {0}")]
    NotTried(&'static str),
}

/// The result of a file.
pub struct FileReport {
    file: String,
    result: Result<ImportedFile, ImportFailure>,
    dry_run: bool,
}

impl FileReport {
    pub fn new(file: &Path, result: Result<ImportedFile, ImportFailure>, dry_run: bool) -> Self {
        Self {
            dry_run,
            file: out::sanitize(&file.display().to_string()),
            result,
        }
    }

    pub fn kind(&self) -> Result<ImportKind, &ImportFailure> {
        self.result.as_ref().map(|imported| imported.kind)
    }

    /// Prints it for people: an import to standard output, a failure to standard error.
    pub fn print(&self, run: Uuid) -> Result<(), CliError> {
        let failure = match &self.result {
            Ok(imported) => return out::print(&self.success(imported)),
            Err(failure) => failure,
        };
        out::print_error(&format!("failed {}: {failure}", self.file));
        if let ImportFailure::Refused(error) = failure
            && error.undecided
        {
            out::print_error(&format!(
                "  it may be imported all the same: so that it is not imported twice, repeat with \
                 --request-id {run}"
            ));
        }
        Ok(())
    }

    fn success(&self, imported: &ImportedFile) -> String {
        let ImportedFile {
            kind,
            task,
            ignored_paths,
        } = imported;
        let file = &self.file;
        let done = match (kind, self.dry_run) {
            (ImportKind::Created, false) => format!("created {} from {file}", task.guid),
            (ImportKind::Updated, false) => format!("updated {} from {file}", task.guid),
            (ImportKind::Created, true) => format!("would create a task from {file}"),
            (ImportKind::Updated, true) => format!("would update {} from {file}", task.guid),
        };
        let (name, steps) = (out::sanitize(&task.name), out::step_count(task.steps.len()));
        let mut text = format!("{done}: {name}, {steps}\n");
        for path in ignored_paths {
            text.push_str(&format!("  ignored: {}\n", out::sanitize(path)));
        }
        text
    }
}

impl Serialize for FileReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("file", &self.file)?;
        if self.dry_run {
            object.serialize_entry("dry_run", &true)?;
        }
        match &self.result {
            Ok(ImportedFile {
                kind,
                task,
                ignored_paths,
            }) => {
                let outcome = match kind {
                    ImportKind::Created => "created",
                    ImportKind::Updated => "updated",
                };
                object.serialize_entry("outcome", outcome)?;
                // A task that a dry run would create has no guid yet.
                if !self.dry_run || *kind == ImportKind::Updated {
                    object.serialize_entry("guid", &task.guid)?;
                }
                object.serialize_entry("name", &task.name)?;
                object.serialize_entry("steps", &task.steps.len())?;
                object.serialize_entry("etag", &task.etag)?;
                object.serialize_entry("ignored_paths", ignored_paths)?;
            }
            Err(failure) => {
                object.serialize_entry("outcome", "failed")?;
                match failure {
                    ImportFailure::Refused(refusal) => object.serialize_entry("error", refusal)?,
                    ImportFailure::Unreadable(_)
                    | ImportFailure::TooLarge { .. }
                    | ImportFailure::Malformed(_)
                    | ImportFailure::NotTried(_) => {
                        let message = serde_json::json!({"message": failure.to_string()});
                        object.serialize_entry("error", &message)?;
                    }
                }
            }
        }
        object.end()
    }
}
