//! `expertise import`.

mod report;

use std::{
    collections::HashMap,
    fs,
    io::{self, IsTerminal, Read},
    path::Path,
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use prost::Message;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::report::{Failure, Outcome, Report, Verdict};
use super::{
    CliError, document,
    out::{Array, complain},
};
use crate::{
    client::{Client, MESSAGE_MAX},
    config::{ImportArgs, Output},
    proto::v1::{ImportTaskRequest, TaskDocument, task_service_client::TaskServiceClient},
};

/// Takes each file in its turn, and goes on after one that fails.
pub(super) async fn import(
    client: &Client,
    import: &ImportArgs,
    output: Output,
) -> Result<ExitCode, CliError> {
    let run = import.request_id.map_or_else(Uuid::now_v7, |id| id.0);
    let progress = Progress::over(import.files.len());
    let mut tally = Tally::default();
    let mut taken = HashMap::new();
    let mut array = Array::begin();
    for file in &import.files {
        progress.begin(file);
        let outcome = match tally.stopped {
            Some(why) => Err(Failure::NotTried(why)),
            None => take(client, import, file, run, &mut taken).await,
        };
        let report = Report::new(file, outcome, import.dry_run);
        tally.count(&report);
        progress.suspend(|| match output {
            Output::Text => report.say(run),
            Output::Json => array.push(&report),
        })?;
        progress.end();
    }
    drop(progress);
    match output {
        Output::Text => tally.say(import.dry_run),
        Output::Json => array.end()?,
    }
    Ok(match tally.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

async fn take(
    client: &Client,
    import: &ImportArgs,
    file: &Path,
    run: Uuid,
    taken: &mut HashMap<Uuid, u32>,
) -> Result<Outcome, Failure> {
    let ImportArgs {
        files: _,
        as_new,
        absent_steps,
        dry_run,
        request_id: _,
    } = import;
    let text = read(file).map_err(Failure::Unreadable)?;
    let mut document =
        document::parse(&text).map_err(|fault| Failure::Malformed(fault.to_string()))?;
    drop(text);
    if *as_new && let Some(task) = &mut document.task {
        task.guid.clear();
    }
    let verdict = match names_a_task(&document) {
        true => Verdict::Updated,
        false => Verdict::Created,
    };
    let mut message = ImportTaskRequest {
        document: Some(document),
        absent_steps: i32::from(absent_steps.unwrap_or_default()),
        etag: String::new(),
        request_id: String::new(),
        validate_only: *dry_run,
    };
    let id = request_id(run, &message);
    let before = taken.entry(id).or_default();
    message.request_id = of_its_own(id, *before).to_string();
    *before += 1;
    let tasks =
        TaskServiceClient::new(client.channel.clone()).max_decoding_message_size(MESSAGE_MAX);
    let answer = client
        .call(message, |request| {
            let mut tasks = tasks.clone();
            async move { tasks.import_task(request).await }
        })
        .await
        .map_err(Failure::Refused)?;
    Ok(Outcome {
        verdict,
        task: answer.task.unwrap_or_default(),
        ignored_paths: answer.ignored_paths,
    })
}

fn names_a_task(document: &TaskDocument) -> bool {
    let task = document.task.as_ref();
    task.is_some_and(|task| !task.guid.is_empty())
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return fs::read(file);
    }
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    Ok(text)
}

/// Names what a run wants with a document: the same run and the same request have
/// the same name, so that a repetition is recognised, and a file that has been
/// mended since has another one.
fn request_id(run: Uuid, message: &ImportTaskRequest) -> Uuid {
    let mut digest = Sha256::new();
    digest.update(run.as_bytes());
    digest.update(message.encode_to_vec());
    named(digest)
}

/// Tells files of one run that say the same apart, by how many such were taken before.
fn of_its_own(id: Uuid, before: u32) -> Uuid {
    if before == 0 {
        return id;
    }
    let mut digest = Sha256::new();
    digest.update(id.as_bytes());
    digest.update(before.to_be_bytes());
    named(digest)
}

fn named(digest: Sha256) -> Uuid {
    let mut bytes = [0; 16];
    for (byte, of_digest) in bytes.iter_mut().zip(digest.finalize()) {
        *byte = of_digest;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[derive(Default)]
struct Tally {
    created: usize,
    updated: usize,
    failed: usize,
    files: usize,
    /// Why nothing more will be taken.
    stopped: Option<&'static str>,
}

impl Tally {
    fn count(&mut self, report: &Report) {
        self.files += 1;
        match report.outcome() {
            Ok(Verdict::Created) => self.created += 1,
            Ok(Verdict::Updated) => self.updated += 1,
            Err(failure) => {
                self.failed += 1;
                if let Failure::Refused(refusal) = failure {
                    self.stopped = match refusal {
                        _ if refusal.for_good => Some("the server takes nothing of this caller"),
                        // It was tried long enough.
                        _ if refusal.unreachable => Some("the server cannot be reached"),
                        _ => None,
                    };
                }
            }
        }
    }

    fn say(&self, dry_run: bool) {
        let Self {
            created,
            updated,
            failed,
            files,
            stopped: _,
        } = self;
        if *files > 1 {
            let to_be = if dry_run { "to be " } else { "" };
            complain(&format!(
                "{created} {to_be}created, {updated} {to_be}updated, {failed} failed"
            ));
        }
    }
}

/// A bar for people who watch many files.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn over(files: usize) -> Self {
        if files < 2 || !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(files as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self(Some(bar))
    }

    fn begin(&self, file: &Path) {
        if let Some(bar) = &self.0 {
            bar.set_message(super::out::plain(&file.display().to_string()));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }

    /// What is written while the bar is away.
    fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_has_the_name_of_the_first_and_nothing_else_has() {
        let run = Uuid::from_u128(1);
        let message = ImportTaskRequest::default();
        let name = request_id(run, &message);
        assert_eq!(request_id(run, &message), name);
        assert_eq!(of_its_own(name, 0), name);
        assert_ne!(of_its_own(name, 1), name);
        assert_ne!(of_its_own(name, 1), of_its_own(name, 2));
        assert_ne!(request_id(Uuid::from_u128(2), &message), name);
        let other = ImportTaskRequest {
            document: Some(TaskDocument::default()),
            ..message
        };
        assert_ne!(request_id(run, &other), name);
    }
}
