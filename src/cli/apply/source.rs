//! The documents of a directory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    cli::{CliError, directory::document_files, out::sanitize, transfer},
    proto::v1::TaskDocument,
};

/// A document and the file that it is in.
pub(super) struct DocumentFile {
    pub file: PathBuf,
    pub text: String,
    pub document: TaskDocument,
}

/// Reads every `.json` file in a directory and below it. Hidden ones are left out, and
/// links to directories are not followed. The documents are in the order in which their
/// guides were created, those without an id first.
pub(super) fn read_directory(directory: &Path) -> Result<Vec<DocumentFile>, CliError> {
    if directory.is_file() {
        return Err(CliError::Invalid(format!(
            "{} is a file: apply takes a directory, and `expertise import` takes files",
            directory.display()
        )));
    }
    if !directory.exists() {
        return Err(CliError::Invalid(format!(
            "there is no directory {}: apply takes one of documents, as `expertise export --all \
             --out DIR` writes them",
            directory.display()
        )));
    }
    let files = document_files(directory)?;
    if files.is_empty() {
        let directory = directory.display();
        return Err(CliError::Invalid(format!(
            "{directory} has no .json files: nothing is applied"
        )));
    }
    let mut sources = Vec::with_capacity(files.len());
    let mut errors = Vec::new();
    for file in files {
        match transfer::read_text_and_document(&file) {
            Ok((text, document)) => sources.push(DocumentFile {
                file,
                text,
                document,
            }),
            Err(error) => errors.push(error.to_string()),
        }
    }
    if !errors.is_empty() {
        return Err(nothing_is_applied(errors));
    }
    check_ids(&sources)?;
    // The server's ids increase with time.
    sources.sort_by(|a, b| transfer::guid(&a.document).cmp(transfer::guid(&b.document)));
    Ok(sources)
}

/// The error of documents that keep the others from being applied.
pub(super) fn nothing_is_applied(errors: Vec<String>) -> CliError {
    CliError::Invalid(format!("nothing is applied: {}", errors.join("\n  ")))
}

/// Refuses two documents of one guide, of which the one would undo the other.
fn check_ids(sources: &[DocumentFile]) -> Result<(), CliError> {
    let mut files: BTreeMap<(&str, String), &Path> = BTreeMap::new();
    for DocumentFile { file, document, .. } in sources {
        let external_id = document.task.as_ref().and_then(|it| it.external_id.clone());
        let ids = [
            ("guid", transfer::guid(document).to_ascii_lowercase()),
            ("external_id", external_id.unwrap_or_default()),
        ];
        for (field, id) in ids.into_iter().filter(|(_, id)| !id.is_empty()) {
            let shown = sanitize(&id).to_string();
            if let Some(other) = files.insert((field, id), file) {
                return Err(nothing_is_applied(vec![format!(
                    "{} and {} are both of task {shown}: remove one, or its task.{field}",
                    other.display(),
                    file.display()
                )]));
            }
        }
    }
    Ok(())
}
