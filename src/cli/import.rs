//! `expertise import`.

mod report;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IsTerminal, Read},
    path::Path,
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use prost::Message;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub(super) use self::report::ImportFailure;
use self::report::{FileReport, ImportKind, ImportedFile};
use super::{
    CliError, document,
    out::{JsonArray, print_error, sanitize},
};
use crate::{
    client::Client,
    config::{Format, ImportArgs},
    proto::v1::{ImportTaskRequest, TaskDocument},
};

/// Imports each file in turn, and continues after one that fails.
pub(super) async fn import(
    client: &Client,
    import: &ImportArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let run_id = import.request_id.map_or_else(Uuid::now_v7, |id| id.0);
    let progress = ImportProgress::new(import.files.len());
    let mut counts = ImportCounts::default();
    let mut sent_counts = HashMap::new();
    let mut array = JsonArray::new();
    for file in &import.files {
        progress.show(file);
        let result = match counts.stopped {
            Some(reason) => Err(ImportFailure::NotTried(reason)),
            None => import_file(client, import, file, run_id, &mut sent_counts).await,
        };
        let report = FileReport::new(file, result, import.dry_run);
        counts.add(&report);
        progress.suspend(|| match format {
            Format::Text => report.print(run_id),
            Format::Json => array.push(&report),
        })?;
        progress.inc();
    }
    drop(progress);
    match format {
        Format::Text => counts.print(import.dry_run),
        Format::Json => array.end()?,
    }
    Ok(match counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Imports a file. `sent_counts` has the number of requests of this run for each content.
async fn import_file(
    client: &Client,
    import: &ImportArgs,
    file: &Path,
    run_id: Uuid,
    sent_counts: &mut HashMap<Uuid, u32>,
) -> Result<ImportedFile, ImportFailure> {
    let ImportArgs {
        files: _,
        as_new,
        absent_steps,
        dry_run,
        max_file_bytes,
        request_id: _,
    } = import;
    let text = read(file, *max_file_bytes)?;
    let mut document =
        document::parse(&text).map_err(|error| ImportFailure::Malformed(error.to_string()))?;
    drop(text);
    if *as_new && let Some(task) = &mut document.task {
        task.guid.clear();
    }
    let kind = match names_a_task(&document) {
        true => ImportKind::Updated,
        false => ImportKind::Created,
    };
    let mut message = ImportTaskRequest {
        document: Some(document),
        absent_steps: i32::from(absent_steps.unwrap_or_default()),
        etag: String::new(),
        request_id: String::new(),
        validate_only: *dry_run,
    };
    let id = request_id(run_id, &message);
    let sent = sent_counts.entry(id).or_default();
    message.request_id = repeated_request_id(id, *sent).to_string();
    *sent += 1;
    let answer = client
        .call(message, |mut tasks, request| async move {
            tasks.import_task(request).await
        })
        .await
        .map_err(ImportFailure::Refused)?;
    Ok(ImportedFile {
        kind,
        task: answer.task.unwrap_or_default(),
        ignored_paths: answer.ignored_paths,
    })
}

fn names_a_task(document: &TaskDocument) -> bool {
    let task = document.task.as_ref();
    task.is_some_and(|task| !task.guid.is_empty())
}

/// Reads a file or standard input. No more of a larger one is read than shows that it is.
pub(super) fn read(file: &Path, max_bytes: u64) -> Result<Vec<u8>, ImportFailure> {
    let input: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(file).map_err(ImportFailure::Unreadable)?),
    };
    let mut text = Vec::new();
    let read = input.take(max_bytes + 1).read_to_end(&mut text);
    match read.map_err(ImportFailure::Unreadable)? as u64 {
        bytes if bytes > max_bytes => Err(ImportFailure::TooLarge { max_bytes }),
        _ => Ok(text),
    }
}

/// The request id of a message in a run. The same message gets the same id when the run
/// is repeated; a corrected file gets another one.
fn request_id(run_id: Uuid, message: &ImportTaskRequest) -> Uuid {
    hashed_id(&[run_id.as_bytes(), &message.encode_to_vec()])
}

/// The request id of a message that was sent `sent` times before in the run. Files with
/// equal content get different ids, so each becomes a task.
fn repeated_request_id(id: Uuid, sent: u32) -> Uuid {
    match sent {
        0 => id,
        sent => hashed_id(&[id.as_bytes(), &sent.to_be_bytes()]),
    }
}

fn hashed_id(parts: &[&[u8]]) -> Uuid {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    let mut bytes = [0; 16];
    for (byte, hashed) in bytes.iter_mut().zip(digest.finalize()) {
        *byte = hashed;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[derive(Default)]
struct ImportCounts {
    created: usize,
    updated: usize,
    failed: usize,
    /// Why the remaining files are not tried.
    stopped: Option<&'static str>,
}

impl ImportCounts {
    fn add(&mut self, report: &FileReport) {
        match report.kind() {
            Ok(ImportKind::Created) => self.created += 1,
            Ok(ImportKind::Updated) => self.updated += 1,
            Err(failure) => {
                self.failed += 1;
                match failure {
                    ImportFailure::Refused(error) if error.caller_refused => {
                        self.stopped = Some("the server refuses the calls of this caller");
                    }
                    // The client has already retried; other files would fail too.
                    ImportFailure::Refused(error) if error.unreachable => {
                        self.stopped = Some("the server cannot be reached");
                    }
                    ImportFailure::Refused(_)
                    | ImportFailure::Unreadable(_)
                    | ImportFailure::TooLarge { .. }
                    | ImportFailure::Malformed(_)
                    | ImportFailure::NotTried(_) => {}
                }
            }
        }
    }

    fn print(&self, dry_run: bool) {
        let Self {
            created,
            updated,
            failed,
            stopped: _,
        } = self;
        if created + updated + failed > 1 {
            let to_be = if dry_run { "to be " } else { "" };
            print_error(&format!(
                "{created} {to_be}created, {updated} {to_be}updated, {failed} failed"
            ));
        }
    }
}

/// A progress bar on a terminal, when there are several files.
struct ImportProgress(ProgressBar);

impl ImportProgress {
    fn new(files: usize) -> Self {
        if files < 2 || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(files as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, file: &Path) {
        self.0.set_message(sanitize(&file.display().to_string()));
    }

    fn inc(&self) {
        self.0.inc(1);
    }

    /// Prints while the bar is hidden.
    fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for ImportProgress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
