//! `expertise apply`: makes the account have the guides of a directory.
//!
//! A document describes the task with its id, or else the standard task with its name and
//! product: ids belong to an account, and a directory may be applied to several. What is
//! left out of a document returns to its default, and steps that it leaves out are
//! deleted. So a second run finds every guide unchanged.

mod drift;
mod guides;
mod prune;
mod references;
mod report;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
};

use self::{
    drift::DriftReport,
    guides::DirectoryGuide,
    prune::Pruned,
    references::References,
    report::{ApplyCounts, ApplyReport},
};
use super::{
    CliError, changes, confirm, delete,
    findings::Findings,
    ignored_step_fields::{ignored_lines, need_explanation},
    out::{JsonArray, print_error},
    tasks,
    transfer::{self, StoredGuide},
};
use crate::{
    client::{CallError, Client},
    config::{ApplyArgs, Format},
    proto::v1::{ImportOutcome, ImportTaskResponse, Task, TaskDocument, TaskRevision},
};

/// The error where the command would have to ask and there is no terminal.
const NEEDS_FORCE: &str = "apply --prune asks before it deletes, and there is no terminal to ask \
                           on: repeat it with --force to delete without asking, or with --dry-run";

/// Fails where the command would have to ask and cannot.
pub(super) fn check(args: &ApplyArgs) -> Result<(), CliError> {
    match args.prune && !args.force && !args.dry_run {
        true => confirm::require_terminal(NEEDS_FORCE),
        false => Ok(()),
    }
}

/// Applies a directory. Nothing is written unless every document in it can be read, and every
/// guide is as it was last applied, or is to be overwritten or merged. A guide that is refused
/// does not stop the others, but nothing is pruned then.
pub(super) async fn apply(
    client: &Client,
    args: &ApplyArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let sources = source::read_directory(&args.directory)?;
    let tasks = tasks::list_all(client, None).await?;
    let mut run = ApplyRun {
        client,
        args,
        format,
        references: References::default(),
        counts: ApplyCounts::default(),
        array: JsonArray::new(),
        is_declined: false,
    };
    let mut guides = guides::pair(sources, &tasks)?;
    for guide in &mut guides {
        guide.read_stored(client, &mut run.references).await?;
        guide.read_applied(client).await?;
    }
    let drifted = drift::check(client, args, &mut guides, &run.references).await?;
    if !drifted.is_empty() {
        return run.end_drifted(&drifted);
    }
    let is_new = |guide: &&mut DirectoryGuide| guide.stored.is_none();
    let mut new: Vec<_> = guides.iter_mut().filter(is_new).collect();
    while !new.is_empty() {
        // A guide comes after those that it refers to, so that it has all of its steps at once.
        // Guides of one name and product stay in their order, by which the next run finds them.
        let mut waiting_keys = BTreeSet::new();
        let waits = |guide: &&mut DirectoryGuide| {
            let waits = !args.dry_run
                && (waiting_keys.contains(&guide.key())
                    || run.references.refers_to_pending(&guide.document));
            if waits {
                waiting_keys.insert(guide.key());
            }
            waits
        };
        let (mut waiting, mut ready): (Vec<_>, Vec<_>) = new.into_iter().partition(waits);
        if ready.is_empty() {
            // Guides that refer to each other: the first is created without some of its steps.
            ready.push(waiting.remove(0));
        }
        for guide in ready {
            run.create(guide).await?;
        }
        new = waiting;
    }
    for guide in guides.iter_mut().filter(|guide| guide.needs_update()) {
        run.update(guide).await?;
    }
    let surplus = prune::surplus(&guides, tasks);
    if args.prune {
        let referring = prune::referring_files(&guides, &run.references);
        run.prune(surplus, &referring).await?;
    } else if format == Format::Text {
        run.counts.surplus = surplus.iter().map(delete::description).collect();
    }
    run.end()
}

/// A run in progress.
struct ApplyRun<'a> {
    client: &'a Client,
    args: &'a ApplyArgs,
    format: Format,
    references: References,
    counts: ApplyCounts,
    array: JsonArray,
    /// Whether the person did not agree to the deletion.
    is_declined: bool,
}

