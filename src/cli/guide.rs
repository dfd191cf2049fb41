//! The guide that a command is about: a stored task, or a document in a file.

use std::path::Path;

use super::{
    CliError, document,
    import::{ImportFailure, read},
};
use crate::{config::GuideArg, proto::v1::TaskDocument};

/// The largest document that is read: what a server takes by default.
const DOCUMENT_BYTES_MAX: u64 = 75_497_472;

/// Reads the document in a file.
pub(super) fn read_document(file: &Path) -> Result<TaskDocument, CliError> {
    let text = read(file, DOCUMENT_BYTES_MAX).map_err(|failure| match failure {
        ImportFailure::TooLarge { max_bytes } => {
            CliError::Invalid(format!("it is larger than {max_bytes} bytes"))
        }
        failure => CliError::Invalid(failure.to_string()),
    })?;
    Ok(document::parse(&text)?)
}

/// A guide as the command line has it.
pub(super) fn name(guide: &GuideArg) -> String {
    match guide {
        GuideArg::Task(task) => task.to_string(),
        GuideArg::File(file) => file.display().to_string(),
    }
}
