//! The change feed: one entry for each task or step that a write changes.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use serde::{Deserialize, Serialize};
use strum_macros::{FromRepr, IntoStaticStr};
use uuid::Uuid;

use super::{
    changes::{Changes, StepChange, StepDeletion, TaskChange},
    etag::Etag,
    ids::{StepId, TaskId},
    step::Step,
    task::Task,
    time::Timestamp,
    translation::Language,
};

/// The maximum bytes of the field names of an entry. If there are more, languages are not named.
const MAX_FIELD_BYTES: usize = 1_000;
/// Separates the names of fields in [`NewEntry::fields`].
const FIELD_SEPARATOR: char = ',';

/// What happened to a task or step, with the numbers of the API, which are also stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(i16)]
pub enum ChangeKind {
    TaskCreated = 1,
    TaskUpdated = 2,
    TaskDeleted = 3,
    StepCreated = 4,
    StepUpdated = 5,
    StepDeleted = 6,
}

/// The rpcs that change tasks and steps, with the numbers that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, IntoStaticStr)]
#[repr(i16)]
pub enum WriteRpc {
    CreateTask = 1,
    UpdateTask = 2,
    DeleteTask = 3,
    ImportTask = 4,
    CreateStep = 5,
    UpdateStep = 6,
    DeleteStep = 7,
    WriteTranslations = 8,
    RestoreRevision = 9,
    RestoreStep = 10,
}

/// A position in the feed of an account: after the entry with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedCursor {
    pub position: i64,
    /// The transaction of the entry; nil before the first entry. If the entry at this position
    /// belongs to another transaction, the database was replaced since the cursor was created.
    pub transaction: Uuid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    After(FeedCursor),
    /// After everything that is committed.
    Now,
    Oldest,
}

#[derive(Clone, Debug)]
pub struct FeedEntry {
    pub cursor: FeedCursor,
    pub kind: ChangeKind,
    pub task: TaskId,
    pub step: Option<StepId>,
    pub etag: Option<Etag>,
    pub fields: Vec<String>,
    pub changed: Timestamp,
    pub subject: String,
    pub rpc: &'static str,
    /// Whether it is the last entry of its transaction.
    pub is_last: bool,
    pub step_count: i32,
}

#[derive(Clone, Debug)]
pub struct FeedPage {
    pub entries: Vec<FeedEntry>,
    pub next: FeedCursor,
    /// Whether it is after the newest entry that has a position.
    pub is_at_head: bool,
    /// Whether there was no entry after it.
    pub caught_up: bool,
}

#[derive(Debug, Default)]
pub struct NewEntries {
    /// The entries of tasks and steps that the write has in memory.
    pub known: Vec<NewEntry>,
    /// Steps that change because of other changes and are not read, by the fields that differ.
    pub followers: BTreeMap<String, Vec<StepId>>,
}

#[derive(Debug)]
pub struct NewEntry {
    pub kind: ChangeKind,
    pub task: TaskId,
    pub step: Option<StepId>,
    /// The version after the change; `None` if it was deleted.
    pub version: Option<i64>,
    /// The names of the fields that differ, separated by commas.
    pub fields: String,
    pub step_count: usize,
}

