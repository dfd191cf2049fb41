//! The guides of a directory and what the account has of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::{Path, PathBuf},
};

use super::{
    drift,
    references::References,
    report::ApplyReport,
    source::{DocumentFile, nothing_is_applied},
};
use crate::{
    cli::{
        CliError,
        changes::Change,
        field_line::SentText,
        import::has_same_paths,
        matching::{Matching, match_to_stored},
        out::{print_error, sanitize},
        transfer::{self, StoredGuide},
    },
    client::{CallError, Client},
    proto::v1::{Task, TaskDocument, TaskRevision, TaskType},
};

/// A guide of the directory.
pub(super) struct DirectoryGuide {
    pub file: PathBuf,
    pub text: String,
    /// The document as the file has it.
    pub source: TaskDocument,
    /// The document; it has the account's ids as far as the account has the guide.
    pub document: TaskDocument,
    /// The id of its task in the account, if it has one.
    pub guid: Option<String>,
    /// The guide as the account has it.
    pub stored: Option<StoredGuide>,
    /// The revision that keeps it as it was last applied.
    pub applied: Option<TaskRevision>,
    /// What has changed by other means and is merged with the document.
    pub merged: Vec<Change>,
    /// The report of its creation, if it was created without some of its steps.
    pub incomplete: Option<ApplyReport>,
    /// Whether the account had it before.
    was_stored: bool,
}

impl DirectoryGuide {
    /// Reads what the account has of it, if anything.
    pub async fn read_stored(
        &mut self,
        client: &Client,
        references: &mut References,
    ) -> Result<(), CliError> {
        let Some(guid) = &self.guid else {
            references.add_pending(&self.document);
            return Ok(());
        };
        let stored = transfer::export_with_etag(client, guid).await?;
        references.remove_pending(&self.document);
        match_to_stored(
            &mut self.document,
            &stored.document,
            Matching::ByContent,
            &mut references.ids,
        );
        self.stored = Some(stored);
        Ok(())
    }

    /// Reads the revision that keeps it as it was last applied, if the account has it.
    pub async fn read_applied(&mut self, client: &Client) -> Result<(), CallError> {
        if let Some(guid) = &self.guid {
            self.applied = drift::applied(client, guid).await?;
        }
        Ok(())
    }

    /// The file, if paths in this document lead to the same fields there.
    pub fn sent_text(&self, document: &TaskDocument) -> Option<SentText<'_>> {
        let is_as_in_file = self.merged.is_empty() && has_same_paths(document, &self.source);
        is_as_in_file.then_some(SentText {
            text: &self.text,
            document: &self.source,
        })
    }

    /// Adds the places in the file to the fields of this document that a server refuses.
    pub fn with_places(&self, error: CallError, sent: &TaskDocument) -> CallError {
        match self.sent_text(sent) {
            Some(text) => text.with_places(error),
            None => error,
        }
    }

    /// What finds its task without an id: name and product.
    pub fn key(&self) -> TaskKey {
        self.document.task.as_ref().map(key).unwrap_or_default()
    }

    pub fn needs_update(&self) -> bool {
        self.incomplete.is_some() || self.was_stored
    }
}

/// What finds a task without its id: name and product.
pub(super) type TaskKey = (String, i64);

/// Finds the task of each document: the one with its id, or else with its external id, or else
/// the first standard task without an external id that has its name and product and that no other
/// document is of. Fails where it is not clear which task a document is of.
pub(super) fn pair(
    sources: Vec<DocumentFile>,
    tasks: &[Task],
) -> Result<Vec<DirectoryGuide>, CliError> {
    let ids: BTreeSet<&str> = tasks.iter().map(|task| task.guid.as_str()).collect();
    let by_external_id: BTreeMap<&str, &str> = tasks
        .iter()
        .filter_map(|task| Some((task.external_id.as_deref()?, task.guid.as_str())))
        .collect();
    let known_id = |source: &DocumentFile| {
        let guid = transfer::guid(&source.document).to_ascii_lowercase();
        let by_external_id = || {
            by_external_id
                .get(external_id(source)?)
                .map(|guid| (*guid).to_owned())
        };
        let known = ids.contains(guid.as_str()).then_some(guid);
        known.or_else(by_external_id)
    };
    let with_id = sources.iter();
    let with_id = with_id.filter_map(|source| Some((known_id(source)?, source)));
    let without_id = sources.iter().filter(|source| known_id(source).is_none());
    let without_id: Vec<_> = without_id.collect();
    let by_name = TasksByName::new(tasks, &with_id.collect());
    by_name.check(&without_id)?;
    let mut free = by_name.free;
    let guide = |source: DocumentFile| {
        let guid = known_id(&source).or_else(|| {
            let next = free.get_mut(&key_of(&source))?.pop_front()?;
            Some(next.to_owned())
        });
        DirectoryGuide {
            was_stored: guid.is_some(),
            file: source.file,
            text: source.text,
            source: source.document.clone(),
            document: source.document,
            guid,
            stored: None,
            applied: None,
            merged: Vec::new(),
            incomplete: None,
        }
    };
    Ok(sources.into_iter().map(guide).collect())
}

/// The standard tasks of the account by name and product.
struct TasksByName<'tasks, 'sources> {
    /// Tasks without an external id that no document names by id.
    free: BTreeMap<TaskKey, VecDeque<&'tasks str>>,
    /// For those that a document names by id: its file.
    taken: BTreeMap<TaskKey, &'sources Path>,
    /// Tasks with an external id that no document names: each is the task of that id, whatever its
    /// name.
    identified: BTreeMap<TaskKey, &'tasks Task>,
}

