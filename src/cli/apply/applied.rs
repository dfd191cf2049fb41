//! The states in which `apply` has left a guide.
//!
//! A revision with an alias keeps each guide as it was last applied. A file that would take back
//! what has changed since, or that is an older copy, blocks its guide.

use std::collections::{BTreeMap, BTreeSet};

use console::Term;
use prost_types::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    ApplyArgs, ApplyGuide,
    ids::{TaskIds, put_back},
};
use crate::{
    cli::{
        CliError, PAGE_SIZE,
        changes::{self, Change},
        guide_file::GuideFile,
        guides::{self, StoredGuide},
        merge::{self, MergeConflict, MergedGuides},
        out::{error_json, sanitize},
        pairing::{KnownSteps, pairs},
        wording,
    },
    client::{CallError, Client},
    messages::{
        authored::authored,
        compare::compare_whole,
        managed_documents::{managed_document, values_mut},
    },
    proto::v1::{
        ChangeStart, CreateRevisionRequest, DeleteRevisionRequest, ListChangesRequest,
        RevisionCause, StepTranslation, TaskDocument, TaskRevision,
    },
};

/// The alias of the revision that keeps a guide as it was left.
const ALIAS: &str = "applied";
/// The note of such revisions.
const NOTE: &str = "kept by expertise apply";
/// How many of them are kept of a guide, so that each run can be undone, and the limit of
/// revisions is not reached.
const MAX_KEPT: usize = 20;

/// The guide as it was last applied, without its document. `None` if it was never applied.
pub(super) async fn find(client: &Client, task: &str) -> Result<Option<TaskRevision>, CallError> {
    guides::find_revision(client, task, ALIAS).await
}

/// Keeps a guide as it was left, and deletes the oldest of such revisions. Fails if somebody has
/// changed it meanwhile.
pub(super) async fn keep(client: &Client, task: &str, guide_etag: &str) -> Result<(), CallError> {
    let message = CreateRevisionRequest {
        task: task.to_owned(),
        note: NOTE.to_owned(),
        alias: ALIAS.to_owned(),
        guide_etag: guide_etag.to_owned(),
        request_id: Uuid::now_v7().to_string(),
    };
    client.call(message).await?;
    for revision in earlier(client, task).await?.into_iter().skip(MAX_KEPT) {
        let message = DeleteRevisionRequest {
            task: task.to_owned(),
            revision: revision.revision.to_string(),
        };
        client.call(message).await?;
    }
    Ok(())
}

/// The revisions that earlier runs have kept, the newest first. Those that got a name are left
/// alone.
async fn earlier(client: &Client, task: &str) -> Result<Vec<TaskRevision>, CallError> {
    let revisions = guides::list_revisions(client, task).await?.into_iter();
    let is_ours = |revision: &TaskRevision| {
        revision.cause() == RevisionCause::Requested
            && revision.note == NOTE
            && revision.aliases.is_empty()
    };
    Ok(revisions.filter(is_ours).collect())
}

/// Why a guide is not applied.
pub(super) struct Blocked {
    pub text: String,
    pub json: Value,
}

impl From<&CliError> for Blocked {
    fn from(error: &CliError) -> Self {
        Self {
            text: error.to_string(),
            json: json!({"error": error_json(error)}),
        }
    }
}