pub fn split_fields(fields: &str) -> Vec<String> {
    let names = fields.split(FIELD_SEPARATOR);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

impl NewEntry {
    pub fn for_task(kind: ChangeKind, task: TaskId, version: Option<i64>) -> Self {
        Self {
            kind,
            task,
            step: None,
            version,
            fields: String::new(),
            step_count: 0,
        }
    }

    pub fn for_step(kind: ChangeKind, task: TaskId, step: StepId, version: Option<i64>) -> Self {
        Self {
            step: Some(step),
            ..Self::for_task(kind, task, version)
        }
    }
}

impl NewEntries {
    pub fn count(&self) -> usize {
        self.known.len() + self.followers.values().map(Vec::len).sum::<usize>()
    }
}

/// The entries of a write. Renumbered steps have none, because callers do not see their numbers.
impl From<&Changes> for NewEntries {
    fn from(changes: &Changes) -> Self {
        let created = changes.tasks.iter().filter_map(|change| match change {
            TaskChange::Create(task) => Some((task.guid, 0)),
            TaskChange::Update { .. } | TaskChange::Delete { .. } => None,
        });
        // Steps of created tasks have no entries.
        let mut step_counts: HashMap<TaskId, usize> = created.collect();
        let mut steps = Vec::new();
        for StepChange { before, after, .. } in &changes.steps {
            if let Some(count) = step_counts.get_mut(&after.task) {
                *count += 1;
                continue;
            }
            let (kind, fields) = match before {
                None => (ChangeKind::StepCreated, String::new()),
                Some(before) => (ChangeKind::StepUpdated, changed_step_fields(before, after)),
            };
            let version = Some(after.row_version.version);
            steps.push(NewEntry {
                fields,
                ..NewEntry::for_step(kind, after.task, after.guid, version)
            });
        }
        for StepDeletion { step, task, .. } in &changes.deleted_steps {
            steps.push(NewEntry::for_step(
                ChangeKind::StepDeleted,
                *task,
                *step,
                None,
            ));
        }
        let mut known = Vec::new();
        let listed = LazyCell::new(|| steps_with_entries(changes));
        for change in &changes.tasks {
            known.extend(match change {
                TaskChange::Create(task) => {
                    let version = Some(task.row_version.version);
                    Some(NewEntry {
                        step_count: step_counts.get(&task.guid).copied().unwrap_or_default(),
                        ..NewEntry::for_task(ChangeKind::TaskCreated, task.guid, version)
                    })
                }
                TaskChange::Update { before, after } => {
                    let version = Some(after.row_version.version);
                    let fields = changed_task_fields(before, after, &listed);
                    fields.map(|fields| NewEntry {
                        fields,
                        ..NewEntry::for_task(ChangeKind::TaskUpdated, after.guid, version)
                    })
                }
                TaskChange::Delete { task, steps } => Some(NewEntry {
                    step_count: steps.len(),
                    ..NewEntry::for_task(ChangeKind::TaskDeleted, *task, None)
                }),
            });
        }
        known.append(&mut steps);
        for translated in &changes.translated_tasks {
            let version = Some(translated.version);
            known.push(NewEntry {
                fields: languages(&translated.written),
                ..NewEntry::for_task(ChangeKind::TaskUpdated, translated.task, version)
            });
        }
        for translated in &changes.translated_steps {
            let (task, step) = (translated.task, translated.id);
            let version = Some(translated.version);
            known.push(NewEntry {
                fields: languages(&translated.written),
                ..NewEntry::for_step(ChangeKind::StepUpdated, task, step, version)
            });
        }
        let followers = followers(changes);
        Self { known, followers }
    }
}

/// Steps that change because of other changes, by the fields that differ: wiring steps lose their
/// link, and subtask steps take the new name and external id of their task.
fn followers(changes: &Changes) -> BTreeMap<String, Vec<StepId>> {
    let mut fields: BTreeMap<StepId, Vec<&str>> = BTreeMap::new();
    for step in &changes.unlinked {
        fields.entry(*step).or_default().push("link");
    }
    for (step, followed) in &changes.following {
        fields.entry(*step).or_default().push(followed);
    }
    let mut followers: BTreeMap<String, Vec<StepId>> = BTreeMap::new();
    for (step, fields) in fields {
        let fields = fields.join(&FIELD_SEPARATOR.to_string());
        followers.entry(fields).or_default().push(step);
    }
    followers
}

fn steps_with_entries(changes: &Changes) -> HashSet<StepId> {
    let deleted = changes.deleted_steps.iter().map(|deleted| deleted.step);
    let created = changes.steps.iter().filter(|step| step.before.is_none());
    deleted.chain(created.map(|step| step.after.guid)).collect()
}

/// The fields in which two states of a task differ. `None` if only the list of steps differs and
/// the entries of created and deleted steps say how, because the remaining steps keep their order.
fn changed_task_fields(
    before: &Task,
    after: &Task,
    steps_with_entries: &HashSet<StepId>,
) -> Option<String> {
    let (was, is) = (&before.content, &after.content);
    let idx = |task: &Task| task.managed.map_or(0, |by| by.idx);
    let parent = |task: &Task| task.managed.map(|by| by.parent);
    let mut fields = ChangedFields::new([
        ("dependencies", was.dependencies == is.dependencies),
        ("external_id", was.external_id == is.external_id),
        ("idx", idx(before) == idx(after)),
        ("name", before.name == after.name),
        ("parent_guid", parent(before) == parent(after)),
        ("published", was.published == is.published),
        ("roles", was.roles == is.roles),
        ("type", before.managed.is_some() == after.managed.is_some()),
    ]);
    fields.add_languages(&was.translations, &is.translations);
    if before.steps != after.steps {
        let stays = |step: &&StepId| !steps_with_entries.contains(*step);
        let mut stayed = before.steps.iter().filter(stays);
        if fields.0.is_empty() && stayed.by_ref().eq(after.steps.iter().filter(stays)) {
            return None;
        }
        fields.0.insert("steps".to_owned());
    }
    Some(fields.into_text())
}

fn changed_step_fields(before: &Step, after: &Step) -> String {
    let (was, is) = (&before.content, &after.content);
    let (kind_was, kind_is) = (&before.kind, &after.kind);
    let subtask = |step: &Step| step.kind.subtask().map(|subtask| subtask.task);
    let product = |step: &Step| step.kind.subtask().map(|subtask| subtask.product);
    let mut fields = ChangedFields::new([
        ("body", was.body == is.body),
        ("cost", kind_was.cost() == kind_is.cost()),
        ("dependencies", was.dependencies == is.dependencies),
        ("external_id", was.external_id == is.external_id),
        ("feedback_config", kind_was.feedback() == kind_is.feedback()),
        ("instructions", was.instructions == is.instructions),
        ("link", before.link == after.link),
        ("looping", was.looping == is.looping),
        ("parts", was.parts == is.parts),
        ("published", was.published == is.published),
        ("r_data", before.r_data == after.r_data),
        ("skills", was.skills == is.skills),
        (
            "subtask_external_id",
            before.subtask_external_id == after.subtask_external_id,
        ),
        ("subtask_id", subtask(before) == subtask(after)),
        ("subtask_pid", product(before) == product(after)),
        ("tags", was.tags == is.tags),
        ("title", before.title == after.title),
    ]);
    fields.add_languages(&was.translations, &is.translations);
    fields.into_text()
}

struct ChangedFields(BTreeSet<String>);

impl ChangedFields {
    /// `fields` are the names of fields, and whether they are the same.
    fn new<const N: usize>(fields: [(&str, bool); N]) -> Self {
        let changed = fields.into_iter().filter(|(_, is_same)| !is_same);
        Self(changed.map(|(name, _)| name.to_owned()).collect())
    }

    /// Adds the languages in which translations differ.
    fn add_languages<T: PartialEq>(
        &mut self,
        before: &BTreeMap<Language, T>,
        after: &BTreeMap<Language, T>,
    ) {
        let all = before.keys().chain(after.keys());
        let changed = all.filter(|language| before.get(language) != after.get(language));
        self.0.extend(changed.map(translation));
    }

    fn into_text(mut self) -> String {
        if self.0.iter().map(String::len).sum::<usize>() > MAX_FIELD_BYTES {
            self.0.retain(|name| !name.starts_with(TRANSLATIONS));
            self.0.insert(TRANSLATIONS.to_owned());
        }
        let names: Vec<String> = self.0.into_iter().collect();
        names.join(&FIELD_SEPARATOR.to_string())
    }
}

const TRANSLATIONS: &str = "translations";

fn translation(language: &Language) -> String {
    format!("{TRANSLATIONS}.{language}")
}

fn languages<T>(by_language: &BTreeMap<Language, T>) -> String {
    ChangedFields(by_language.keys().map(translation).collect()).into_text()
}
