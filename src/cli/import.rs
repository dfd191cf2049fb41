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
    report::{FileReport, ImportFailure, ImportKind, ImportedFile},
    request_ids::RequestIds,
};
use super::{
    CliError, changes, document,
    field_line::SentText,
    findings::Findings,
    out::{JsonArray, print_error, sanitize},
    place::GuidePlace,
    plan::{
        IgnoredStepFields, LeftOutFields, Matching, Plan, TaskIds, has_same_paths, match_to_stored,
        name_new_subtask_steps,
    },
    tasks,
    transfer::{self, ApplyAdvice},
};
use crate::{
    client::{CallError, Client},
    config::{Format, ImportArgs},
    proto::v1::{ImportTaskRequest, ListTasksRequest, Task, TaskDocument, TaskType},
};

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
            dry_run,
            max_file_bytes,
            request_id: _,
            quiet: _,
        } = self.args;
        let text = read(file, *max_file_bytes).await?;
        let mut document = document::parse(&text)?;
        let text = String::from_utf8_lossy(&text);
        if *as_new && let Some(task) = &mut document.task {
            task.guid.clear();
        }
        let mut message = ImportTaskRequest {
            document: Some(document.clone()),
            absent_steps: i32::from(absent_steps.unwrap_or_default()),
            etag: String::new(),
            request_id: String::new(),
            validate_only: *dry_run,
            absent_fields: 0,
        };
        message.request_id = self.request_ids.next(&message).to_string();
        let sent = SentText {
            text: &text,
            document: &document,
        };
        let guid = transfer::guid(&document).to_owned();
        let mut planned = self.plan(document.clone()).await?;
        let answer = transfer::import(self.client, message).await;
        let answer = answer.map_err(|error| {
            let apply = ApplyAdvice {
                command: "apply DIR",
                effect: "finds the task by its name",
            };
            let error = transfer::with_advice(self.client, error, &guid, &apply);
            ImportFailure::CallFailed(match &planned.stored {
                Some(stored) if error.reason == "ABSENT_STEPS" => with_titles(error, stored),
                Some(_) | None => sent.with_places(error),
            })
        })?;
        if !answer.ignored_paths.is_empty() {
            name_new_subtask_steps(self.client, &mut planned.document).await;
        }
        let task = answer.task.unwrap_or_default();
        let namesake = match planned.kind {
            ImportKind::Created => self.task_with_same_name(&task).await,
            ImportKind::Updated | ImportKind::Unchanged => None,
        };
        let ignored_of_steps = IgnoredStepFields::between(
            planned.matched.as_ref().unwrap_or(&document),
            planned.stored.as_ref(),
            &planned.document,
        );
        Ok(ImportedFile {
            kind: planned.kind,
            findings: self.findings(planned, &task.guid, sent).await,
            task,
            namesake,
            ignored_paths: answer.ignored_paths,
            ignored_of_steps,
        })
    }

    /// All findings of a dry run, or else the errors of a guide that was written.
    async fn findings(
        &self,
        planned: PlannedImport,
        guid: &str,
        sent: SentText<'_>,
    ) -> Option<Result<Findings, CallError>> {
        match (self.args.dry_run, planned.kind) {
            (true, _) => {
                let has_same_paths = has_same_paths(&planned.document, sent.document);
                let found = Findings::of(self.client, planned.document).await;
                Some(match has_same_paths {
                    true => found.map(|found| found.with_places_in(sent)),
                    false => found,
                })
            }
            (false, ImportKind::Created | ImportKind::Updated) if !self.args.quiet => {
                let errors = Findings::errors_of_stored(self.client, guid).await;
                errors.map(Ok)
            }
            (false, _) => None,
        }
    }

    /// Another task with the name and product of a new one. Skipped with --as-new and --quiet,
    /// and with --request-id: an import repeated with it creates no other task.
    async fn task_with_same_name(&mut self, task: &Task) -> Option<String> {
        let ImportArgs {
            as_new,
            request_id,
            quiet,
            ..
        } = self.args;
        if *as_new || *quiet || request_id.is_some() {
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

    /// Predicts what the import does, for which the stored guide is read. If it cannot be
    /// read, the import counts as an update.
    async fn plan(&self, document: TaskDocument) -> Result<PlannedImport, ImportFailure> {
        let guid = transfer::guid(&document);
        if guid.is_empty() {
            let kind = ImportKind::Created;
            return Ok(PlannedImport::unread(kind, document));
        }
        let kind = ImportKind::Updated;
        let stored = match transfer::export(self.client, guid).await {
            Ok(stored) => stored,
            // The import would fail in the same way. After other errors it may succeed, as when
            // a token lacks only the scope `read`.
            Err(error) if error.unreachable || error.code == "UNAUTHENTICATED" => {
                return Err(ImportFailure::CallFailed(error));
            }
            Err(_) => return Ok(PlannedImport::unread(kind, document)),
        };
        let plan = Plan {
            fields: LeftOutFields::Keep,
            steps: self.args.absent_steps.unwrap_or_default(),
        };
        let mut matched = document;
        match_to_stored(&mut matched, &stored, Matching::ById, &mut TaskIds::new());
        let planned = plan.apply(&matched, &stored);
        let changes = changes::between(&stored, &planned);
        Ok(PlannedImport {
            kind: match changes {
                Ok(changes) if changes.is_empty() => ImportKind::Unchanged,
                Ok(_) | Err(_) => kind,
            },
            document: planned,
            matched: Some(matched),
            stored: Some(stored),
        })
    }
}

/// The kind of an import, and the guide after it.
struct PlannedImport {
    kind: ImportKind,
    document: TaskDocument,
    /// The sent document with the ids of the stored guide.
    matched: Option<TaskDocument>,
    /// The guide before it.
    stored: Option<TaskDocument>,
}

impl PlannedImport {
    /// An import for which no stored guide was read.
    fn unread(kind: ImportKind, document: TaskDocument) -> Self {
        Self {
            kind,
            document,
            matched: None,
            stored: None,
        }
    }
}

/// Adds the titles of the steps that a document leaves out.
fn with_titles(mut error: CallError, stored: &TaskDocument) -> CallError {
    for violation in &mut error.violations {
        let place = GuidePlace::find(stored, "", ("", &violation.field));
        violation.place = place.and_then(|it| it.label()).unwrap_or_default();
    }
    error
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