impl<'tasks, 'sources> TasksByName<'tasks, 'sources> {
    fn new(tasks: &'tasks [Task], by_id: &BTreeMap<String, &'sources DocumentFile>) -> Self {
        let mut free: BTreeMap<TaskKey, VecDeque<&str>> = BTreeMap::new();
        let (mut taken, mut identified) = (BTreeMap::new(), BTreeMap::new());
        let standard = |task: &&Task| task.r#type() == TaskType::Standard;
        for task in tasks.iter().filter(standard) {
            match by_id.get(&task.guid) {
                Some(source) if key_of(source) == key(task) => {
                    taken.insert(key(task), source.file.as_path());
                }
                // It is about to be renamed, and leaves its name to another.
                Some(_) => {}
                None if task.external_id.is_some() => {
                    identified.insert(key(task), task);
                }
                None => free.entry(key(task)).or_default().push_back(&task.guid),
            }
        }
        Self {
            free,
            taken,
            identified,
        }
    }

    /// Fails where it is not clear which task a document without a known id is of, and warns
    /// where it probably was not meant to become a task of its own.
    fn check(&self, sources: &[&DocumentFile]) -> Result<(), CliError> {
        let mut by_key: BTreeMap<TaskKey, Vec<&DocumentFile>> = BTreeMap::new();
        for source in sources {
            by_key.entry(key_of(source)).or_default().push(source);
        }
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for (key, sources) in &by_key {
            let candidates = self.free.get(key).into_iter().flatten();
            let candidates: Vec<&str> = candidates.copied().collect();
            let other = self.taken.get(key).copied();
            errors.extend(ambiguity_error(sources, &candidates));
            if let Some(other) = other {
                let left_over = sources.iter().skip(candidates.len());
                errors.extend(left_over.filter_map(|source| second_task_error(source, other)));
            }
            warnings.extend(second_task_warning(sources, candidates.len(), other));
            if let Some(task) = self.identified.get(key) {
                let mut left_over = sources.iter().skip(candidates.len());
                warnings.extend(left_over.find_map(|source| identified_warning(source, task)));
            }
            let all = sources.iter();
            warnings.extend(all.filter_map(|source| managed_task_warning(source)));
        }
        if !errors.is_empty() {
            return Err(nothing_is_applied(errors));
        }
        warnings.iter().for_each(|warning| print_error(warning));
        Ok(())
    }
}

fn key_of(source: &DocumentFile) -> TaskKey {
    source.document.task.as_ref().map(key).unwrap_or_default()
}

fn external_id(source: &DocumentFile) -> Option<&str> {
    let id = source.document.task.as_ref()?.external_id.as_deref()?;
    Some(id).filter(|id| !id.is_empty())
}

fn is_without_id(source: &DocumentFile) -> bool {
    transfer::guid(&source.document).is_empty() && external_id(source).is_none()
}

fn key(task: &Task) -> TaskKey {
    (task.name.clone(), task.product_id())
}

/// The error of documents if more tasks than documents have their name and product.
fn ambiguity_error(sources: &[&DocumentFile], candidates: &[&str]) -> Option<String> {
    let source = sources
        .first()
        .filter(|_| candidates.len() > sources.len())?;
    let file = source.file.display();
    Some(format!(
        "{file}: {} tasks have its name and product: set its task.guid to one of {}",
        candidates.len(),
        candidates.join(", ")
    ))
}

/// The warning that a document without an id makes a second task of a name and product.
/// `sources` are the documents without a known id, for which the account has `candidates`
/// tasks; `other` is the document of another task with that name and product.
fn second_task_warning(
    sources: &[&DocumentFile],
    candidates: usize,
    other: Option<&Path>,
) -> Option<String> {
    let source = sources
        .iter()
        .find(|source| is_without_id(source))
        .filter(|_| sources.len() > candidates)?;
    let mut others = sources.iter().map(|source| source.file.as_path());
    let other = other.or_else(|| others.find(|file| *file != source.file))?;
    Some(format!(
        "warning: {} has no task.guid, but the name and product of {}: each becomes a task of \
         its own; remove one of the files, or set a task.guid of its own in each",
        sanitize(&source.file.display().to_string()),
        sanitize(&other.display().to_string())
    ))
}

/// The warning that a document without an id makes a task beside one of its name and product that
/// has an external id.
fn identified_warning(source: &DocumentFile, task: &Task) -> Option<String> {
    is_without_id(source).then(|| {
        format!(
            "warning: {} has no task.guid and no external_id, but the name and product of task {}: \
             it becomes a task of its own; if it is that task, set its external_id to {}",
            sanitize(&source.file.display().to_string()),
            sanitize(&task.guid),
            sanitize(task.external_id())
        )
    })
}

/// The warning that the document of a managed task makes a task of its own.
fn managed_task_warning(source: &DocumentFile) -> Option<String> {
    let task = source.document.task.as_ref()?;
    (task.r#type() == TaskType::Linked).then(|| {
        format!(
            "warning: {} is of a managed task, and is applied as a task of its own: the document \
             of the guide that manages it has it inside",
            sanitize(&source.file.display().to_string())
        )
    })
}

/// The error of a document with the id of a task that the account does not have: it would
/// become a second task beside that of another document, as when a guide was deleted and
/// restored. `None` for a document without an id, or with an external id.
fn second_task_error(source: &DocumentFile, other: &Path) -> Option<String> {
    let guid = transfer::guid(&source.document);
    let (file, other) = (source.file.display(), other.display());
    (!guid.is_empty() && external_id(source).is_none()).then(|| {
        format!(
            "{file} is of task {guid}, which the account does not have, and {other} is of a task \
             with the same name and product: remove {file}, or its task.guid to create a second \
             task"
        )
    })
}
