//! `expertise import`.

mod counts;
mod interrupts;
mod report;
mod request_ids;

use std::{
    collections::HashMap,
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use uuid::Uuid;

use self::{
    counts::ImportCounts,
    interrupts::Interrupts,
    report::{FileReport, ImportFailure, ImportedFile},
    request_ids::RequestIds,
};
use super::{
    CliError, document,
    field_line::SentText,
    findings::Findings,
    ignored_step_fields::{ignored_lines, need_explanation},
    imported_guide::ImportedGuide,
    out::{JsonArray, print_error, sanitize},
    place::GuidePlace,
    tasks,
    transfer::{self, ApplyAdvice},
};
use crate::{
    client::{CallError, Client},
    config::{Format, ImportArgs},
    messages::managed_documents::managed_documents,
    proto::v1::{
        AbsentFields, ImportOutcome, ImportTaskRequest, ListTasksRequest, Step, Task, TaskDocument,
        TaskType,
    },
};

/// Fails where an etag is given for several guides.
pub(super) fn check(args: &ImportArgs) -> Result<(), CliError> {
    match args.if_unchanged.is_some() && args.files.len() != 1 {
        true => Err(CliError::Argument(
            "--if-unchanged is the etag of one guide: import one file with it".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Imports each file in turn, and continues after one that fails. Ctrl-C ends the run
/// after the current file.
pub(super) async fn import(
    client: &Client,
    args: &ImportArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let run_id = args.request_id.map_or_else(Uuid::now_v7, |id| id.0);
    let mut run = ImportRun {
        importer: FileImporter {
            client,
            args,
            request_ids: RequestIds::of_run(run_id),
            tasks_by_product: HashMap::new(),
        },
        counts: ImportCounts::default(),
        interrupts: Interrupts::listen()?,
    };
    let progress = ImportProgress::new(args);
    let mut array = JsonArray::new();
    for (done, file) in args.files.iter().enumerate() {
        if run.interrupts.was_interrupted() {
            run.counts.interrupted_after = Some(done);
            break;
        }
        progress.show(file);
        let report = run.import(file).await;
        progress.suspend(|| match format {
            Format::Text => report.print(run_id, args.quiet),
            Format::Json => array.push(&report),
        })?;
        run.counts.add(&report);
        progress.inc();
    }
    drop(progress);
    match format {
        Format::Text => run.counts.print(args),
        Format::Json => array.end()?,
    }
    if let Some(line) = run.counts.resume_line(args, run_id) {
        print_error(&line);
    }
    Ok(match run.counts.is_success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A run in progress.
struct ImportRun<'a> {
    importer: FileImporter<'a>,
    counts: ImportCounts,
    interrupts: Interrupts,
}

impl ImportRun<'_> {
    async fn import(&mut self, file: &Path) -> FileReport {
        let dry_run = self.importer.args.dry_run;
        let result = match self.counts.stopped {
            Some(reason) => Err(ImportFailure::NotTried(reason)),
            None => {
                let work = self.importer.import_file(file);
                let done = self.interrupts.run_until_second_signal(work).await;
                done.unwrap_or(Err(ImportFailure::Interrupted))
            }
        };
        FileReport::new(file, result, dry_run)
    }
}

/// Imports single files.
struct FileImporter<'a> {
    client: &'a Client,
    args: &'a ImportArgs,
    request_ids: RequestIds,
    /// The guids and names of the account's tasks, by product, as far as they are known.
    tasks_by_product: HashMap<i64, Vec<(String, String)>>,
}

impl FileImporter<'_> {
    async fn import_file(&mut self, file: &Path) -> Result<ImportedFile, ImportFailure> {
        let ImportArgs {
            files: _,
            as_new,
            absent_steps,
            if_unchanged,
            dry_run,
            max_file_bytes,
            request_id: _,
            quiet: _,
        } = self.args;
        let text = read(file, *max_file_bytes).await?;
        let mut document = document::parse(&text)?;
        let text = String::from_utf8_lossy(&text);
        if *as_new {
            transfer::clear_guid(&mut document);
            if let Some(task) = &mut document.task {
                task.external_id = None;
            }
        }
        let mut message = ImportTaskRequest {
            document: Some(document.clone()),
            absent_steps: i32::from(absent_steps.unwrap_or_default()),
            etag: String::new(),
            request_id: String::new(),
            validate_only: *dry_run,
            absent_fields: i32::from(AbsentFields::Keep),
            guide_etag: if_unchanged.clone().unwrap_or_default(),
            match_external_ids: !as_new,
            reset_fields: None,
            keep_locked: false,
        };
        let request_id = self.request_ids.next(&message);
        if !dry_run {
            message.request_id = request_id.to_string();
        }
        let sent = SentText {
            text: &text,
            document: &document,
        };
        let guid = transfer::guid(&document).to_owned();
        let answer = match transfer::import(self.client, message).await {
            Ok(answer) => answer,
            Err(error) => {
                let apply = ApplyAdvice {
                    command: "apply DIR",
                    effect: "finds the task by its external id or its name",
                };
                let error = transfer::with_advice(self.client, error, &guid, &apply);
                return Err(ImportFailure::CallFailed(match error.reason.as_str() {
                    "ABSENT_STEPS" => self.with_titles(error, &guid).await,
                    _ => sent.with_places(error),
                }));
            }
        };
        let outcome = answer.outcome();
        let task = answer.task.unwrap_or_default();
        let namesake = match outcome {
            ImportOutcome::Created => self.task_with_same_name(&task).await,
            ImportOutcome::Unspecified | ImportOutcome::Updated | ImportOutcome::Unchanged => None,
        };
        let after = match answer.document {
            None if need_explanation(&answer.ignored_paths) => {
                transfer::export(self.client, &task.guid).await.ok()
            }
            document => document,
        };
        let after = after.unwrap_or_default();
        Ok(ImportedFile {
            guide: ImportedGuide {
                ignored_lines: ignored_lines(&answer.ignored_paths, &document, &after),
                ignored_paths: answer.ignored_paths,
                previous_revision: answer.previous_revision,
                findings: self.findings(outcome, after, &task.guid, sent).await,
                ..ImportedGuide::new(outcome, &task, *dry_run)
            },
            etag: task.etag,
            namesake,
        })
    }

    /// All findings of a dry run, or else the errors of a guide that was written. `after` is the
    /// guide after a dry run.
    async fn findings(
        &self,
        outcome: ImportOutcome,
        after: TaskDocument,
        guid: &str,
        sent: SentText<'_>,
    ) -> Option<Result<Findings, CallError>> {
        let is_written = match outcome {
            ImportOutcome::Unspecified | ImportOutcome::Created | ImportOutcome::Updated => true,
            ImportOutcome::Unchanged => false,
        };
        if !self.args.dry_run {
            let is_asked = is_written && !self.args.quiet;
            let errors = is_asked.then(|| Findings::errors_of_stored(self.client, guid))?;
            return errors.await.map(Ok);
        }
        let shown = match outcome {
            // The wiring steps that an import adds are no part of the file.
            ImportOutcome::Created => sent.document.clone(),
            ImportOutcome::Unspecified | ImportOutcome::Updated | ImportOutcome::Unchanged => after,
        };
        let has_same_paths = has_same_paths(&shown, sent.document);
        let found = Findings::of(self.client, shown).await;
        Some(match has_same_paths {
            true => found.map(|found| found.with_places_in(sent)),
            false => found,
        })
    }

    /// Adds the titles of the steps that a document leaves out.
    async fn with_titles(&self, mut error: CallError, guid: &str) -> CallError {
        if let Ok(stored) = transfer::export(self.client, guid).await {
            for violation in &mut error.violations {
                let place = GuidePlace::find(&stored, "", ("", &violation.field));
                violation.place = place.and_then(|it| it.label()).unwrap_or_default();
            }
        }
        error
    }

    /// Another task with the name and product of a new one. Skipped with --as-new and --quiet,
    /// and with --request-id or an external id, as repeating such an import creates no second task.
    async fn task_with_same_name(&mut self, task: &Task) -> Option<String> {
        let ImportArgs {
            as_new,
            request_id,
            quiet,
            ..
        } = self.args;
        if *as_new || *quiet || request_id.is_some() || task.external_id.is_some() {
            return None;
        }
        let product = task.product_id();
        if !self.tasks_by_product.contains_key(&product) {
            let filters = ListTasksRequest {
                product_id: Some(product),
                r#type: Some(TaskType::Standard.into()),
                ..ListTasksRequest::default()
            };
            let mut named = Vec::new();
            // A failure is ignored, as the import itself has succeeded.
            let _ = tasks::for_each_page(self.client, filters, |page| {
                named.extend(page.into_iter().map(|task| (task.guid, task.name)));
                Ok(())
            })
            .await;
            self.tasks_by_product.insert(product, named);
        }
        let named = self.tasks_by_product.entry(product).or_default();
        let other = named
            .iter()
            .find(|(guid, name)| *name == task.name && *guid != task.guid);
        let other = other.map(|(guid, _)| guid.clone());
        if !named.iter().any(|(guid, _)| *guid == task.guid) {
            named.push((task.guid.clone(), task.name.clone()));
        }
        other
    }
}

/// Whether both have equally many steps, and each step as many managed tasks. Then no wiring step
/// was added, and paths of both lead to the same fields.
pub(super) fn has_same_paths(after: &TaskDocument, sent: &TaskDocument) -> bool {
    fn managed(step: &Step) -> Vec<&TaskDocument> {
        managed_documents(step)
            .map(|(_, document)| document)
            .collect()
    }
    let mut steps = after.steps.iter().zip(&sent.steps);
    after.steps.len() == sent.steps.len()
        && steps.all(|(after, sent)| {
            let (after, sent) = (managed(after), managed(sent));
            let mut pairs = after.iter().zip(&sent);
            sent.is_empty()
                || after.len() == sent.len() && pairs.all(|(one, two)| has_same_paths(one, two))
        })
}

/// Reads a file or standard input. Signals are handled meanwhile, as standard input may
/// come slowly.
async fn read(file: &Path, max_bytes: u64) -> Result<Vec<u8>, ImportFailure> {
    let file = file.to_owned();
    let read = tokio::task::spawn_blocking(move || transfer::read_file(&file, max_bytes));
    let text = read.await.map_err(io::Error::from).flatten();
    let text = text.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => ImportFailure::Directory,
        _ => ImportFailure::Unreadable(transfer::in_plain_words(error)),
    })?;
    match text.len() as u64 {
        bytes if bytes > max_bytes => Err(ImportFailure::TooLarge { max_bytes }),
        _ => Ok(text),
    }
}

/// A progress bar on a terminal, when there are several files.
struct ImportProgress(ProgressBar);

impl ImportProgress {
    fn new(args: &ImportArgs) -> Self {
        let files = args.files.len();
        if files < 2 || args.quiet || !io::stderr().is_terminal() {
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
