//! `expertise import`.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use prost::Message;
use serde_json::json;
use uuid::Uuid;

use super::{
    CliError, Format,
    findings::{Analyzed, Findings},
    guide_file::GuideFile,
    guides,
    imported::{ImportedGuide, OutcomeCounts},
    out::{self, Results, print_error, sanitize},
    pairing::{Locking, lock_changed, refuse_fixed_fields},
    place,
    signals::Interrupts,
};
use crate::{
    client::Client,
    config::{DEFAULT_MAX_MESSAGE_BYTES, value},
    domain::{ids::RequestId, sha256::Sha256},
    proto::v1::{
        AbsentFields, AbsentSteps, ImportOutcome, ImportTaskRequest, ListTasksRequest, Step, Task,
        TaskType,
    },
};

#[derive(Clone, Debug, PartialEq, Args)]
pub struct ImportArgs {
    /// Documents, such as those that `export` writes or in examples/guides; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Create new tasks, ignoring task.guid and task.external_id of the documents
    #[arg(long)]
    pub as_new: bool,
    /// What to do with stored steps that the document leaves out [default: refuse the document]
    #[arg(long, ignore_case = true)]
    pub absent_steps: Option<AbsentSteps>,
    /// Import only if the guide has this etag, which `export --format json` prints; for a single file. If the document has only an external ID, a missing guide is created
    #[arg(
        long,
        value_name = "GUIDE_ETAG",
        value_parser = value::text,
        // Every 64th etag begins with a hyphen.
        allow_hyphen_values = true,
        conflicts_with = "as_new"
    )]
    pub if_unchanged: Option<String>,
    /// Do not lock translations that the documents change
    #[arg(long)]
    pub keep_unlocked: bool,
    /// Check everything without storing anything
    #[arg(long)]
    pub dry_run: bool,
    /// The maximum size of a file, 1 to 2147483647; the server also limits it with its EXPERTISE_MAX_MESSAGE_BYTES
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = DEFAULT_MAX_MESSAGE_BYTES.into(),
        value_parser = value::number::<u64>(1..=2_147_483_647)
    )]
    pub max_file_bytes: u64,
    /// The ID of the run: repeating a run with its ID within a day imports nothing twice [default: a new ID]
    #[arg(long, value_parser = value::request_id)]
    pub request_id: Option<RequestId>,
    /// Print only failures and counts
    #[arg(short, long)]
    pub quiet: bool,
}

