//! Guides that have changed by other means since they were last applied.
//!
//! A revision with an alias keeps each guide as `apply` has left it. What has changed since, and
//! is not in the guide's file, would be taken back unseen.

use std::collections::{BTreeMap, BTreeSet};

use console::Term;
use prost_types::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeMap};
use uuid::Uuid;

use super::{
    guides::DirectoryGuide,
    references::{self, References},
};
use crate::{
    cli::{
        CliError, PAGE_SIZE,
        changes::{self, Change, ChangeSubject},
        field_line::FieldLines,
        matching::{Matching, TaskIds, match_to_stored},
        merge::{self, MergeConflict, MergeOutcome, MergedGuides},
        out::{print_error, sanitize},
        revisions,
        transfer::{self, StoredGuide},
        wording,
    },
    client::{CallError, Client},
    config::ApplyArgs,
    domain::ids::TaskId,
    proto::v1::{
        ChangeStart, CreateRevisionRequest, DeleteRevisionRequest, ListChangesRequest,
        RevisionCause, TaskDocument, TaskRevision,
    },
};

/// The alias of the revision that keeps a guide as it was left.
const ALIAS: &str = "applied";
/// The note of such revisions.
const NOTE: &str = "kept by expertise apply";
/// How many of them are kept of a guide, so that each run can be undone, and the limit of
/// revisions is not reached.
const MAX_KEPT: usize = 20;

/// The revision that keeps a guide as it was left. `None` if it was never applied.
pub(super) async fn applied(
    client: &Client,
    task: &str,
) -> Result<Option<TaskRevision>, CallError> {
    match revisions::head(client, task, ALIAS).await {
        Ok(revision) => Ok(Some(revision)),
        Err(error) if error.reason == "REVISION_NOT_FOUND" => Ok(None),
        Err(error) => Err(error),
    }
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
    delete_old(client, task).await
}

/// Deletes the oldest revisions that [`keep`] has made.
async fn delete_old(client: &Client, task: &str) -> Result<(), CallError> {
    let Some(id) = TaskId::parse(task) else {
        return Ok(());
    };
    let is_ours = |revision: &TaskRevision| {
        revision.cause() == RevisionCause::Requested
            && revision.note == NOTE
            && revision.aliases.is_empty()
    };
    let kept = revisions::list(client, id).await?.into_iter();
    for revision in kept.filter(is_ours).skip(MAX_KEPT) {
        let message = DeleteRevisionRequest {
            task: task.to_owned(),
            revision: revision.revision.to_string(),
        };
        client.call(message).await?;
    }
    Ok(())
}

/// A guide that cannot be applied as it has changed.
pub(super) struct DriftReport {
    file: String,
    guid: String,
    name: String,
    /// What has changed since the guide was last applied, but for what its file says, too.
    changes: Vec<Change>,
    authors: Vec<Author>,
    /// Why the changes cannot be merged, if they were to be.
    conflicts: Vec<MergeConflict>,
    error: Option<CallError>,
}

/// Somebody who has changed a guide.
struct Author {
    /// Empty if the credentials named nobody.
    subject: String,
    /// When, the last time.
    changed: Option<Timestamp>,
}

/// Finds the guides that have changed by other means. Merges the changes where that is wanted;
/// the guides that are left over cannot be applied.
pub(super) async fn check(
    client: &Client,
    args: &ApplyArgs,
    guides: &mut [DirectoryGuide],
    references: &References,
) -> Result<Vec<DriftReport>, CliError> {
    let mut reports = Vec::new();
    if args.overwrite {
        return Ok(reports);
    }
    for guide in guides {
        let (Some(stored), Some(applied)) = (&guide.stored, &guide.applied) else {
            continue;
        };
        if stored.guide_etag == applied.guide_etag {
            continue;
        }
        let Some(drift) =
            Drift::find(client, guide, stored, applied, references, args.merge).await?
        else {
            continue;
        };
        let report = DriftReport {
            file: guide.file.display().to_string(),
            guid: applied.task.clone(),
            name: transfer::name(&stored.document).to_owned(),
            authors: authors(client, applied, &drift.changes).await?,
            changes: drift.changes,
            conflicts: Vec::new(),
            error: None,
        };
        match drift.merged {
            _ if !args.merge => reports.push(report),
            Ok(MergeOutcome::Merged { document, .. }) => {
                guide.document = *document;
                guide.merged = report.changes;
            }
            Ok(MergeOutcome::Conflicts(conflicts)) => {
                let conflicts = conflicts.into_iter();
                let lines = FieldLines::new(&guide.text);
                let conflicts = conflicts.map(|it| it.with_line(&lines, &drift.document));
                reports.push(DriftReport {
                    conflicts: conflicts.collect(),
                    ..report
                });
            }
            Err(error) => reports.push(DriftReport {
                error: Some(error),
                ..report
            }),
        }
    }
    Ok(reports)
}

/// What has changed in a guide by other means.
struct Drift {
    /// The document of the file, with the ids of the account.
    document: TaskDocument,
    changes: Vec<Change>,
    /// The changes merged with those of the document, unless the server refuses the document.
    merged: Result<MergeOutcome, CallError>,
}

