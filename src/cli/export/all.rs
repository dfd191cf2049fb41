//! `expertise export --all`: every guide of the account, each in a file of its own. Managed
//! tasks are inside the guides that manage them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{ExportedFile, text, write};
use crate::{
    cli::{
        CliError,
        out::{JsonArray, print, print_error, sanitize},
        tasks, transfer,
    },
    client::Client,
    config::Format,
    proto::v1::{Task, TaskType},
};

/// The longest part of a file's name that is made of the guide's name.
const MAX_SLUG_BYTES: usize = 60;
const EXTENSION: &str = ".json";

/// Writes every guide into a directory, which is made if it is missing. A guide that
/// cannot be exported does not stop the others.
pub(super) async fn export_all(
    client: &Client,
    directory: &Path,
    full: bool,
    format: Format,
) -> Result<ExitCode, CliError> {
    let failure = |reason: io::Error| CliError::Write {
        place: directory.display().to_string(),
        reason,
    };
    if directory.is_file() {
        let reason = "it is a file: with --all, --out is a directory";
        return Err(failure(io::Error::other(reason)));
    }
    fs::create_dir_all(directory).map_err(failure)?;
    let earlier = documents_in(directory).map_err(failure)?;
    let tasks = tasks::list_all(client, Some(TaskType::Standard)).await?;
    let mut array = JsonArray::new();
    let mut failures = Vec::new();
    for task in &tasks {
        match export_task(client, task, directory, full, &earlier).await {
            Ok(exported) if format == Format::Text => print(&exported.text())?,
            Ok(exported) => array.push(&exported.json())?,
            // Nothing more can be written, either.
            Err(error @ CliError::Write { .. }) => return Err(error),
            Err(error) => {
                let (guid, name) = (&task.guid, sanitize(&task.name));
                failures.push(format!("failed {guid}: {name}: {error}"));
            }
        }
    }
    if format == Format::Json {
        array.end()?;
    }
    let written = tasks.len() - failures.len();
    print_error(&format!("{written} written, {} failed", failures.len()));
    failures.iter().for_each(|failure| print_error(failure));
    report_left_files(&earlier, &tasks);
    Ok(match failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Writes a guide, in place of the file that an earlier run wrote it to.
async fn export_task(
    client: &Client,
    task: &Task,
    directory: &Path,
    full: bool,
    earlier: &[PathBuf],
) -> Result<ExportedFile, CliError> {
    let guide = transfer::export_with_etag(client, &task.guid).await?;
    let file = directory.join(file_name(&task.name, &task.guid));
    write(&file, &text(&guide.document, full)?)?;
    let outdated = |path: &&PathBuf| guid_of(path) == Some(&task.guid) && **path != file;
    for path in earlier.iter().filter(outdated) {
        fs::remove_file(path).map_err(|reason| CliError::Write {
            place: path.display().to_string(),
            reason,
        })?;
    }
    Ok(ExportedFile::of(file, &guide))
}

/// Says which files of earlier runs are of guides that the account no longer has.
fn report_left_files(earlier: &[PathBuf], tasks: &[Task]) {
    let is_left = |path: &&PathBuf| {
        let guid = guid_of(path);
        guid.is_some_and(|guid| tasks.iter().all(|task| task.guid != *guid))
    };
    for path in earlier.iter().filter(is_left) {
        let path = sanitize(&path.display().to_string());
        print_error(&format!(
            "{path} is left as it is: the account has no such guide"
        ));
    }
}

fn documents_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| guid_of(path).is_some());
    Ok(paths)
}

/// The guid that ends the name of a file of an earlier run.
fn guid_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?;
    let start = name.len().checked_sub(uuid::fmt::Hyphenated::LENGTH)?;
    let guid = name.get(start..)?;
    uuid::Uuid::try_parse(guid).is_ok().then_some(guid)
}

/// Letters and digits of the name, and the guid, by which the file is found again when
/// the guide has another name.
fn file_name(name: &str, guid: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if slug.len() + c.len_utf8() > MAX_SLUG_BYTES {
            break;
        }
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    match slug.trim_end_matches('-') {
        "" => format!("{guid}{EXTENSION}"),
        slug => format!("{slug}-{guid}{EXTENSION}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d8";

    #[test]
    fn file_names_are_made_of_name_and_guid() {
        for (name, slug) in [
            ("Restart a laptop, safely!", "restart-a-laptop-safely-"),
            ("../../etc/passwd", "etc-passwd-"),
            ("Drücken Sie", "drücken-sie-"),
            ("…", ""),
        ] {
            let file = file_name(name, GUID);
            assert_eq!(file, format!("{slug}{GUID}.json"));
            assert_eq!(guid_of(Path::new(&file)), Some(GUID));
        }
        assert!(file_name(&"ß".repeat(200), GUID).len() < 255);
        assert_eq!(guid_of(Path::new("notes.json")), None);
    }
}
