//! The merge of a document with the stored guide, where both have changed since the document was
//! made.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    slice,
};

use console::Term;
use serde::Serialize;

use super::{
    changes::{self, Change, ChangeKind},
    document::DocumentError,
    field_line::FieldLines,
    ignored_step_fields::pairs,
    layout,
    transfer::{self, StoredGuide},
};
use crate::{
    client::{CallError, Client},
    messages::{
        compare::compare_whole,
        managed_documents::{
            all_managed, all_steps, for_each_step_mut, managed_document, managed_documents,
            steps_by_guid,
        },
        merge::{Conflict, ConflictSubject, merge},
    },
    proto::v1::{Step, StepType, TaskDocument},
};

/// What a document and the stored guide were both made from, and both as they are now. A step has
/// the same id in all of them.
#[derive(Clone, Copy)]
pub(super) struct MergedGuides<'a> {
    pub base: &'a TaskDocument,
    /// What the document would make of the guide.
    pub ours: &'a TaskDocument,
    /// The stored guide.
    pub theirs: &'a TaskDocument,
}

/// The document in which the stored guide and the changes of a document are merged, or what
/// keeps it from being made.
pub(super) enum MergeOutcome {
    Merged {
        document: Box<TaskDocument>,
        /// Whether it equals the document, which then has every change of the stored guide.
        is_ours: bool,
    },
    Conflicts(Vec<MergeConflict>),
}

impl MergedGuides<'_> {
    /// Makes the changes of the document on the stored guide.
    pub fn merge(self) -> Result<MergeOutcome, DocumentError> {
        let Self { base, ours, theirs } = self;
        let conflicts = match merge(base, ours, theirs) {
            Ok(mut document) => {
                let is_ours = compare_whole(ours, &document).is_empty();
                let stored = guids(theirs);
                for_each_step_mut(&mut document.steps, &mut |step| {
                    if !stored.contains(&step.guid) {
                        step.guid.clear();
                    }
                });
                return Ok(MergeOutcome::Merged {
                    document: Box::new(document),
                    is_ours,
                });
            }
            Err(conflicts) => conflicts,
        };
        let (by_ours, by_theirs) = (self.changes_of(ours)?, self.changes_of(theirs)?);
        let sides = [SideChanges::new(&by_ours), SideChanges::new(&by_theirs)];
        let conflicts = conflicts.iter().map(|conflict| {
            let [ours, theirs] = sides.each_ref().map(|side| self.part(conflict, side));
            MergeConflict {
                task: conflict.task.to_owned(),
                step: conflict.step.to_owned(),
                path: path_of(conflict),
                line: None,
                ours,
                theirs,
            }
        });
        Ok(MergeOutcome::Conflicts(conflicts.collect()))
    }

    /// What has changed from the base to one of the others.
    pub fn changes_of(self, guide: &TaskDocument) -> Result<Vec<Change>, DocumentError> {
        changes::between(self.base, guide)
    }

    /// The changes of one side that conflict.
    fn part(self, conflict: &Conflict<'_>, side: &SideChanges<'_>) -> Vec<Change> {
        let of_step = side.of_step.get(&(conflict.task, conflict.step));
        let of_step = of_step.into_iter().flatten().copied();
        let part: Vec<&Change> = match &conflict.subject {
            ConflictSubject::Field(path) => {
                let path = path.to_string();
                of_step.filter(|it| it.path == path).collect()
            }
            ConflictSubject::Place => {
                let moved = of_step.filter(|it| it.kind == ChangeKind::Moved);
                moved.collect()
            }
            ConflictSubject::Deleted => {
                let step = find_step(self.base, conflict.step).map(slice::from_ref);
                let below = all_managed(step.unwrap_or_default()).into_iter();
                let below = below.map(|(_, managed)| transfer::guid(managed));
                of_step.chain(side.of_tasks(below.collect())).collect()
            }
            ConflictSubject::Managed(key) => {
                let task = managed_by(self.base, conflict.step, key).map(transfer::guid);
                side.of_tasks(task.into_iter().collect()).collect()
            }
            ConflictSubject::BothManaged(key) => {
                let of = |guide| managed_by(guide, conflict.step, key).map(transfer::name);
                let names = [of(self.ours), of(self.theirs)];
                let added = side.all.iter().filter(|change| {
                    change.kind == ChangeKind::Added
                        && change.place == 0
                        && names.contains(&Some(change.title.as_str()))
                });
                added.collect()
            }
        };
        part.into_iter().cloned().collect()
    }
}

/// The changes from the base to one of the others.
struct SideChanges<'c> {
    all: &'c [Change],
    /// By the ids of task and step; that of the step is empty for the task itself.
    of_step: BTreeMap<(&'c str, &'c str), Vec<&'c Change>>,
    of_task: BTreeMap<&'c str, Vec<&'c Change>>,
}

