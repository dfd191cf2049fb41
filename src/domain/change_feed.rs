//! The change feed: one entry for each task or step that a write changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    changes::{Changes, StepChange, TaskChange},
    etag::Etag,
    ids::{StepId, TaskId},
    step::{Step, StepContent},
    task::{Task, TaskContent},
    time::Timestamp,
    translation::Language,
};

/// Most bytes of the names of fields of an entry. Above, languages are not named.
const MAX_FIELD_BYTES: usize = 1_000;
/// Separates the names of fields in [`NewEntry::fields`].
const FIELD_SEPARATOR: char = ',';

/// What happened to a task or step, with the numbers of the contract, which are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    TaskCreated = 1,
    TaskUpdated = 2,
    TaskDeleted = 3,
    StepCreated = 4,
    StepUpdated = 5,
    StepDeleted = 6,
}

impl ChangeKind {
    const ALL: [Self; 6] = [
        Self::TaskCreated,
        Self::TaskUpdated,
        Self::TaskDeleted,
        Self::StepCreated,
        Self::StepUpdated,
        Self::StepDeleted,
    ];

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub fn number(self) -> i16 {
        self as i16
    }
}

/// The rpcs that change tasks and steps, with the numbers that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl WriteRpc {
    const ALL: [(Self, &'static str); 10] = [
        (Self::CreateTask, "CreateTask"),
        (Self::UpdateTask, "UpdateTask"),
        (Self::DeleteTask, "DeleteTask"),
        (Self::ImportTask, "ImportTask"),
        (Self::CreateStep, "CreateStep"),
        (Self::UpdateStep, "UpdateStep"),
        (Self::DeleteStep, "DeleteStep"),
        (Self::WriteTranslations, "WriteTranslations"),
        (Self::RestoreRevision, "RestoreRevision"),
        (Self::RestoreStep, "RestoreStep"),
    ];

    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn name_of(number: i16) -> Option<&'static str> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(rpc, _)| rpc.number() == number);
        found.map(|(_, name)| name)
    }
}

/// A position in the feed of an account: behind the entry with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedCursor {
    pub position: i64,
    /// The transaction of the entry; nil before the first one. If the entry there is of another
    /// one, the database is not what it was when the cursor was made.
    pub transaction: Uuid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// Behind a cursor.
    After(FeedCursor),
    /// Behind everything that is committed.
    Now,
    /// At the oldest entry.
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
    /// Whether it is the last one of its transaction.
    pub is_last: bool,
    pub step_count: i32,
}

#[derive(Clone, Debug)]
pub struct FeedPage {
    pub entries: Vec<FeedEntry>,
    pub next: FeedCursor,
    /// Whether it is behind the newest entry that has a position.
    pub is_at_head: bool,
    /// Whether there was nothing behind it at all.
    pub caught_up: bool,
}

#[derive(Debug, Default)]
pub struct NewEntries {
    /// Those of tasks and steps that the write has in memory.
    pub known: Vec<NewEntry>,
    /// Steps that follow others and are changed unread, by the fields that differ.
    pub followers: BTreeMap<&'static str, Vec<StepId>>,
}

#[derive(Debug)]
pub struct NewEntry {
    pub kind: ChangeKind,
    pub task: TaskId,
    pub step: Option<StepId>,
    /// The version after the change; `None` if it was deleted.
    pub version: Option<i64>,
    /// The names of the fields that differ, with commas between them.
    pub fields: String,
    pub step_count: usize,
}