/// Fails if an etag is given for several guides.
pub(super) fn check(args: &ImportArgs) -> Result<(), CliError> {
    match args.if_unchanged.is_some() && args.files.len() != 1 {
        true => Err(CliError::Argument(
            "--if-unchanged takes the etag of one guide: import a single file".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Imports each file in turn, and continues after a failure. Ctrl-C ends the run after the current
/// file.
pub(super) async fn import(
    client: &Client,
    args: &ImportArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let mut run = ImportRun {
        client,
        args,
        id: args.request_id.map_or_else(Uuid::now_v7, |id| id.0),
        sent_counts: HashMap::new(),
        results: Results::new(format),
        counts: OutcomeCounts::default(),
        skipped: 0,
        stopped: None,
        is_undecided: false,
    };
    let mut interrupts = Interrupts::listen()?;
    let mut interrupted_after = None;
    for (done, file) in args.files.iter().enumerate() {
        if interrupts.was_interrupted() {
            interrupted_after = Some(done);
            break;
        }
        if let Some(reason) = run.stopped {
            run.skip(file, reason)?;
            continue;
        }
        let imported = interrupts.run_until_second_signal(run.import_file(file));
        match imported.await {
            Some(Ok(imported)) => run.add(&imported)?,
            Some(Err(error)) => run.add_failure(file, &error)?,
            None => {
                run.is_undecided = true;
                let error = "interrupted: the server may still import it".to_owned();
                run.add_failure(file, &CliError::Failed(error))?;
            }
        }
    }
    run.end(interrupted_after)
}

struct ImportRun<'a> {
    client: &'a Client,
    args: &'a ImportArgs,
    /// If the run is repeated with this id, the same document gets the same request id.
    id: Uuid,
    /// The number of requests so far for each content.
    sent_counts: HashMap<Uuid, u32>,
    results: Results,
    counts: OutcomeCounts,
    /// How many files are not tried.
    skipped: usize,
    /// Why the remaining files are not tried.
    stopped: Option<&'static str>,
    /// Whether a failed file may have been imported nevertheless.
    is_undecided: bool,
}

impl ImportRun<'_> {
    async fn import_file(&mut self, path: &Path) -> Result<ImportedGuide, CliError> {
        let (client, args) = (self.client, self.args);
        let (path, max_bytes) = (path.to_owned(), args.max_file_bytes);
        // Signals are handled meanwhile, because standard input may be slow.
        let read = tokio::task::spawn_blocking(move || GuideFile::read_up_to(&path, max_bytes));
        let file = read.await.map_err(|error| error.to_string()).flatten();
        let file = file.map_err(CliError::Failed)?;
        let mut document = file.document.clone();
        let mut stored = None;
        if args.as_new {
            guides::clear_guid(&mut document);
            if let Some(task) = &mut document.task {
                task.external_id = None;
            }
        } else {
            stored = guides::read_imported(client, &document).await?;
        }
        let mut notes = Vec::new();
        if let Some(stored) = &stored {
            refuse_fixed_fields(&document, &stored.document)?;
            let locking = Locking {
                keep_unlocked: args.keep_unlocked,
                may_unlock: false,
            };
            notes = lock_changed(&mut document, &stored.document, locking);
        }
        let mut message = ImportTaskRequest {
            document: Some(document),
            absent_steps: i32::from(args.absent_steps.unwrap_or_default()),
            validate_only: args.dry_run,
            absent_fields: AbsentFields::Keep.into(),
            guide_etag: args.if_unchanged.clone().unwrap_or_default(),
            match_external_ids: !args.as_new,
            ..ImportTaskRequest::default()
        };
        let request_id = self.request_id(&message);
        if !args.dry_run {
            message.request_id = request_id.to_string();
        }
        let answer = client.call(message).await.map_err(|error| {
            let mut error = guides::with_advice(client, error, guides::guid(&file.document));
            if let (Some(stored), "ABSENT_STEPS") = (&stored, error.reason.as_str()) {
                place::name_steps(&mut error, &stored.document);
                let has_id = |it: &Step| !it.guid.is_empty() || !it.external_id().is_empty();
                if !file.document.steps.iter().all(has_id) {
                    let apply = client.command("apply FILE");
                    error.message.push_str(&format!(
                        "; steps without an ID count as new, but `{apply}` finds them by type \
                         and title"
                    ));
                }
            }
            error
        })?;
        let mut imported = ImportedGuide {
            file: file.path.display().to_string(),
            answer,
            dry_run: args.dry_run,
            notes,
            ..ImportedGuide::default()
        };
        imported.findings = self.findings(&imported, &file).await;
        if imported.answer.outcome() == ImportOutcome::Created {
            let note = self.note_on_same_name(&imported).await;
            imported.notes.extend(note);
        }
        Ok(imported)
    }

    /// The id of the next request. Files with equal content get different ids, so each becomes a
    /// task.
    fn request_id(&mut self, message: &ImportTaskRequest) -> Uuid {
        let id = hashed_id(&[self.id.as_bytes(), &message.encode_to_vec()]);
        let sent_before = self.sent_counts.entry(id).or_default();
        *sent_before += 1;
        match *sent_before - 1 {
            0 => id,
            count => hashed_id(&[id.as_bytes(), &count.to_be_bytes()]),
        }
    }

    /// All findings of a dry run, or else the errors of a guide that was written.
    async fn findings(&self, imported: &ImportedGuide, file: &GuideFile) -> Analyzed {
        if !self.args.dry_run {
            return imported.errors(self.client, self.args.quiet).await;
        }
        let shown = match imported.answer.outcome() {
            // Wiring steps that an import adds are not part of the file.
            ImportOutcome::Created => file.document.clone(),
            _ => imported.answer.document.clone().unwrap_or_default(),
        };
        Some(Findings::for_import(self.client, shown).await)
    }

    /// Warns about another task with the name and product of a new one. Skipped with --as-new and
    /// --quiet, and also with --request-id or an external id, because repeating such an import
    /// creates no second task.
    async fn note_on_same_name(&self, imported: &ImportedGuide) -> Option<String> {
        let task = imported.answer.task.as_ref()?;
        let ImportArgs {
            as_new,
            quiet,
            request_id,
            ..
        } = self.args;
        if *as_new || *quiet || request_id.is_some() || task.external_id.is_some() {
            return None;
        }
        let filters = ListTasksRequest {
            product_id: task.product_id,
            r#type: Some(TaskType::Standard.into()),
            name: task.name.clone(),
            ..ListTasksRequest::default()
        };
        // A failure is ignored, because the import itself has succeeded.
        let named = guides::list(self.client, filters).await.unwrap_or_default();
        let is_other = |other: &Task| other.guid != task.guid;
        let other = named.into_iter().find(is_other)?.guid;
        Some(format!(
            "warning: task {other} has the same name and product: each import of this file creates \
             another task; to update that task instead, set task.guid to {other}"
        ))
    }

    fn add(&mut self, imported: &ImportedGuide) -> Result<(), CliError> {
        self.counts.add(imported.answer.outcome());
        if self.args.quiet && self.results.is_text() {
            return Ok(());
        }
        self.results.add(&imported.text(), &imported.json())
    }

    fn add_failure(&mut self, file: &Path, error: &CliError) -> Result<(), CliError> {
        let path = file.display().to_string();
        let text = format!("failed {}: {error}", sanitize(&path));
        let json = json!({"file": path, "error": out::error_json(error)});
        self.results.add_failure(&text, &json)?;
        let CliError::Refused(error) = error else {
            return Ok(());
        };
        if error.caller_refused {
            self.stopped = Some("the server refuses calls from this caller");
        } else if error.unreachable {
            // The client has already retried, so other files would fail too.
            self.stopped = Some("the server cannot be reached");
        }
        self.is_undecided |= error.undecided;
        if error.undecided && self.results.is_text() {
            print_error(&format!(
                "  the server may have imported it: to avoid a second copy, repeat with \
                 --request-id {}",
                self.id
            ));
        }
        Ok(())
    }

    /// Counts a file that is not tried. The last lines of the text have the number.
    fn skip(&mut self, file: &Path, reason: &str) -> Result<(), CliError> {
        self.skipped += 1;
        if self.results.is_text() {
            return Ok(());
        }
        let error = json!({"message": format!("not tried, because {reason}")});
        let file = file.display().to_string();
        self.results.add("", &json!({"file": file, "error": error}))
    }

    /// Prints the counts, the failures again if other lines followed them, and the command that
    /// imports the remaining files. Without its request id, files would be imported twice.
    fn end(self, interrupted_after: Option<usize>) -> Result<ExitCode, CliError> {
        let files = self.args.files.len();
        let failed = self.results.failed() + self.skipped;
        let counts = self.counts.line(None, failed, self.args.dry_run);
        let code = self.results.end((files > 1).then_some(&*counts))?;
        if let Some(reason) = self.stopped.filter(|_| self.skipped > 0) {
            let skipped = match self.skipped {
                1 => "1 file was".to_owned(),
                count => format!("{count} files were"),
            };
            print_error(&format!("{skipped} not tried, because {reason}"));
        }
        let resume = format!(
            "to resume, run the same command with --request-id {}",
            self.id
        );
        let is_incomplete = self.is_undecided || self.stopped.is_some() && files > 1;
        if let Some(done) = interrupted_after {
            print_error(&format!(
                "interrupted after {done} of {files} files: {resume}"
            ));
            return Ok(ExitCode::FAILURE);
        }
        if is_incomplete && !self.args.dry_run {
            print_error(&resume);
        }
        Ok(code)
    }
}

fn hashed_id(parts: &[&[u8]]) -> Uuid {
    let mut digest = Sha256::default();
    parts.iter().for_each(|part| digest.update(part));
    uuid::Builder::from_custom_bytes(digest.finish()).into_uuid()
}