impl<'c> SideChanges<'c> {
    fn new(all: &'c [Change]) -> Self {
        let (mut of_step, mut of_task) = (BTreeMap::new(), BTreeMap::new());
        for change in all {
            let (task, step, _) = change.subject();
            let of_step: &mut Vec<&Change> = of_step.entry((task, step)).or_default();
            of_step.push(change);
            let of_task: &mut Vec<&Change> = of_task.entry(task).or_default();
            of_task.push(change);
        }
        Self {
            all,
            of_step,
            of_task,
        }
    }

    fn of_tasks(&self, tasks: Vec<&str>) -> impl Iterator<Item = &'c Change> {
        let changes = tasks.into_iter().filter_map(|task| self.of_task.get(task));
        changes.flatten().copied()
    }
}

fn path_of(conflict: &Conflict<'_>) -> String {
    match &conflict.subject {
        ConflictSubject::Field(path) => path.to_string(),
        ConflictSubject::Managed(key) | ConflictSubject::BothManaged(key) => {
            format!("feedback_config.values[\"{key}\"].task_json")
        }
        ConflictSubject::Place | ConflictSubject::Deleted => String::new(),
    }
}

fn managed_by<'d>(guide: &'d TaskDocument, step: &str, key: &str) -> Option<&'d TaskDocument> {
    managed_document(find_step(guide, step)?, key)
}

/// The step with this id, at every depth.
fn find_step<'d>(guide: &'d TaskDocument, guid: &str) -> Option<&'d Step> {
    let mut steps = all_steps(&guide.steps).into_iter();
    steps.find(|step| step.guid == guid)
}

/// What a document and the stored guide have both changed, and differently.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MergeConflict {
    /// The guid of the task.
    task: String,
    /// The guid of the step; empty for the task itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    step: String,
    /// The path of the field; empty for the place of a step, or the whole step.
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    /// The line in the text of the document, if it has the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The changes of the document.
    ours: Vec<Change>,
    /// The changes of the stored guide.
    theirs: Vec<Change>,
}

impl MergeConflict {
    /// Adds the line in the text of a document, whose steps have the ids of the others. A field
    /// of a managed task itself has none.
    pub fn with_line(mut self, lines: &FieldLines<'_>, document: &TaskDocument) -> Self {
        let above = match self.step.as_str() {
            "" if self.task == transfer::guid(document) => Some("task".to_owned()),
            "" => None,
            step => path_to(document, step),
        };
        let path = above.map(|above| format!("{above}.{}", self.path));
        self.line = path.and_then(|path| lines.line(&path));
        self
    }

    /// The lines for people. `ours` is what the document is called.
    pub fn text(&self, ours: &str, terminal: &Term) -> String {
        let at = match self.line {
            Some(line) => format!(" at line {line}"),
            None => String::new(),
        };
        let mut text = format!("conflict{at}:\n");
        for (side, changes) in [(ours, &self.ours), ("the stored guide", &self.theirs)] {
            text.push_str(&layout::indented(terminal, &format!("{side}:"), 2));
            text.push_str(&changes::text(changes, terminal, 4));
        }
        text
    }
}

/// The path of the step with this id in a document.
fn path_to(document: &TaskDocument, guid: &str) -> Option<String> {
    let mut steps = document.steps.iter().enumerate();
    steps.find_map(|(index, step)| {
        let own = format!("steps[{index}]");
        if step.guid == guid {
            return Some(own);
        }
        let configs = step.feedback_config.iter().enumerate();
        let values = configs.flat_map(|(at, config)| {
            let values = config.values.iter().enumerate();
            values.map(move |(index, value)| (at, index, value))
        });
        values.into_iter().find_map(|(at, index, value)| {
            let below = path_to(value.task_json.as_ref()?, guid)?;
            Some(format!(
                "{own}.feedback_config[{at}].values[{index}].task_json.{below}"
            ))
        })
    })
}

/// What a document would make of the stored guide, by a dry run, and what of the document is
/// ignored. Steps of the base that the stored guide no longer has keep their ids.
pub(super) async fn planned(
    client: &Client,
    base: &TaskDocument,
    document: &TaskDocument,
    stored: &StoredGuide,
) -> Result<(TaskDocument, Vec<String>), CallError> {
    let deleted = &guids(base) - &guids(&stored.document);
    let mut sent = document.clone();
    for_each_step_mut(&mut sent.steps, &mut |step| {
        if deleted.contains(&step.guid) {
            step.guid.clear();
        }
    });
    let message = transfer::import_of_whole(sent.clone(), &stored.guide_etag);
    let answer = transfer::dry_run(client, message).await?;
    let ignored = answer.ignored_paths;
    let mut planned = answer.document.unwrap_or_default();
    let mut former_ids = BTreeMap::new();
    add_former_ids(document, &sent, &planned, &mut former_ids);
    for_each_step_mut(&mut planned.steps, &mut |step| {
        if let Some(former) = former_ids.get(&step.guid) {
            step.guid.clone_from(former);
        }
    });
    Ok((planned, ignored))
}