pub fn split_fields(fields: &str) -> Vec<String> {
    let names = fields.split(FIELD_SEPARATOR);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

impl NewEntries {
    pub fn count(&self) -> usize {
        self.known.len() + self.followers.values().map(Vec::len).sum::<usize>()
    }

    /// The entries of a write. Renumbered steps have none, as no caller sees that.
    pub fn of(changes: &Changes) -> Self {
        let created = changes.tasks.iter().filter_map(|change| match change {
            TaskChange::Create(task) => Some((task.guid, 0)),
            TaskChange::Update { .. } | TaskChange::Delete { .. } => None,
        });
        let mut created: HashMap<TaskId, usize> = created.collect();
        let mut steps = Vec::new();
        for step in &changes.steps {
            match created.get_mut(&step.after.task) {
                Some(count) => *count += 1,
                None => steps.push(of_step(step)),
            }
        }
        let listed = ListChanges::of(changes);
        let tasks = changes.tasks.iter();
        let tasks = tasks.filter_map(|task| of_task(task, &created, &listed));
        let mut known: Vec<NewEntry> = tasks.chain(steps).collect();
        known.extend(changes.deleted_steps.iter().map(|deleted| NewEntry {
            kind: ChangeKind::StepDeleted,
            task: deleted.task,
            step: Some(deleted.step),
            version: None,
            fields: String::new(),
            step_count: 0,
        }));
        let translated = changes.translated_tasks.iter().map(|translated| NewEntry {
            kind: ChangeKind::TaskUpdated,
            task: translated.task,
            step: None,
            version: Some(translated.version),
            fields: languages(translated.by_language.iter().map(|(language, _)| language)),
            step_count: 0,
        });
        known.extend(translated);
        let translated = changes.translated_steps.iter().map(|translated| NewEntry {
            kind: ChangeKind::StepUpdated,
            task: translated.task,
            step: Some(translated.step),
            version: Some(translated.version),
            fields: languages(translated.by_language.iter().map(|(language, _)| language)),
            step_count: 0,
        });
        known.extend(translated);
        Self {
            known,
            followers: followers(changes),
        }
    }
}

/// Steps that change with others: wiring steps lose their link, and subtask steps take the new
/// title of their task.
fn followers(changes: &Changes) -> BTreeMap<&'static str, Vec<StepId>> {
    let unlinked: BTreeSet<StepId> = changes.unlinked.iter().copied().collect();
    let retitled: BTreeSet<StepId> = changes.retitled.iter().copied().collect();
    let mut followers: BTreeMap<&str, Vec<StepId>> = BTreeMap::new();
    for step in unlinked.union(&retitled) {
        let fields = match (unlinked.contains(step), retitled.contains(step)) {
            (true, true) => "link,title",
            (true, false) => "link",
            (false, _) => "title",
        };
        followers.entry(fields).or_default().push(*step);
    }
    followers
}

fn of_task(
    change: &TaskChange,
    created: &HashMap<TaskId, usize>,
    listed: &ListChanges,
) -> Option<NewEntry> {
    let (kind, task, version, fields, step_count) = match change {
        TaskChange::Create(task) => (
            ChangeKind::TaskCreated,
            task.guid,
            Some(task.row_version.version),
            String::new(),
            created.get(&task.guid).copied().unwrap_or_default(),
        ),
        TaskChange::Update { before, after } => (
            ChangeKind::TaskUpdated,
            after.guid,
            Some(after.row_version.version),
            changed_task_fields(before, after, listed)?,
            0,
        ),
        TaskChange::Delete { task, steps } => (
            ChangeKind::TaskDeleted,
            *task,
            None,
            String::new(),
            steps.len(),
        ),
    };
    Some(NewEntry {
        kind,
        task,
        step: None,
        version,
        fields,
        step_count,
    })
}

/// The fields in which two states of a task differ. `None` if the entries of its created and
/// deleted steps say all of it.
fn changed_task_fields(before: &Task, after: &Task, listed: &ListChanges) -> Option<String> {
    let Task {
        guid: _,
        account: _,
        name,
        product: _,
        content:
            TaskContent {
                dependencies,
                published,
                roles,
                external_id,
                translations,
            },
        managed,
        steps,
        // No caller sees it.
        numbering: _,
        // A write does not change it.
        index: _,
        row_version: _,
    } = after;
    let mut fields = ChangedFields::default();
    fields.add("dependencies", *dependencies == before.content.dependencies);
    fields.add("external_id", *external_id == before.content.external_id);
    let parts = |task: &Task| task.managed.map(|managed| (managed.parent, managed.idx));
    let (was, is) = (parts(before), parts(after));
    fields.add(
        "idx",
        was.map(|it| it.1).unwrap_or(0) == is.map(|it| it.1).unwrap_or(0),
    );
    fields.add("name", *name == before.name);
    fields.add("parent_guid", was.map(|it| it.0) == is.map(|it| it.0));
    fields.add("published", *published == before.content.published);
    fields.add("roles", *roles == before.content.roles);
    fields.add("type", managed.is_some() == before.managed.is_some());
    fields.add_languages(&before.content.translations, translations);
    let has_list_changes = *steps != before.steps;
    if fields.0.is_empty() && has_list_changes && listed.explain(before, after) {
        return None;
    }
    fields.add("steps", !has_list_changes);
    Some(fields.into_text())
}