impl ApplyRun<'_> {
    /// Creates a guide. Steps that refer to guides which are created later are left out,
    /// and added when those are there.
    async fn create(&mut self, guide: &mut DirectoryGuide) -> Result<(), CliError> {
        let mut document = guide.document.clone();
        self.references.resolve(&mut document);
        let (pending, of_managed) = self.references.take_pending(&mut document);
        let mut report = ApplyReport::new(guide, ImportOutcome::Created, self.args.dry_run);
        match self.send_new(guide, document, &mut report).await {
            Ok(()) if pending.is_empty() && of_managed == 0 => {
                self.keep_applied(guide, &mut report).await
            }
            // It is reported when it has its steps.
            Ok(()) if guide.stored.is_some() => {
                guide.incomplete = Some(report);
                return Ok(());
            }
            // A dry run counts the steps that were left out, and does not check them.
            Ok(()) => report.guide.steps += pending.len(),
            Err(error) => report.error = Some(error),
        }
        self.add(report).await
    }

    async fn send_new(
        &mut self,
        guide: &mut DirectoryGuide,
        mut document: TaskDocument,
        report: &mut ApplyReport,
    ) -> Result<(), CliError> {
        transfer::clear_guid(&mut document);
        let message = transfer::import_of_whole(document.clone(), "");
        let answer = match self.args.dry_run {
            true => transfer::dry_run(self.client, message).await,
            false => transfer::import(self.client, message).await,
        };
        let mut answer = answer.map_err(|error| guide.with_places(error, &document))?;
        report.set_imported(&mut answer);
        if self.args.dry_run {
            report.guide.findings = Some(self.findings(guide, document).await);
            return Ok(());
        }
        guide.guid = Some(report.guide.guid.clone());
        // The ids of its managed tasks may be needed by other guides.
        let read = guide.read_stored(self.client, &mut self.references).await;
        read.map_err(|error| {
            CliError::Invalid(format!(
                "imported, but it could not be read again: run apply again: {error}"
            ))
        })
    }

    async fn update(&mut self, guide: &mut DirectoryGuide) -> Result<(), CliError> {
        let mut report = ApplyReport::new(guide, ImportOutcome::Updated, self.args.dry_run);
        match self.send_changes(guide, &mut report).await {
            Ok(()) => self.keep_applied(guide, &mut report).await,
            Err(error) => report.error = Some(error),
        }
        let Some(mut created) = guide.incomplete.take() else {
            return self.add(report).await;
        };
        if report.error.is_none() {
            created.guide.steps = report.guide.steps;
            created.not_kept = report.not_kept;
            return self.add(created).await;
        }
        self.add(created).await?;
        self.add(report).await
    }

    async fn send_changes(
        &mut self,
        guide: &mut DirectoryGuide,
        report: &mut ApplyReport,
    ) -> Result<(), CliError> {
        let Some(stored) = &guide.stored else {
            return Ok(());
        };
        let mut document = guide.document.clone();
        self.references.resolve(&mut document);
        let pending = match self.args.dry_run {
            true => self.references.take_pending(&mut document).0,
            false => Vec::new(),
        };
        let answer = match self.args.dry_run {
            true => {
                let message = transfer::import_of_whole(document.clone(), &stored.guide_etag);
                let planned = transfer::dry_run(self.client, message).await;
                planned.map_err(CliError::from)
            }
            false => self.import_over(stored, &document).await,
        };
        let mut answer = answer.map_err(|error| match error {
            CliError::Refused(error) => guide.with_places(error, &document).into(),
            error => error,
        })?;
        report.set_imported(&mut answer);
        if !pending.is_empty() {
            report.guide.outcome = ImportOutcome::Updated;
        }
        let is_updated = report.guide.outcome == ImportOutcome::Updated;
        let shows_changes = is_updated && self.format == Format::Json;
        let mut after = match answer.document {
            None if shows_changes || need_explanation(&report.guide.ignored_paths) => {
                transfer::export(self.client, &report.guide.guid).await.ok()
            }
            document => document,
        };
        if let Some(after) = &mut after {
            references::put_back(pending, &stored.document, after);
            report.guide.steps = after.steps.len();
            report.changes = changes::between(&stored.document, after)?;
            report.guide.ignored_lines =
                ignored_lines(&report.guide.ignored_paths, &document, after);
        }
        if self.args.dry_run && is_updated {
            let after = after.unwrap_or_default();
            report.guide.findings = Some(self.findings(guide, after).await);
        }
        Ok(())
    }

    /// The findings of a guide as a dry run leaves it.
    async fn findings(
        &self,
        guide: &DirectoryGuide,
        planned: TaskDocument,
    ) -> Result<Findings, CallError> {
        let sent = guide.sent_text(&planned);
        let found = Findings::of(self.client, planned).await?;
        Ok(match sent {
            Some(sent) => found.with_places_in(sent),
            None => found,
        })
    }

    /// Keeps a guide as it was written or found, so that later changes are noticed. One whose file
    /// lacks what was merged stays as it was last applied, or the next run would take that back.
    async fn keep_applied(&self, guide: &DirectoryGuide, report: &mut ApplyReport) {
        let guid = &report.guide.guid;
        if self.args.dry_run || !guide.merged.is_empty() {
            return;
        }
        let is_kept = |applied: &TaskRevision| applied.guide_etag == report.guide_etag;
        if !guide.applied.as_ref().is_some_and(is_kept) {
            let kept = drift::keep(self.client, guid, &report.guide_etag).await;
            report.not_kept = kept.err();
        }
    }

    /// Imports a document over a guide that has not changed since it was read, but for titles of
    /// subtask steps: they follow the names of other guides, which this run may have changed.
    async fn import_over(
        &self,
        stored: &StoredGuide,
        document: &TaskDocument,
    ) -> Result<ImportTaskResponse, CliError> {
        let message = transfer::import_of_whole(document.clone(), &stored.guide_etag);
        match transfer::import(self.client, message).await {
            Err(error) if error.reason == "ETAG_MISMATCH" => {}
            answer => return Ok(answer?),
        }
        let guid = transfer::guid(&stored.document);
        let now = transfer::export_with_etag(self.client, guid).await?;
        if !changes::between(&stored.document, &now.document)?.is_empty() {
            return Err(CliError::ChangedSince(guid.to_owned()));
        }
        let message = transfer::import_of_whole(document.clone(), &now.guide_etag);
        Ok(transfer::import(self.client, message).await?)
    }

    /// Deletes the tasks that the directory does not have.
    async fn prune(
        &mut self,
        surplus: Vec<Task>,
        referring: &BTreeMap<String, PathBuf>,
    ) -> Result<(), CliError> {
        if surplus.is_empty() {
            return Ok(());
        }
        let failed = self.counts.outcomes.failed;
        let pruned = prune::prune(self.client, self.args, surplus, referring, failed).await?;
        let reports = match pruned {
            Pruned::Done(reports) => reports,
            Pruned::Declined => {
                self.is_declined = true;
                return Ok(());
            }
        };
        for report in reports {
            self.counts.add_pruned(&report);
            match self.format {
                Format::Text => report.print()?,
                Format::Json => self.array.push(&report)?,
            }
        }
        Ok(())
    }

    async fn add(&mut self, mut report: ApplyReport) -> Result<(), CliError> {
        if self.is_stored(&report) && !self.args.quiet {
            let errors = Findings::errors_of_stored(self.client, &report.guide.guid).await;
            report.guide.findings = errors.map(Ok);
        }
        self.counts.outcomes.add(report.outcome());
        match self.format {
            Format::Text => report.print(self.args.quiet),
            Format::Json => self.array.push(&report),
        }
    }

    /// Whether the guide was written.
    fn is_stored(&self, report: &ApplyReport) -> bool {
        match report.outcome() {
            Some(ImportOutcome::Unspecified | ImportOutcome::Created | ImportOutcome::Updated) => {
                !self.args.dry_run
            }
            Some(ImportOutcome::Unchanged) | None => false,
        }
    }

    /// Ends a run that has done nothing, as guides have changed by other means.
    fn end_drifted(mut self, drifted: &[DriftReport]) -> Result<ExitCode, CliError> {
        for report in drifted {
            match self.format {
                Format::Text => report.print(),
                Format::Json => self.array.push(report)?,
            }
        }
        if self.format == Format::Json {
            self.array.end()?;
        }
        let advice = match self.args.merge {
            false => {
                "--merge keeps what has changed beside the changes of the files, --overwrite replaces it by what the files say"
            }
            true => "write what has changed into the files, or take it back with --overwrite",
        };
        let guides = match drifted.len() {
            1 => "a guide has".to_owned(),
            count => format!("{count} guides have"),
        };
        print_error(&format!(
            "nothing is applied, as {guides} changed since the last run in ways that the files do not say: {advice}"
        ));
        Ok(ExitCode::FAILURE)
    }

    fn end(self) -> Result<ExitCode, CliError> {
        match self.format {
            Format::Text => self.counts.print(self.args),
            Format::Json => self.array.end()?,
        }
        Ok(match self.counts.outcomes.failed {
            0 if !self.is_declined => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}