impl Drift {
    /// `None` if the file says what has changed, too. Fails if the changes are to be merged, and
    /// cannot be as a managed task leads to a task that is yet to be created.
    async fn find(
        client: &Client,
        guide: &DirectoryGuide,
        stored: &StoredGuide,
        applied: &TaskRevision,
        references: &References,
        is_merged: bool,
    ) -> Result<Option<Self>, CliError> {
        let Some(task) = TaskId::parse(&applied.task) else {
            return Ok(None);
        };
        let number = applied.revision.to_string();
        let (_, base) = revisions::get(client, task, &number).await?;
        let changes = changes::between(&base, &stored.document)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let mut document = guide.source.clone();
        merge::match_added(&mut document, &base, &stored.document);
        let known = merge::with_steps_of(&base, &stored.document);
        match_to_stored(
            &mut document,
            &known,
            Matching::ByContent,
            &mut TaskIds::new(),
        );
        references.resolve(&mut document);
        let mut sent = document.clone();
        let (pending, of_managed) = references.take_pending(&mut sent);
        if is_merged && of_managed > 0 {
            let file = guide.file.display();
            return Err(CliError::Invalid(format!(
                "{file} has changed by other means since it was last applied, and a task that it \
                 manages refers to a guide that the account does not have yet: apply that guide \
                 first, or leave the reference out until it is applied"
            )));
        }
        let (mut planned, _) = match merge::planned(client, &base, &sent, stored).await {
            Ok(planned) => planned,
            Err(error) => {
                let merged = Err(guide.with_places(error, &sent));
                return Ok(Some(Self {
                    document,
                    changes,
                    merged,
                }));
            }
        };
        references::put_back(pending, &base, &mut planned);
        let new_steps = planned.steps.iter_mut();
        for step in new_steps.filter(|step| step.guid.is_empty()) {
            step.guid = Uuid::now_v7().to_string();
        }
        let guides = MergedGuides {
            base: &base,
            ours: &planned,
            theirs: &stored.document,
        };
        let merged = guides.merge()?;
        if let MergeOutcome::Merged { is_ours: true, .. } = &merged {
            return Ok(None);
        }
        let in_file = guides.changes_of(&planned)?;
        let mut by_place: BTreeMap<ChangeSubject<'_>, Vec<&Change>> = BTreeMap::new();
        for change in &in_file {
            by_place.entry(change.subject()).or_default().push(change);
        }
        let is_in_file = |change: &Change| {
            let others = by_place.get(&change.subject());
            others.is_some_and(|others| others.iter().any(|other| other.is_same(change)))
        };
        let missing = changes.iter().filter(|change| !is_in_file(change));
        let missing: Vec<Change> = missing.cloned().collect();
        Ok(Some(Self {
            document,
            changes: if missing.is_empty() { changes } else { missing },
            merged: Ok(merged),
        }))
    }
}

/// Who has changed a guide since a revision of it, as far as the change log goes back. `changes`
/// name its managed tasks that have changed.
async fn authors(
    client: &Client,
    since: &TaskRevision,
    changes: &[Change],
) -> Result<Vec<Author>, CallError> {
    let managed = changes.iter().map(|change| change.task.as_str());
    let tasks: BTreeSet<&str> = managed.chain([since.task.as_str()]).collect();
    let is_before = |one: Option<Timestamp>, other: Option<Timestamp>| {
        let key = |time: Option<Timestamp>| time.map(|time| (time.seconds, time.nanos));
        key(one) < key(other)
    };
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
            let later = page.changes.into_iter();
            for change in later.filter(|it| is_before(since.created_ts, it.changed_ts)) {
                let changed = authors.entry(change.subject).or_default();
                if is_before(*changed, change.changed_ts) {
                    *changed = change.changed_ts;
                }
            }
            // A page that does not move on has changes behind it that are not in order yet.
            if page.caught_up || page.next_cursor == message.cursor {
                break;
            }
            message.start = ChangeStart::Unspecified.into();
            message.cursor = page.next_cursor;
        }
    }
    let authors = authors.into_iter();
    let authors = authors.map(|(subject, changed)| Author { subject, changed });
    Ok(authors.collect())
}

impl DriftReport {
    /// Prints it for people.
    pub fn print(&self) {
        let file = sanitize(&self.file);
        let by = match self.authors.as_slice() {
            [] => "somebody whom the change log no longer names".to_owned(),
            authors => {
                let authors = authors.iter().map(|author| {
                    let subject = match author.subject.as_str() {
                        "" => "somebody without a name".to_owned(),
                        subject => sanitize(subject),
                    };
                    format!("{subject} ({})", wording::time(author.changed))
                });
                authors.collect::<Vec<String>>().join(", ")
            }
        };
        let (guid, name) = (&self.guid, sanitize(&self.name));
        print_error(&format!(
            "failed {file}: {guid} {name} has changed since it was last applied, by {by}:"
        ));
        let terminal = Term::stderr();
        let mut text = changes::text(&self.changes, &terminal, 2);
        for conflict in &self.conflicts {
            text.push_str(&conflict.text("the file", &terminal));
        }
        if let Some(error) = &self.error {
            text.push_str(&format!("it cannot be merged: {error}\n"));
        }
        text.lines().for_each(print_error);
    }
}

impl Serialize for DriftReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("file", &self.file)?;
        object.serialize_entry("outcome", "drifted")?;
        object.serialize_entry("guid", &self.guid)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("changes", &self.changes)?;
        let authors = self.authors.iter().map(|author| {
            serde_json::json!({
                "subject": author.subject,
                "changed_ts": wording::time(author.changed),
            })
        });
        object.serialize_entry("changed_by", &authors.collect::<Vec<_>>())?;
        if !self.conflicts.is_empty() {
            object.serialize_entry("conflicts", &self.conflicts)?;
        }
        if let Some(error) = &self.error {
            object.serialize_entry("error", error)?;
        }
        object.end()
    }
}