/// The steps that a write creates or deletes, each with an entry of its own.
struct ListChanges(HashSet<StepId>);

impl ListChanges {
    fn of(changes: &Changes) -> Self {
        let is_update = |change: &TaskChange| matches!(change, TaskChange::Update { .. });
        if !changes.tasks.iter().any(is_update) {
            // Nobody asks.
            return Self(HashSet::new());
        }
        let deleted = changes.deleted_steps.iter().map(|deleted| deleted.step);
        let created = changes.steps.iter().filter(|step| step.before.is_none());
        let created = created.map(|step| step.after.guid);
        Self(created.chain(deleted).collect())
    }

    /// Whether they are all in which the lists of steps differ: those that stay are in their order.
    fn explain(&self, before: &Task, after: &Task) -> bool {
        let stays = |step: &&StepId| !self.0.contains(*step);
        let stayed = before.steps.iter().filter(stays);
        stayed.eq(after.steps.iter().filter(stays))
    }
}

fn of_step(change: &StepChange) -> NewEntry {
    let StepChange { before, after, .. } = change;
    NewEntry {
        kind: match before {
            None => ChangeKind::StepCreated,
            Some(_) => ChangeKind::StepUpdated,
        },
        task: after.task,
        step: Some(after.guid),
        version: Some(after.row_version.version),
        fields: before
            .as_ref()
            .map_or_else(String::new, |before| changed_step_fields(before, after)),
        step_count: 0,
    }
}

fn changed_step_fields(before: &Step, after: &Step) -> String {
    let Step {
        guid: _,
        account: _,
        task: _,
        product: _,
        kind,
        title,
        content:
            StepContent {
                body,
                dependencies,
                external_id,
                instructions,
                looping,
                parts,
                published,
                skills,
                tags,
                translations,
            },
        link,
        r_data,
        row_version: _,
    } = after;
    let (was, content) = (&before.kind, &before.content);
    let mut fields = ChangedFields::default();
    fields.add("body", *body == content.body);
    fields.add("cost", kind.cost() == was.cost());
    fields.add("dependencies", *dependencies == content.dependencies);
    fields.add("external_id", *external_id == content.external_id);
    fields.add("feedback_config", kind.feedback() == was.feedback());
    fields.add("instructions", *instructions == content.instructions);
    fields.add("link", *link == before.link);
    fields.add("looping", *looping == content.looping);
    fields.add("parts", *parts == content.parts);
    fields.add("published", *published == content.published);
    fields.add("r_data", *r_data == before.r_data);
    fields.add("skills", *skills == content.skills);
    let (target, former) = (kind.subtask(), was.subtask());
    let parts = |subtask: Option<super::step::SubtaskRef>| {
        subtask.map(|subtask| (subtask.task, subtask.product))
    };
    let (target, former) = (parts(target), parts(former));
    fields.add("subtask_id", target.map(|it| it.0) == former.map(|it| it.0));
    fields.add(
        "subtask_pid",
        target.map(|it| it.1) == former.map(|it| it.1),
    );
    fields.add("tags", *tags == content.tags);
    fields.add("title", *title == before.title);
    fields.add_languages(&content.translations, translations);
    fields.into_text()
}

#[derive(Default)]
struct ChangedFields(BTreeSet<String>);

impl ChangedFields {
    fn add(&mut self, name: &str, is_same: bool) {
        if !is_same {
            self.0.insert(name.to_owned());
        }
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

/// The field of each of these languages.
fn languages<'l>(languages: impl Iterator<Item = &'l Language>) -> String {
    ChangedFields(languages.map(translation).collect()).into_text()
}
