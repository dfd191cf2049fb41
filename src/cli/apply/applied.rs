//! Applied states of guides.
//!
//! A revision with an alias keeps the last applied state of each guide. A file blocks its guide if
//! it would revert changes that were made since the file's base, or if it is an older copy.

use std::collections::{BTreeMap, BTreeSet};

use prost_types::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    ApplyArgs, ApplyGuide,
    ids::{TaskIds, put_back},
    older::{has_same_content, is_older},
};
use crate::{
    cli::{
        CliError, PAGE_SIZE, automatic,
        changes::{self, Change},
        export,
        guides::{self, StoredGuide},
        merge::{self, MergeConflict},
        out::{error_json, sanitize},
        pairing::{Locking, lock_changed},
        wording,
    },
    client::{CallError, Client},
    files,
    messages::{
        compare::compare_whole,
        managed_documents::{all_managed, all_steps},
    },
    proto::v1::{
        ChangeStart, CreateRevisionRequest, DeleteRevisionRequest, ListChangesRequest,
        RevisionCause, Step, TaskDocument, TaskRevision,
    },
};

/// The alias of the revision with the last applied state.
const ALIAS: &str = "applied";
/// The note of such revisions.
const NOTE: &str = "kept by expertise apply";
/// How many of these revisions each guide keeps. The last runs can be undone, and the limit of
/// revisions is not reached.
const MAX_KEPT: usize = 20;

/// The last applied state of a guide.
pub(super) struct AppliedState {
    /// The revision of that state.
    pub revision: TaskRevision,
    pub document: TaskDocument,
}

/// The last applied state of a guide; `None` if it was never applied.
pub(super) async fn find(
    client: &Client,
    stored: &StoredGuide,
) -> Result<Option<AppliedState>, CallError> {
    let task = guides::guid(&stored.document);
    let Some(revision) = guides::find_revision(client, task, ALIAS).await? else {
        return Ok(None);
    };
    let document = match stored.guide_etag == revision.guide_etag {
        true => stored.document.clone(),
        false => {
            let number = revision.revision.to_string();
            guides::get_revision(client, task, &number).await?.1
        }
    };
    Ok(Some(AppliedState { revision, document }))
}

/// Saves the applied state of a guide as a revision, and deletes the oldest of these revisions.
/// Fails if the guide has changed meanwhile.
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

/// The revisions of earlier runs, the newest first, without revisions that have another alias.
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

/// Decides how to handle what others have changed since the base of the file. Keeps automatic
/// translations, and merges if requested.
pub(super) async fn check(
    client: &Client,
    guide: &mut ApplyGuide,
    ids: &TaskIds,
    args: &ApplyArgs,
) -> Result<Option<Blocked>, CliError> {
    let Some(stored) = &guide.stored else {
        return Ok(None);
    };
    let base = guide.base().cloned();
    automatic::keep(&mut guide.document, &stored.document, base.as_ref());
    let locking = Locking {
        keep_unlocked: args.keep_unlocked,
        may_unlock: false,
    };
    let only_new = Locking {
        keep_unlocked: false,
        may_unlock: true,
    };
    if !lock_changed(&mut guide.document.clone(), &stored.document, only_new).is_empty() {
        // A text of an earlier run is no change by a person.
        let task = guides::guid(&stored.document);
        for revision in earlier(client, task).await? {
            let revision = revision.revision.to_string();
            let (_, former) = guides::get_revision(client, task, &revision).await?;
            automatic::keep(&mut guide.document, &stored.document, Some(&former));
        }
    }
    guide.notes = lock_changed(&mut guide.document, &stored.document, locking);
    let Some(base) = base.as_ref().filter(|_| !args.overwrite) else {
        return Ok(None);
    };
    let mut sent = guide.document.clone();
    ids.resolve(&mut sent);
    let (pending, of_managed) = ids.take_pending(&mut sent);
    let mut of_base = guide.file.document.clone();
    TaskIds::default().adopt(&mut of_base, base, None);
    let planned = merge::planned(client, &sent, &of_base, stored).await;
    let planned = match planned {
        Ok(planned) => planned,
        Err(error) if error.transient => return Err(error.into()),
        // The server refuses it again when it is sent.
        Err(_) => return Ok(None),
    };
    let mut planned = planned.document.unwrap_or_default();
    put_back(pending, Some(base), &mut planned);
    if let Some(AppliedState {
        revision: applied,
        document,
    }) = &guide.applied
        && !has_same_content(&planned, &stored.document)
        && is_older(client, applied, document, &planned).await?
    {
        let (guid, name) = (&applied.task, sanitize(guides::name(&stored.document)));
        let by = who(&applied.subject);
        let when = wording::time(applied.created_ts);
        return Ok(Some(Blocked {
            text: format!(
                "{by} applied a newer version of {guid} {name} ({when}): fetch the newest files \
                 first, or undo that with --overwrite"
            ),
            json: json!({
                "outcome": "stale",
                "guid": guid,
                "applied_by": applied.subject,
                "applied_ts": when,
            }),
        }));
    }
    for step in planned.steps.iter_mut().filter(|step| step.guid.is_empty()) {
        step.guid = Uuid::now_v7().to_string();
    }
    let ours = automatic::without(&planned, &[&stored.document, base]);
    let [base, theirs] = [base, &stored.document].map(|guide| automatic::without(guide, &[]));
    let changes = changes::between(&base, &theirs);
    if changes.is_empty() {
        return Ok(None);
    }
    let merged = merge::merge(&guide.file, &base, &ours, &theirs);
    let (changes, merged) = match merged {
        // The file already has the changes.
        Ok(merged) if compare_whole(&merged, &ours).is_empty() => return Ok(None),
        Ok(merged) => (changes::between(&ours, &merged), Ok(merged)),
        Err(failed) => (changes, Err(failed)),
    };
    if args.merge && of_managed > 0 {
        return Err(CliError::Failed(
            "others have changed it since the file was applied or exported, and a task that it manages \
             refers to a guide that the account does not have yet: apply that guide first, or \
             leave the reference out until it is applied"
                .to_owned(),
        ));
    }
    let conflicts = match merged {
        Ok(mut merged) if args.merge => {
            let path = &guide.file.path;
            files::check_replaceable(path)
                .map_err(|reason| CliError::cannot_write(&path.display().to_string(), reason))?;
            merge::clear_new_ids(&mut merged, &stored.document);
            automatic::keep(&mut merged, &stored.document, None);
            guide.notes = lock_changed(&mut merged, &stored.document, locking);
            guide.document = merged;
            guide.merged = changes;
            guide.said = Some(planned);
            return Ok(None);
        }
        Err(failed) if args.merge => failed.conflicts,
        _ => Vec::new(),
    };
    let applied = guide.applied.as_ref().map(|it| &it.revision);
    let since = match (applied, &guide.recorded) {
        (Some(applied), Some(recorded)) if recorded.guide_etag == applied.guide_etag => {
            ("it was last applied", applied.created_ts)
        }
        (_, Some(recorded)) => (
            "this file was last applied or exported here",
            last_change(&recorded.document),
        ),
        (applied, None) => ("it was last applied", applied.and_then(|it| it.created_ts)),
    };
    let drifted = drifted(client, stored, since, changes, conflicts).await?;
    Ok(Some(drifted))
}