/// Decides what to do about what has changed since the guide was last applied: keeps what the
/// automatic translation has written, and merges where that is wanted. `base` is the guide as it
/// was last applied.
pub(super) async fn check(
    client: &Client,
    guide: &mut ApplyGuide,
    ids: &mut TaskIds,
    args: &ApplyArgs,
) -> Result<Option<Blocked>, CliError> {
    let is_merged = args.merge;
    let Some(stored) = guide.stored.clone() else {
        return Ok(None);
    };
    let Some(applied) = guide.applied.clone() else {
        keep_automatic(&mut guide.document, &stored.document, None);
        return Ok(None);
    };
    let base = match stored.guide_etag == applied.guide_etag {
        true => stored.document.clone(),
        false => {
            let number = applied.revision.to_string();
            guides::get_revision(client, &applied.task, &number)
                .await?
                .1
        }
    };
    guide.document = guide.file.document.clone();
    ids.adopt(&mut guide.document, &stored.document, Some(&base));
    keep_automatic(&mut guide.document, &stored.document, Some(&base));
    if args.overwrite {
        return Ok(None);
    }
    let mut sent = guide.document.clone();
    ids.resolve(&mut sent);
    let (pending, of_managed) = ids.take_pending(&mut sent);
    let mut of_base = guide.file.document.clone();
    TaskIds::default().adopt(&mut of_base, &base, None);
    let planned = merge::planned(client, &sent, &of_base, &stored).await;
    // What the server refuses is refused when it is sent.
    let Ok(planned) = planned else {
        return Ok(None);
    };
    let mut planned = planned.document.unwrap_or_default();
    put_back(pending, &base, &mut planned);
    if is_older(client, &applied, &base, &planned).await? {
        let (guid, name) = (&applied.task, sanitize(guides::name(&stored.document)));
        let by = who(&applied.subject);
        let when = wording::time(applied.created_ts);
        return Ok(Some(Blocked {
            text: format!(
                "{guid} {name} was applied since this copy of the file, by {by} ({when}): fetch \
                 the newest files first, or take that back with --overwrite"
            ),
            json: json!({"outcome": "stale", "guid": guid, "applied_by": applied.subject}),
        }));
    }
    let changes = changes::between(&base, &stored.document)?;
    if changes.is_empty() {
        return Ok(None);
    }
    for step in planned.steps.iter_mut().filter(|step| step.guid.is_empty()) {
        step.guid = Uuid::now_v7().to_string();
    }
    let three = MergedGuides {
        base: &base,
        ours: &planned,
        theirs: &stored.document,
    };
    let merged = three.merge();
    if let Ok(merged) = &merged
        && compare_whole(&with_ids(merged, &planned), &planned).is_empty()
    {
        // The file says what has changed, too.
        return Ok(None);
    }
    if is_merged && of_managed > 0 {
        return Err(CliError::Failed(
            "it has changed by other means since it was last applied, and a task that it manages \
             refers to a guide that the account does not have yet: apply that guide first, or \
             leave the reference out until it is applied"
                .to_owned(),
        ));
    }
    let missing = missing_changes(&base, &planned, changes)?;
    match merged {
        Ok(merged) if is_merged => {
            guide.document = merged;
            guide.merged = missing;
            guide.said = Some(planned);
            Ok(None)
        }
        Ok(_) => Ok(Some(
            drifted(client, &stored, &applied, missing, Vec::new()).await?,
        )),
        Err(failed) => {
            let conflicts = failed.conflicts.into_iter().filter(|_| is_merged);
            let conflicts = conflicts.map(|it| it.with_line(&guide.file, &planned));
            let conflicts = conflicts.collect();
            Ok(Some(
                drifted(client, &stored, &applied, missing, conflicts).await?,
            ))
        }
    }
}

/// The merged guide with the ids of new steps in the other one.
fn with_ids(merged: &TaskDocument, planned: &TaskDocument) -> TaskDocument {
    let mut merged = merged.clone();
    if merged.steps.len() == planned.steps.len() {
        for (step, planned) in merged.steps.iter_mut().zip(&planned.steps) {
            if step.guid.is_empty() {
                step.guid.clone_from(&planned.guid);
            }
            for value in values_mut(step) {
                if let Some(managed) = &mut value.task_json
                    && let Some(planned) = managed_document(planned, &value.key)
                {
                    **managed = with_ids(managed, planned);
                }
            }
        }
    }
    merged
}

