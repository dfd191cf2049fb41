//! `expertise export`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::{Value, json};

use super::{
    CliError, Format,
    apply::ids,
    document,
    file_records::FileRecorder,
    guide_file::{GuideFile, files_in},
    guide_ref::GuideRef,
    guides::{self, StoredGuide},
    out::{self, Results, print_error, sanitize, step_count},
};
use crate::{
    client::Client,
    files,
    messages::authored::authored,
    proto::v1::{ListTasksRequest, Task, TaskDocument, TaskType},
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExportArgs {
    /// The guid or unique name of a task, with @ and a number or alias for a revision
    #[arg(
        value_name = "GUIDE[@REVISION]",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub guide: Option<GuideRef>,
    /// Export every guide of the account to its own file
    #[arg(long, requires = "out")]
    pub all: bool,
    /// The file to write, - for standard output; with --all, the directory [default: standard output]
    #[arg(short, long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Include the fields that the system sets: etags, times, and the fields of the index
    #[arg(long)]
    pub full: bool,
}

/// The maximum number of characters of the guide's name in a file name.
const MAX_SLUG_BYTES: usize = 60;

/// Writes a guide, or every guide of the account, as documents whose import changes nothing.
pub(super) async fn export(
    client: &Client,
    args: &ExportArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let guide = match (&args.guide, &args.out) {
        (Some(guide), _) => guide,
        (None, Some(directory)) => return export_all(client, directory, args.full, format).await,
        // The command line requires a task, or `--all` with a directory.
        (None, None) => return Ok(ExitCode::FAILURE),
    };
    let guide = guides::find_guide(client, guide)
        .await?
        .read(client)
        .await?;
    match args.out.as_deref() {
        Some(file) if file != Path::new("-") => {
            let existing = GuideFile::read(file).ok();
            let tasks = match existing {
                Some(_) => guides::list(client, ListTasksRequest::default()).await?,
                None => Vec::new(),
            };
            write_guide(client, file, existing.as_ref(), &guide, &tasks, args.full).await?;
            let guid = guides::guid(&guide.document);
            FileRecorder::default().record(client, guid, file, &guide);
            out::print_either(format, &text(file, &guide), &json(file, &guide))?;
        }
        _ => out::print(&whole_text(&guide.document, args.full))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a guide to a file. An existing file of the guide keeps its format, and only changes the
/// values that differ.
async fn write_guide(
    client: &Client,
    path: &Path,
    existing: Option<&GuideFile>,
    guide: &StoredGuide,
    tasks: &[Task],
    full: bool,
) -> Result<(), CliError> {
    let text = match existing {
        Some(file) if !full => match planned(client, file, guide, tasks).await {
            Some(planned) => file.updated(&planned, &guide.document),
            None => whole_text(&guide.document, full),
        },
        _ => whole_text(&guide.document, full),
    };
    write(path, &text)
}

/// The document in a file of this guide, in the form of the server; `None` if it is not of this
/// guide.
async fn planned(
    client: &Client,
    file: &GuideFile,
    guide: &StoredGuide,
    tasks: &[Task],
) -> Option<TaskDocument> {
    if !ids::describes(&file.document, guide.document.task.as_ref()?) {
        return None;
    }
    let guid = guides::guid(&guide.document);
    // The written state may be a revision, but the file is compared with the stored guide.
    let stored = guides::read(client, guid).await.ok()?;
    let mut document = file.document.clone();
    let mut ids = ids::TaskIds::from_external_ids(tasks);
    ids.adopt(&mut document, &stored.document, None);
    ids.resolve(&mut document);
    let message = guides::whole_import(document, "");
    guides::dry_run(client, message).await.ok()?.document
}

/// The fields that authors write, or the whole document with `full`.
fn whole_text(document: &TaskDocument, full: bool) -> String {
    match full {
        true => document::text(document),
        false => document::text(&authored(document)),
    }
}

pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    files::replace(file, text)
        .map_err(|reason| CliError::cannot_write(&file.display().to_string(), reason))
}

fn text(file: &Path, guide: &StoredGuide) -> String {
    let name = sanitize(guides::name(&guide.document));
    let steps = step_count(guide.document.steps.len());
    format!(
        "wrote {}: {name}, {steps}\n",
        sanitize(&file.display().to_string())
    )
}

fn json(file: &Path, guide: &StoredGuide) -> Value {
    json!({
        "file": file.display().to_string(),
        "guid": guides::guid(&guide.document),
        "name": guides::name(&guide.document),
        "steps": guide.document.steps.len(),
        "guide_etag": guide.guide_etag,
    })
}

/// Writes every guide into a directory, to its existing file or to a new one. Creates the directory
/// if it is missing. A guide that cannot be exported does not stop the others.
async fn export_all(
    client: &Client,
    directory: &Path,
    full: bool,
    format: Format,
) -> Result<ExitCode, CliError> {
    let place = directory.display().to_string();
    if directory.exists() && !directory.is_dir() {
        let reason = "it is not a directory: with --all, --out must be a directory";
        return Err(CliError::cannot_write(&place, io::Error::other(reason)));
    }
    fs::create_dir_all(directory).map_err(|reason| CliError::cannot_write(&place, reason))?;
    let (mut existing, mut unreadable) = (Vec::new(), Vec::new());
    for path in files_in(directory)? {
        match GuideFile::read(&path) {
            Ok(file) => existing.push(file),
            Err(error) => {
                print_error(&format!("not changed: {error}"));
                unreadable.push(path);
            }
        }
    }
    let filters = ListTasksRequest {
        r#type: Some(TaskType::Standard.into()),
        ..ListTasksRequest::default()
    };
    let tasks = guides::list(client, filters).await?;
    let mut results = Results::new(format);
    let mut recorder = FileRecorder::default();
    for task in &tasks {
        let file = existing
            .iter()
            .position(|file| ids::describes(&file.document, task))
            .map(|index| existing.remove(index));
        let path = match &file {
            Some(file) => file.path.clone(),
            None => directory.join(file_name(task)),
        };
        let written = async {
            if unreadable.contains(&path) {
                let path = path.display();
                let text = format!("{path} is not a guide: correct or remove it first");
                return Err(CliError::Failed(text));
            }
            let guide = guides::read(client, &task.guid).await?;
            write_guide(client, &path, file.as_ref(), &guide, &tasks, full).await?;
            Ok::<_, CliError>(guide)
        };
        match written.await {
            Ok(guide) => {
                recorder.record(client, &task.guid, &path, &guide);
                results.add(&text(&path, &guide), &json(&path, &guide))?;
            }
            Err(error) => {
                let (guid, name) = (&task.guid, sanitize(&task.name));
                let text = format!("failed {guid}: {name}: {error}");
                let json = json!({"guid": guid, "error": out::error_json(&error)});
                results.add_failure(&text, &json)?;
            }
        }
    }
    for file in existing {
        let path = sanitize(&file.path.display().to_string());
        let is_known = tasks.iter().any(|it| ids::describes(&file.document, it));
        let why = match is_known {
            true => "another file describes the same guide",
            false => "the account has no such guide",
        };
        print_error(&format!("{path} was not changed: {why}"));
    }
    let failed = results.failed();
    let summary = format!("{} written, {failed} failed", tasks.len() - failed);
    results.end(Some(&summary))
}

/// The letters and digits of the name, and the guid, because names are not unique.
fn file_name(task: &Task) -> PathBuf {
    let mut slug = String::new();
    for c in task.name.chars().flat_map(char::to_lowercase) {
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
        "" => format!("{}.json", task.guid),
        slug => format!("{slug}-{}.json", task.guid),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_made_of_name_and_guid() {
        for (name, file) in [
            (
                "Restart a laptop, safely!",
                "restart-a-laptop-safely-1.json",
            ),
            ("../../etc/passwd", "etc-passwd-1.json"),
            ("Drücken Sie", "drücken-sie-1.json"),
            ("…", "1.json"),
        ] {
            let task = Task {
                guid: "1".to_owned(),
                name: name.to_owned(),
                ..Task::default()
            };
            assert_eq!(file_name(&task), PathBuf::from(file));
        }
    }
}