/// The ids of the steps at every depth.
fn guids(guide: &TaskDocument) -> BTreeSet<String> {
    let steps = all_steps(&guide.steps).into_iter();
    steps.map(|step| step.guid.clone()).collect()
}

/// For each step that was sent without an id adds its id in the document, by the id that the dry
/// run made up.
fn add_former_ids(
    document: &TaskDocument,
    sent: &TaskDocument,
    planned: &TaskDocument,
    ids: &mut BTreeMap<String, String>,
) {
    let steps = document.steps.iter().zip(pairs(sent, planned));
    for (former, (sent, planned)) in steps {
        let Some(planned) = planned else { continue };
        if sent.guid.is_empty() && !former.guid.is_empty() {
            ids.insert(planned.guid.clone(), former.guid.clone());
        }
        for (value, managed) in managed_documents(former) {
            let [sent, planned] = [sent, planned].map(|it| managed_document(it, &value.key));
            if let (Some(sent), Some(planned)) = (sent, planned) {
                add_former_ids(managed, sent, planned, ids);
            }
        }
    }
}

/// A type that no step of a document has, so that no step is found by it.
const NO_TYPE: i32 = -1;

/// A guide to find the steps of a document in: by content among the steps of `base`, and those
/// that `stored` alone has by their ids.
pub(super) fn with_steps_of(base: &TaskDocument, stored: &TaskDocument) -> TaskDocument {
    let mut guide = base.clone();
    let mut others = steps_by_guid(stored);
    for step in &mut guide.steps {
        let Some(other) = others.remove(step.guid.as_str()) else {
            continue;
        };
        let configs = step.feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            if let Some(managed) = &mut value.task_json
                && let Some(other) = managed_document(other, &value.key)
            {
                **managed = with_steps_of(managed, other);
            }
        }
    }
    guide.steps.extend(others.into_values().map(|step| Step {
        r#type: NO_TYPE,
        ..step.clone()
    }));
    guide
}

/// Gives steps of a document that the stored guide has got since the base, such as those of an
/// earlier merge, their ids. Such a step has the type and title of a step of the stored guide, and
/// of no step of the base that another one is not matched with.
pub(super) fn match_added(document: &mut TaskDocument, base: &TaskDocument, stored: &TaskDocument) {
    let (in_base, in_stored) = (steps_by_guid(base), steps_by_guid(stored));
    let named: BTreeSet<String> = document.steps.iter().map(|it| it.guid.clone()).collect();
    let mut of_base = StepsByContent::default();
    let unnamed = |step: &&Step| !named.contains(&step.guid);
    of_base.add(base.steps.iter().filter(unnamed));
    let mut added = StepsByContent::default();
    let is_added = |step: &&Step| !in_base.contains_key(step.guid.as_str());
    added.add(stored.steps.iter().filter(unnamed).filter(is_added));
    for step in &mut document.steps {
        let former = match in_base.get(step.guid.as_str()) {
            Some(former) => Some(*former),
            None if in_stored.contains_key(step.guid.as_str()) => continue,
            None => of_base.take(step),
        };
        let Some(former) = former else {
            if let Some(added) = added.take(step) {
                step.guid.clone_from(&added.guid);
            }
            continue;
        };
        let Some(stored) = in_stored.get(former.guid.as_str()) else {
            continue;
        };
        let configs = step.feedback_config.iter_mut();
        for value in configs.flat_map(|config| &mut config.values) {
            let [base, stored] = [former, stored].map(|it| managed_document(it, &value.key));
            if let (Some(document), Some(base), Some(stored)) = (&mut value.task_json, base, stored)
            {
                match_added(document, base, stored);
            }
        }
    }
}

/// Steps by type, product and title, or the task that they refer to.
#[derive(Default)]
struct StepsByContent<'s>(BTreeMap<(i32, Option<i64>, String), VecDeque<&'s Step>>);

impl<'s> StepsByContent<'s> {
    fn add(&mut self, steps: impl Iterator<Item = &'s Step>) {
        for step in steps {
            self.0.entry(Self::key(step)).or_default().push_back(step);
        }
    }

    fn take(&mut self, like: &Step) -> Option<&'s Step> {
        self.0.get_mut(&Self::key(like))?.pop_front()
    }

    fn key(step: &Step) -> (i32, Option<i64>, String) {
        let text = match step.r#type() == StepType::Subtask {
            true => step.subtask_id.to_ascii_lowercase(),
            false => step.title.clone(),
        };
        (step.r#type, step.product_id, text)
    }
}