/// A guide that others have changed.
async fn drifted(
    client: &Client,
    stored: &StoredGuide,
    (since, time): (&str, Option<Timestamp>),
    changes: Vec<Change>,
    conflicts: Vec<MergeConflict>,
) -> Result<Blocked, CliError> {
    let guid = guides::guid(&stored.document);
    let authors = authors(client, guid, time, &changes).await?;
    let by: Vec<String> = authors
        .iter()
        .map(|(subject, changed)| format!("{} ({})", who(subject), wording::time(*changed)))
        .collect();
    let by = match by.is_empty() {
        true => "an unknown user".to_owned(),
        false => by.join(", "),
    };
    let name = sanitize(guides::name(&stored.document));
    let lines = changes::text(&changes, 2);
    let conflicts_text: String = conflicts.iter().map(|it| it.text("the file")).collect();
    let advice = match conflicts.is_empty() {
        true => "--merge writes these changes into the file, --overwrite reverts them",
        false => "write the stored values into the file, or revert them with --overwrite",
    };
    let changed_by = authors.iter().map(
        |(subject, changed)| json!({"subject": subject, "changed_ts": wording::time(*changed)}),
    );
    Ok(Blocked {
        text: format!(
            "{guid} {name} has changed since {since}, by {by}:\n\
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
        "" => "an anonymous user".to_owned(),
        subject => sanitize(subject),
    }
}

/// When a guide was last changed, in the state of this document.
fn last_change(guide: &TaskDocument) -> Option<Timestamp> {
    let managed = all_managed(&guide.steps)
        .into_iter()
        .map(|(_, below)| below);
    let tasks = managed.chain([guide]).filter_map(|it| it.task.as_ref());
    let steps = all_steps(&guide.steps).into_iter();
    let times = steps.map(|step| step.modified_ts);
    let times = times.chain(tasks.map(|task| task.modified_ts)).flatten();
    times.max_by_key(|time| (time.seconds, time.nanos))
}

/// Who has changed a guide since a time, and when last, as far as the change feed goes back.
/// `changes` name its managed tasks that have changed.
async fn authors(
    client: &Client,
    guide: &str,
    since: Option<Timestamp>,
    changes: &[Change],
) -> Result<BTreeMap<String, Option<Timestamp>>, CallError> {
    let managed = changes.iter().map(|change| change.task.as_str());
    let tasks: BTreeSet<&str> = managed.chain([guide]).collect();
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
            for change in changes.filter(|it| key(it.changed_ts) > key(since)) {
                let changed = authors.entry(change.subject).or_default();
                if key(*changed) < key(change.changed_ts) {
                    *changed = change.changed_ts;
                }
            }
            // The cursor does not advance if newer changes are not in order yet.
            if page.caught_up || page.next_cursor == message.cursor {
                break;
            }
            message.start = ChangeStart::Unspecified.into();
            message.cursor = page.next_cursor;
        }
    }
    Ok(authors)
}

/// Writes the result of a merge into a file.
pub(super) fn write_merged(
    guide: &ApplyGuide,
    said: &TaskDocument,
    after: &TaskDocument,
) -> Result<(), CliError> {
    let file = &guide.file;
    let stored = guide.stored.iter().map(|it| &it.document);
    let before = stored.chain(guide.base());
    let known: BTreeSet<String> = before.flat_map(merge::guids).collect();
    // The ids of the file's new steps differ from those in the dry run.
    let mut aligned = said.clone();
    let new = aligned
        .steps
        .iter_mut()
        .filter(|it| !known.contains(&it.guid));
    let mut created = after.steps.iter().filter(|it| !known.contains(&it.guid));
    for step in new {
        let is_same =
            |it: &&Step| it.r#type == step.r#type && it.link.is_empty() == step.link.is_empty();
        if let Some(created) = created.find(is_same) {
            step.guid.clone_from(&created.guid);
        }
    }
    let text = file.updated(&aligned, after);
    export::write(&file.path, &text).map_err(|error| {
        CliError::Failed(format!(
            "{error}: the stored guide has the merged changes and the file does not, so repeat \
             --merge"
        ))
    })
}
