//! The files of documents in a directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::CliError;

/// The `.json` files in a directory and below it, sorted. Hidden ones are left out, and links to
/// directories are not followed.
pub(super) fn document_files(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    find_files(directory, &mut files)?;
    files.sort();
    Ok(files)
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
