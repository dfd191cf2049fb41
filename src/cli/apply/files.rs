//! The files that are applied.

use std::path::PathBuf;

use crate::cli::{
    CliError,
    guide_file::{FilesByTask, GuideFile, files_in},
    guides,
};

/// Reads the files, and every `.json` file in the directories. Files without an id come first, then
/// the others in the order in which their guides were created.
pub(super) fn read_files(paths: &[PathBuf]) -> Result<Vec<GuideFile>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(CliError::Failed(format!(
                "there is no directory or file {}: apply takes documents that `expertise export \
                 --all --out DIR` wrote",
                path.display()
            )));
        }
        files.extend(files_in(path)?);
    }
    if files.is_empty() {
        let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
        let paths = paths.join(", ");
        return Err(CliError::Failed(format!(
            "{paths} has no .json files: nothing is applied"
        )));
    }
    let mut read = Vec::with_capacity(files.len());
    let mut errors = Vec::new();
    for file in files {
        match GuideFile::read(&file) {
            Ok(file) => read.push(file),
            Err(error) => errors.push(error.to_string()),
        }
    }
    let mut known = FilesByTask::default();
    for file in &read {
        let task = file.document.task.clone().unwrap_or_default();
        if task.guid.is_empty() && task.external_id().is_empty() {
            let name = file.path.file_stem().unwrap_or_default().to_string_lossy();
            errors.push(format!(
                "{}: it has no task.guid and no task.external_id, so a later run could not find \
                 its guide: add \"external_id\": {name:?} to its task",
                file.path.display()
            ));
        }
        errors.extend(known.add(file).err());
    }
    if !errors.is_empty() {
        let errors = errors.join("\n  ");
        return Err(CliError::Failed(format!("nothing is applied: {errors}")));
    }
    // The server's ids increase with time.
    read.sort_by(|a, b| guides::guid(&a.document).cmp(guides::guid(&b.document)));
    Ok(read)
}
