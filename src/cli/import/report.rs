//! The result of each file.

use std::{io, path::Path};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::json;
use uuid::Uuid;

use crate::{
    cli::{
        CliError,
        document::DocumentError,
        imported_guide::{ImportedGuide, outcome_name},
        out,
    },
    client::CallError,
    proto::v1::ImportOutcome,
};

/// A document that was imported.
pub struct ImportedFile {
    pub guide: ImportedGuide,
    pub etag: String,
    /// Another task with the name and product of a new one.
    pub namesake: Option<String>,
}

/// Why a document was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportFailure {
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("it is a directory: `expertise apply` takes directories")]
    Directory,
    #[error(
        "it is larger than {max_bytes} bytes: divide the guide, or raise --max-file-bytes and the \
         server's EXPERTISE_MAX_MESSAGE_BYTES"
    )]
    TooLarge { max_bytes: u64 },
    #[error(transparent)]
    Malformed(#[from] DocumentError),
    #[error("{0}")]
    CallFailed(CallError),
    #[error("interrupted: the server may still import it")]
    Interrupted,
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

    pub fn outcome(&self) -> Result<ImportOutcome, &ImportFailure> {
        self.result.as_ref().map(|imported| imported.guide.outcome)
    }

    /// The lines about a failure of this file.
    pub fn failure_text(&self, failure: &ImportFailure) -> String {
        format!("failed {}: {failure}", self.file)
    }

    /// Prints it for people: an import to standard output, a failure to standard error.
    /// A quiet run prints no imports. Files that were not tried are counted at the end.
    pub fn print(&self, run_id: Uuid, quiet: bool) -> Result<(), CliError> {
        let failure = match &self.result {
            Ok(_) if quiet => return Ok(()),
            Ok(imported) => {
                out::print(&imported.guide.text(&self.file, "", self.dry_run))?;
                if let Some(other) = &imported.namesake {
                    out::print_error(&self.namesake_warning(other));
                }
                return Ok(());
            }
            Err(ImportFailure::NotTried(_)) => return Ok(()),
            Err(failure) => failure,
        };
        out::print_error(&self.failure_text(failure));
        if let ImportFailure::CallFailed(error) = failure
            && error.undecided
        {
            out::print_error(&format!(
                "  the server may have imported it: to avoid a second copy, repeat with --request-id \
                 {run_id}"
            ));
        }
        Ok(())
    }

    fn namesake_warning(&self, other: &str) -> String {
        format!(
            "warning: {} has no task.guid, but the name and product of task {other}: each import of \
             it creates a task; set its task.guid to {other} to update that one",
            self.file
        )
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
                guide,
                etag,
                namesake,
            }) => {
                object.serialize_entry("outcome", outcome_name(guide.outcome))?;
                object.serialize_entry("etag", etag)?;
                if let Some(other) = namesake {
                    object.serialize_entry("same_name_as", other)?;
                }
                guide.serialize_into(self.dry_run, &mut object)?;
            }
            Err(failure) => {
                object.serialize_entry("outcome", "failed")?;
                match failure {
                    ImportFailure::CallFailed(refusal) => {
                        object.serialize_entry("error", refusal)?
                    }
                    ImportFailure::Malformed(DocumentError::Malformed(malformed)) => {
                        let error = json!({
                            "message": failure.to_string(),
                            "path": malformed.path,
                            "line": malformed.line,
                            "column": malformed.column,
                        });
                        object.serialize_entry("error", &error)?;
                    }
                    ImportFailure::Unreadable(_)
                    | ImportFailure::Directory
                    | ImportFailure::TooLarge { .. }
                    | ImportFailure::Malformed(DocumentError::Contract)
                    | ImportFailure::Interrupted
                    | ImportFailure::NotTried(_) => {
                        let message = json!({"message": failure.to_string()});
                        object.serialize_entry("error", &message)?;
                    }
                }
            }
        }
        object.end()
    }
}
