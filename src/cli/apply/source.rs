//! The documents of a directory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    cli::{CliError, transfer},
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
    let mut files = Vec::new();
    find_files(directory, &mut files)?;
    if files.is_empty() {
        let directory = directory.display();
        return Err(CliError::Invalid(format!(
            "{directory} has no .json files: nothing is applied"
        )));
    }
    files.sort();
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

fn find_files(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    for entry in fs::read_dir(directory).map_err(|error| unreadable(directory, error))? {
        let entry = entry.map_err(|error| unreadable(directory, error))?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let file_type = entry.file_type();
        let file_type = file_type.map_err(|error| unreadable(&path, error))?;
        if file_type.is_dir() {
            find_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, reason: io::Error) -> CliError {
    CliError::Read {
        place: path.display().to_string(),
        reason,
    }
}

/// Refuses two documents of one guide, of which the one would undo the other.
fn check_ids(sources: &[DocumentFile]) -> Result<(), CliError> {
    let mut files: BTreeMap<String, &Path> = BTreeMap::new();
    for DocumentFile { file, document, .. } in sources {
        let guid = transfer::guid(document).to_ascii_lowercase();
        if guid.is_empty() {
            continue;
        }
        if let Some(other) = files.insert(guid.clone(), file) {
            return Err(nothing_is_applied(vec![format!(
                "{} and {} are both of task {guid}: remove one, or its task.guid",
                other.display(),
                file.display()
            )]));
        }
    }
    Ok(())
}
