//! `expertise apply`: makes the guides of an account match files.
//!
//! A file describes the task with its guid, or else with its external id. Fields that it leaves out
//! return to their defaults, and steps that it leaves out are deleted, so a second run changes
//! nothing.

mod applied;
mod files;
pub(super) mod ids;
mod older;
mod prune;

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde_json::json;

use self::{
    applied::{AppliedState, Blocked},
    files::read_files,
    ids::{TaskIds, put_back},
    prune::left_over,
};
use super::{
    CliError, Format, automatic,
    changes::{self, Change},
    confirm,
    file_records::{self, FileRecorder},
    findings::Findings,
    guide_file::GuideFile,
    guides::{self, StoredGuide},
    imported::{ImportedGuide, OutcomeCounts},
    out::{Results, error_json, print_error, sanitize, with_members},
    pairing::refuse_fixed_fields,
};
use crate::{
    client::Client,
    proto::v1::{
        ImportOutcome, ImportTaskResponse, ListTasksRequest, Task, TaskDocument, TaskType,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApplyArgs {
    /// Documents, or directories whose .json files are read recursively
    #[arg(required = true, value_name = "DIR|FILE")]
    pub paths: Vec<PathBuf>,
    /// Show what would change without storing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite what others have changed since a file was last applied or exported
    #[arg(long, conflicts_with = "merge")]
    pub overwrite: bool,
    /// Merge what others have changed since then into the file
    #[arg(long)]
    pub merge: bool,
    /// Delete standard tasks that no document describes, after listing them
    #[arg(long)]
    pub prune: bool,
    /// With --prune, delete without asking; required without a terminal
    #[arg(long, requires = "prune")]
    pub force: bool,
    /// Do not lock translations that the documents change
    #[arg(long)]
    pub keep_unlocked: bool,
    /// Print only changes, failures and counts
    #[arg(short, long)]
    pub quiet: bool,
}

const NEEDS_FORCE: &str = "apply --prune asks for confirmation, but there is no terminal: use \
    --force to delete without asking, or --dry-run";

/// Fails if the command would need to ask without a terminal, or if `--prune` is used with single
/// files.
pub(super) fn check(args: &ApplyArgs) -> Result<(), CliError> {
    if args.prune
        && !args
            .paths
            .iter()
            .all(|path| path.is_dir() || !path.exists())
    {
        return Err(CliError::Argument(
            "--prune deletes what is missing from a directory, so name directories, not files"
                .to_owned(),
        ));
    }
    match args.prune && !args.force && !args.dry_run {
        true => confirm::require_terminal(NEEDS_FORCE),
        false => Ok(()),
    }
}

/// Applies files. Nothing is written unless every file is a valid document. A guide that is blocked
/// or refused does not stop the others, but then nothing is pruned.
pub(super) async fn apply(
    client: &Client,
    args: &ApplyArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let files = read_files(&args.paths)?;
    let tasks = guides::list(client, ListTasksRequest::default()).await?;
    let mut run = ApplyRun {
        client,
        args,
        ids: TaskIds::from_external_ids(&tasks),
        recorder: FileRecorder::default(),
        results: Results::new(format),
        counts: OutcomeCounts::default(),
        deleted: 0,
    };
    let mut guides = Vec::with_capacity(files.len());
    for file in files {
        guides.push(run.read_stored(file, &tasks).await?);
    }
    for guide in &mut guides {
        run.check(guide).await?;
    }
    let is_new = |guide: &&mut ApplyGuide| guide.stored.is_none();
    let mut new: Vec<_> = guides.iter_mut().filter(is_new).collect();
    while !new.is_empty() {
        // A guide comes after the guides that it refers to, so that it can be created with all its
        // steps. In a cycle of guides, the first is created without some of its steps.
        let is_ready =
            |guide: &&mut ApplyGuide| args.dry_run || !run.ids.refers_to_pending(&guide.document);
        let next = new.iter().position(is_ready).unwrap_or(0);
        run.write(new.remove(next)).await?;
    }
    for guide in guides.iter_mut().filter(|guide| guide.needs_update) {
        run.write(guide).await?;
    }
    let left = left_over(&guides, tasks);
    let is_declined = match args.prune {
        true => run.prune(left, &guides).await?,
        false => {
            run.print_left(&left);
            false
        }
    };
    run.end(is_declined)
}

struct ApplyGuide {
    file: GuideFile,
    /// The document, with the account's ids for the parts that the account has. After a dry run, the
    /// whole guide as it would be stored.
    document: TaskDocument,
    /// The stored guide; without its steps if it cannot be read.
    stored: Option<StoredGuide>,
    /// The guide as it was last applied.
    applied: Option<AppliedState>,
    /// The state that this file was last applied from or exported to.
    recorded: Option<StoredGuide>,
    /// Lines about what was done to the document.
    notes: Vec<String>,
    /// The changes by others that were merged into the document.
    merged: Vec<Change>,
    /// The document of the file, if the file must be rewritten after a merge.
    said: Option<TaskDocument>,
    /// False if it is new, blocked, or cannot be read.
    needs_update: bool,
    /// The report of its creation, if some of its steps are still missing.
    created: Option<ImportedGuide>,
}

impl ApplyGuide {
    /// The state that the file was made from: the recorded one, or else the last applied one.
    fn base(&self) -> Option<&TaskDocument> {
        let recorded = self.recorded.as_ref().map(|it| &it.document);
        recorded.or(self.applied.as_ref().map(|it| &it.document))
    }
}

struct ApplyRun<'a> {
    client: &'a Client,
    args: &'a ApplyArgs,
    ids: TaskIds,
    recorder: FileRecorder,
    results: Results,
    counts: OutcomeCounts,
    deleted: usize,
}

impl ApplyRun<'_> {
    /// Reads the stored guide of a file.
    async fn read_stored(
        &mut self,
        file: GuideFile,
        tasks: &[Task],
    ) -> Result<ApplyGuide, CliError> {
        let mut guide = ApplyGuide {
            document: file.document.clone(),
            file,
            stored: None,
            applied: None,
            recorded: None,
            notes: Vec::new(),
            merged: Vec::new(),
            said: None,
            needs_update: false,
            created: None,
        };
        let guid = guides::guid(&guide.document).to_ascii_lowercase();
        let task = tasks.iter().find(|task| task.guid == guid);
        let by_external_id = || {
            tasks
                .iter()
                .find(|task| ids::describes(&guide.document, task))
        };
        match task.or_else(by_external_id) {
            Some(task) => match self.read_states(&mut guide, &task.guid).await {
                Ok(()) => guide.needs_update = true,
                Err(CliError::Refused(error)) if error.transient => return Err(error.into()),
                Err(error) => {
                    self.add_failure(&guide, Blocked::from(&error))?;
                    let known = TaskDocument {
                        task: Some(task.clone()),
                        steps: Vec::new(),
                    };
                    self.ids.adopt(&mut guide.document, &known, None);
                    guide.stored = Some(StoredGuide {
                        document: known,
                        guide_etag: String::new(),
                    });
                }
            },
            None => {
                self.ids.add_pending(&guide.document);
                let task = guide.document.task.as_ref();
                if task.is_some_and(|it| it.r#type() == TaskType::Linked) {
                    print_error(&format!(
                        "warning: {} describes a managed task, and is applied as a separate task: \
                         the document of the guide that manages it already contains it",
                        sanitize(&guide.file.path.display().to_string())
                    ));
                }
            }
        }
        Ok(guide)
    }

    /// Reads the stored guide, its last applied state and the recorded state of its file, and replaces
    /// the ids of the document with those of the account.
    async fn read_states(&mut self, guide: &mut ApplyGuide, guid: &str) -> Result<(), CliError> {
        let stored = guides::read(self.client, guid).await?;
        guide.applied = applied::find(self.client, &stored).await?;
        guide.recorded = file_records::find(self.client, guid, &guide.file.path)?;
        let base = guide.base().cloned();
        self.ids
            .adopt(&mut guide.document, &stored.document, base.as_ref());
        guide.stored = Some(stored);
        Ok(())
    }

    /// Blocks a guide if its file would revert someone else's changes or change fields that never
    /// change.
    async fn check(&mut self, guide: &mut ApplyGuide) -> Result<(), CliError> {
        let Some(stored) = guide.stored.as_ref().filter(|_| guide.needs_update) else {
            return Ok(());
        };
        let checked = match refuse_fixed_fields(&guide.document, &stored.document) {
            Ok(()) => applied::check(self.client, guide, &self.ids, self.args).await,
            Err(error) => Err(error),
        };
        let blocked = checked.unwrap_or_else(|error| Some(Blocked::from(&error)));
        if let Some(blocked) = blocked {
            guide.needs_update = false;
            return self.add_failure(guide, blocked);
        }
        Ok(())
    }

    /// Creates or updates a guide, and reports it. A guide that is created without some of its
    /// steps is reported once it has them.
    async fn write(&mut self, guide: &mut ApplyGuide) -> Result<(), CliError> {
        match (self.send(guide).await, guide.created.take()) {
            (Ok(created), None) if guide.needs_update => guide.created = Some(created),
            (Ok(written), None) => self.add(written).await?,
            (Ok(updated), Some(mut created)) => {
                created.answer.task = updated.answer.task;
                created.notes = updated.notes;
                self.add(created).await?;
            }
            (Err(error), created) => {
                if let Some(created) = created {
                    self.add(created).await?;
                }
                self.add_failure(guide, Blocked::from(&error))?;
            }
        }
        Ok(())
    }

    /// Writes a guide. If it is new, steps that refer to guides that are created later are left
    /// out, and it needs an update.
    async fn send(&mut self, guide: &mut ApplyGuide) -> Result<ImportedGuide, CliError> {
        let (is_new, dry_run) = (guide.stored.is_none(), self.args.dry_run);
        let mut document = guide.document.clone();
        self.ids.resolve(&mut document);
        if let Some(stored) = &guide.stored {
            automatic::add_left_out(&mut document, &stored.document);
        }
        let (pending, of_managed) = match is_new || dry_run {
            true => self.ids.take_pending(&mut document),
            false => (Vec::new(), 0),
        };
        if is_new {
            ids::make_external(&mut document);
            guides::clear_guid(&mut document);
        }
        let mut answer = self.import(guide.stored.as_ref(), &document).await?;
        guide.needs_update = is_new && !dry_run && (!pending.is_empty() || of_managed > 0);
        if !is_new && !pending.is_empty() {
            answer.outcome = ImportOutcome::Updated.into();
        }
        let is_unchanged = answer.outcome() == ImportOutcome::Unchanged;
        let planned = answer.document.take();
        let mut imported = ImportedGuide {
            file: guide.file.path.display().to_string(),
            answer,
            dry_run,
            notes: guide.notes.clone(),
            ..ImportedGuide::default()
        };
        let mut after = match (planned, &guide.stored) {
            (Some(document), _) => StoredGuide {
                document,
                guide_etag: String::new(),
            },
            (None, Some(stored)) if is_unchanged && guide.said.is_none() => stored.clone(),
            (None, _) => guides::read(self.client, imported.guid()).await?,
        };
        if dry_run {
            let stored = guide.stored.as_ref().map(|stored| &stored.document);
            put_back(pending, stored, &mut after.document);
        }
        let steps = &after.document.steps;
        if let Some(task) = &mut imported.answer.task {
            task.steps = steps.iter().map(|step| step.guid.clone()).collect();
        }
        if let Some(stored) = &guide.stored {
            imported.changes = changes::between(&stored.document, &after.document);
        }
        if let Some(said) = &guide.said
            && !dry_run
            && let Err(error) = applied::write_merged(guide, said, &after.document)
        {
            // The applied state stays, so the next run with --merge merges into the file again.
            imported.unwritten = Some(error);
            return Ok(imported);
        }
        if !guide.merged.is_empty() {
            let would_be = if dry_run { "would be " } else { "" };
            let text = changes::text(&guide.merged, 2);
            let note = format!("{would_be}merged into the file:\n{}", text.trim_end());
            imported.notes.push(note);
            imported.is_merged = true;
        }
        if dry_run {
            guide.document.clone_from(&after.document);
            if !is_unchanged {
                // Steps that were left out of a new guide are counted but not checked.
                let shown = if is_new { document } else { after.document };
                imported.findings = Some(Findings::for_import(self.client, shown).await);
            }
            return Ok(imported);
        }
        if is_new {
            // Other guides may need the ids of its managed tasks.
            self.ids.remove_pending(&guide.document);
            self.ids.adopt(&mut guide.document, &after.document, None);
            guide.stored = Some(after.clone());
        }
        if !guide.needs_update {
            self.keep_applied(guide, &mut imported).await;
            // If somebody has changed the guide since, `after` has that change, but the file has not.
            if after.guide_etag == imported.answer.guide_etag {
                let path = &guide.file.path;
                self.recorder
                    .record(self.client, imported.guid(), path, &after);
            }
        }
        Ok(imported)
    }

    /// Saves the state of a guide as a revision, to detect later changes by others.
    async fn keep_applied(&self, guide: &ApplyGuide, imported: &mut ImportedGuide) {
        let etag = &imported.answer.guide_etag;
        let applied = guide.applied.as_ref();
        let is_kept = applied.is_some_and(|it| it.revision.guide_etag == *etag);
        if !is_kept && let Err(error) = applied::keep(self.client, imported.guid(), etag).await {
            imported.notes.push(format!(
                "warning: the applied state could not be recorded, so the next run may miss \
                 changes by others, or list too many: {error}"
            ));
        }
    }

    /// Imports a document if the guide has not changed since it was read. Titles of subtask steps
    /// may have changed, because this run may have renamed their tasks.
    async fn import(
        &self,
        stored: Option<&StoredGuide>,
        document: &TaskDocument,
    ) -> Result<ImportTaskResponse, CliError> {
        let etag = stored.map_or("", |stored| &stored.guide_etag);
        let message = guides::whole_import(document.clone(), etag);
        if self.args.dry_run {
            return Ok(guides::dry_run(self.client, message).await?);
        }
        let stored = match (self.client.call(message).await, stored) {
            (Err(error), Some(stored)) if error.reason == "ETAG_MISMATCH" => &stored.document,
            (answer, _) => return Ok(answer?),
        };
        let guid = guides::guid(stored);
        let now = guides::read(self.client, guid).await?;
        if !changes::between(stored, &now.document).is_empty() {
            return Err(CliError::changed_since(guid));
        }
        let message = guides::whole_import(document.clone(), &now.guide_etag);
        Ok(self.client.call(message).await?)
    }

    async fn add(&mut self, mut imported: ImportedGuide) -> Result<(), CliError> {
        if !self.args.dry_run {
            imported.findings = imported.errors(self.client, self.args.quiet).await;
        }
        let outcome = match imported.answer.outcome() {
            ImportOutcome::Unchanged if imported.is_merged => ImportOutcome::Updated,
            outcome => outcome,
        };
        self.counts.add(outcome);
        let is_brief = self.args.quiet || self.args.dry_run;
        let has_notes = !imported.notes.is_empty() || !imported.answer.ignored_paths.is_empty();
        let is_shown = outcome != ImportOutcome::Unchanged
            || !is_brief
            || has_notes
            || imported.unwritten.is_some();
        if !is_shown && self.results.is_text() {
            return Ok(());
        }
        let Some(error) = imported.unwritten.take() else {
            return self.results.add(&imported.text(), &imported.json());
        };
        let json = with_members(imported.json(), json!({"error": error_json(&error)}));
        if self.results.is_text() {
            self.results.add(&imported.text(), &json)?;
        }
        let file = sanitize(&imported.file);
        self.results
            .add_failure(&format!("failed {file}: {error}"), &json)
    }

    fn add_failure(
        &mut self,
        guide: &ApplyGuide,
        Blocked { text, json }: Blocked,
    ) -> Result<(), CliError> {
        let path = guide.file.path.display().to_string();
        let text = format!("failed {}: {text}", sanitize(&path));
        let json = with_members(json, json!({"file": path}));
        self.results.add_failure(&text, &json)
    }

    /// Prints the counts and the failures again.
    fn end(self, is_declined: bool) -> Result<ExitCode, CliError> {
        let deleted = self.args.prune.then_some(self.deleted);
        let failed = self.results.failed();
        let counts = self.counts.line(deleted, failed, self.args.dry_run);
        let code = self.results.end(Some(&counts))?;
        Ok(match is_declined {
            true => ExitCode::FAILURE,
            false => code,
        })
    }
}