/// Whether a file says what an earlier run has applied, and not what the last one has.
async fn is_older(
    client: &Client,
    applied: &TaskRevision,
    base: &TaskDocument,
    planned: &TaskDocument,
) -> Result<bool, CallError> {
    let said = content(planned);
    if said == content(base) {
        return Ok(false);
    }
    for revision in earlier(client, &applied.task).await? {
        if revision.revision >= applied.revision {
            continue;
        }
        let number = revision.revision.to_string();
        let (_, document) = guides::get_revision(client, &applied.task, &number).await?;
        if content(&document) == said {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What authors write of a guide, without ids, which differ where a step was deleted and made
/// again, and without what the automatic translation writes.
fn content(guide: &TaskDocument) -> TaskDocument {
    let mut content = authored(guide);
    strip(&mut content);
    content
}

fn strip(guide: &mut TaskDocument) {
    if let Some(task) = &mut guide.task {
        task.guid.clear();
        task.external_id = None;
        task.translations.retain(|_, it| it.locked != Some(false));
    }
    for step in &mut guide.steps {
        step.guid.clear();
        step.external_id = None;
        step.translations.retain(|_, it| it.locked != Some(false));
        values_mut(step)
            .filter_map(|it| it.task_json.as_mut())
            .for_each(|it| strip(it));
    }
}

/// Adds to a document what the automatic translation has written: languages that the document
/// leaves out, and those of which it has what was last applied.
pub(super) fn keep_automatic(
    document: &mut TaskDocument,
    stored: &TaskDocument,
    base: Option<&TaskDocument>,
) {
    if let (Some(task), Some(known)) = (&mut document.task, &stored.task) {
        let former = base.and_then(|base| base.task.as_ref());
        for (language, written) in known.translations.iter().filter(|(_, it)| !it.locked()) {
            let former = former.and_then(|it| it.translations.get(language));
            let said = task.translations.get(language);
            let is_former = |it: &&_| former.is_some_and(|former| former == *it);
            if said.is_none() || said.filter(is_former).is_some() {
                task.translations.insert(language.clone(), written.clone());
            }
        }
    }
    let known = KnownSteps::new(stored);
    let former = base.map(KnownSteps::new);
    for step in &mut document.steps {
        let Some(stored) = known.get(step) else {
            continue;
        };
        let former = former.as_ref().and_then(|known| known.get(stored));
        for (language, written) in stored.translations.iter().filter(|(_, it)| !it.locked()) {
            let former = former.and_then(|it| it.translations.get(language));
            let said = step.translations.get(language);
            let is_former = |it: &&StepTranslation| former.is_some_and(|former| former == *it);
            if said.is_none() || said.filter(is_former).is_some() {
                step.translations.insert(language.clone(), written.clone());
            }
        }
        for value in values_mut(step) {
            let former = former.and_then(|it| managed_document(it, &value.key));
            if let Some(managed) = &mut value.task_json
                && let Some(stored) = managed_document(stored, &value.key)
            {
                keep_automatic(managed, stored, former);
            }
        }
    }
}

/// What has changed in the guide, and not in the file.
fn missing_changes(
    base: &TaskDocument,
    planned: &TaskDocument,
    changes: Vec<Change>,
) -> Result<Vec<Change>, CliError> {
    let in_file = changes::between(base, planned)?;
    let is_missing = |change: &&Change| !in_file.iter().any(|other| other.is_same(change));
    let missing: Vec<Change> = changes.iter().filter(is_missing).cloned().collect();
    Ok(match missing.is_empty() {
        true => changes,
        false => missing,
    })
}

/// A guide that has changed by other means.
async fn drifted(
    client: &Client,
    stored: &StoredGuide,
    applied: &TaskRevision,
    changes: Vec<Change>,
    conflicts: Vec<MergeConflict>,
) -> Result<Blocked, CliError> {
    let authors = authors(client, applied, &changes).await?;
    let by: Vec<String> = authors
        .iter()
        .map(|(subject, changed)| format!("{} ({})", who(subject), wording::time(*changed)))
        .collect();
    let by = match by.is_empty() {
        true => "somebody whom the change log no longer names".to_owned(),
        false => by.join(", "),
    };
    let (guid, name) = (&applied.task, sanitize(guides::name(&stored.document)));
    let terminal = Term::stderr();
    let lines = changes::text(&changes, &terminal, 2);
    let conflicts_text: String = conflicts
        .iter()
        .map(|it| it.text("the file", &terminal))
        .collect();
    let advice = match conflicts.is_empty() {
        true => "--merge writes what has changed into the file, --overwrite takes it back",
        false => "write what has changed into the file, or take it back with --overwrite",
    };
    let changed_by = authors.iter().map(
        |(subject, changed)| json!({"subject": subject, "changed_ts": wording::time(*changed)}),
    );
    Ok(Blocked {
        text: format!(
            "{guid} {name} has changed since it was last applied, by {by}:\n\
             {lines}{conflicts_text}{advice}"
        ),
        json: json!({
            "outcome": "drifted",
            "guid": guid,
            "changed_by": changed_by.collect::<Value>(),
            "changes": changes,
            "conflicts": conflicts,
        }),
    })
}

fn who(subject: &str) -> String {
    match subject {
        "" => "somebody without a name".to_owned(),
        subject => sanitize(subject),
    }
}

/// Who has changed a guide since a revision of it, and when the last time, as far as the change
/// log goes back. `changes` name its managed tasks that have changed.
async fn authors(
    client: &Client,
    since: &TaskRevision,
    changes: &[Change],
) -> Result<BTreeMap<String, Option<Timestamp>>, CallError> {
    let managed = changes.iter().map(|change| change.task.as_str());
    let tasks: BTreeSet<&str> = managed.chain([since.task.as_str()]).collect();
    let key = |time: Option<Timestamp>| time.map(|time| (time.seconds, time.nanos));
    let mut authors: BTreeMap<String, Option<Timestamp>> = BTreeMap::new();
    for task in tasks.into_iter().filter(|task| !task.is_empty()) {
        let mut message = ListChangesRequest {
            start: ChangeStart::Oldest.into(),
            task: task.to_owned(),
            page_size: PAGE_SIZE,
            ..ListChangesRequest::default()
        };
        loop {
            let page = client.call(message.clone()).await?;
            let changes = page.changes.into_iter();
            for change in changes.filter(|it| key(it.changed_ts) > key(since.created_ts)) {
                let changed = authors.entry(change.subject).or_default();
                if key(*changed) < key(change.changed_ts) {
                    *changed = change.changed_ts;
                }
            }
            // If the cursor does not advance, newer changes are not in order yet.
            if page.caught_up || page.next_cursor == message.cursor {
                break;
            }
            message.start = ChangeStart::Unspecified.into();
            message.cursor = page.next_cursor;
        }
    }
    Ok(authors)
}

/// Writes what was merged into a file.
pub(super) fn write_merged(
    file: &GuideFile,
    said: &TaskDocument,
    after: &TaskDocument,
) -> Result<(), CliError> {
    // New steps have got other ids than in the dry run.
    let mut aligned = said.clone();
    let created: Vec<Option<String>> = pairs(said, after)
        .map(|(_, step)| step.map(|step| step.guid.clone()))
        .collect();
    for (step, guid) in aligned.steps.iter_mut().zip(created) {
        step.guid = guid.unwrap_or_else(|| step.guid.clone());
    }
    let text = file.updated(&aligned, after)?;
    crate::cli::export::write(&file.path, &text)
}
