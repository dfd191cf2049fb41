//! The merge of a document with the stored guide, where both have changed since the document was
//! made.

use std::collections::{BTreeMap, BTreeSet};

use console::Term;
use serde::Serialize;

use super::{
    changes::{self, Change, ChangeKind},
    document,
    guide_file::GuideFile,
    guides::{self, StoredGuide},
    layout,
    pairing::pairs,
};
use crate::{
    client::{CallError, Client},
    messages::{
        compare::FieldPath,
        fields::TRANSLATIONS,
        managed_documents::{
            all_managed, all_steps, for_each_step_mut, managed_document, managed_documents,
        },
        merge::{Conflict, ConflictSubject, merge},
    },
    proto::v1::{ImportTaskResponse, Step, TaskDocument},
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

impl MergedGuides<'_> {
    /// Makes the changes of the document on the stored guide. The steps that it has not have no
    /// ids.
    pub fn merge(self) -> Result<TaskDocument, Vec<MergeConflict>> {
        let Self { base, ours, theirs } = self;
        let mut merged = merge(base, ours, theirs).map_err(|conflicts| {
            let sides = [ours, theirs].map(|side| changes::between(base, side).unwrap_or_default());
            let conflicts = conflicts.iter();
            conflicts
                .map(|conflict| self.conflict(conflict, &sides))
                .collect::<Vec<_>>()
        })?;
        let stored = guids(theirs);
        for_each_step_mut(&mut merged.steps, &mut |step| {
            if !stored.contains(&step.guid) {
                step.guid.clear();
            }
        });
        Ok(merged)
    }

    /// The merge in which a field that both have changed is that of the document, if there are no
    /// other conflicts.
    pub fn merge_with_our_fields(self) -> Option<TaskDocument> {
        let Self { base, ours, theirs } = self;
        let conflicts = merge(base, ours, theirs).err()?;
        let mut theirs = theirs.clone();
        for conflict in &conflicts {
            let ConflictSubject::Field(path) = &conflict.subject else {
                return None;
            };
            reset_field(&mut theirs, base, conflict, path)?;
        }
        let merged = MergedGuides {
            theirs: &theirs,
            ..self
        };
        merged.merge().ok()
    }

    /// A conflict with the changes of both sides that take part in it.
    fn conflict(self, conflict: &Conflict<'_>, sides: &[Vec<Change>; 2]) -> MergeConflict {
        let (mut path, mut tasks, mut names) = (String::new(), Vec::new(), Vec::new());
        let step = find_step(self.base, conflict.step);
        match &conflict.subject {
            ConflictSubject::Field(field) => path = field.to_string(),
            ConflictSubject::Place => {}
            ConflictSubject::Deleted => {
                let managed = step.map(|step| all_managed(std::slice::from_ref(step)));
                let managed = managed.into_iter().flatten();
                tasks.extend(managed.map(|(_, managed)| guides::guid(managed)));
            }
            ConflictSubject::Managed(key) => {
                tasks.extend(
                    step.and_then(|it| managed_document(it, key))
                        .map(guides::guid),
                );
                path = format!("feedback_config.values[\"{key}\"].task_json");
            }
            ConflictSubject::BothManaged(key) => {
                for guide in [self.ours, self.theirs] {
                    let step = find_step(guide, conflict.step);
                    names.extend(
                        step.and_then(|it| managed_document(it, key))
                            .map(guides::name),
                    );
                }
                path = format!("feedback_config.values[\"{key}\"].task_json");
            }
        }
        let takes_part = |change: &&Change| {
            let is_of_step = change.task == conflict.task && change.step == conflict.step;
            let is_added = change.kind == ChangeKind::Added && change.place == 0;
            tasks.contains(&change.task.as_str())
                || is_added && names.contains(&change.title.as_str())
                || is_of_step
                    && match &conflict.subject {
                        ConflictSubject::Field(_) => change.path == path,
                        ConflictSubject::Place => change.kind == ChangeKind::Moved,
                        ConflictSubject::Deleted => true,
                        ConflictSubject::Managed(_) | ConflictSubject::BothManaged(_) => false,
                    }
        };
        let [ours, theirs] = sides
            .each_ref()
            .map(|side| side.iter().filter(takes_part).cloned().collect());
        MergeConflict {
            task: conflict.task.to_owned(),
            step: conflict.step.to_owned(),
            path,
            line: None,
            ours,
            theirs,
        }
    }
}

/// Gives a field of a guide the value that it has in another one.
fn reset_field(
    guide: &mut TaskDocument,
    base: &TaskDocument,
    conflict: &Conflict<'_>,
    path: &FieldPath,
) -> Option<()> {
    if conflict.step.is_empty() {
        // That of a managed task is changed at its answer.
        let (task, former) = (guide.task.as_mut()?, base.task.as_ref()?);
        let is_own = task.guid == conflict.task;
        *task = is_own.then(|| with_field("Task", task, former, path))??;
        return Some(());
    }
    let former = find_step(base, conflict.step)?;
    let mut reset = None;
    for_each_step_mut(&mut guide.steps, &mut |step| {
        if step.guid == conflict.step {
            reset = with_field("Step", step, former, path).map(|changed| *step = changed);
        }
    });
    reset
}

fn with_field<M: prost::Message + Default>(
    name: &str,
    message: &M,
    former: &M,
    path: &FieldPath,
) -> Option<M> {
    let mut json = document::json(name, message).ok()?;
    let former = document::json(name, former).ok()?;
    let object = match &path.language {
        Some(language) => json.get_mut(TRANSLATIONS)?.get_mut(language)?,
        None => &mut json,
    };
    let members = object.as_object_mut()?;
    match path.value(&former) {
        Some(value) => drop(members.insert(path.name.to_owned(), value.clone())),
        None => drop(members.remove(path.name)),
    }
    document::from_json(name, &json).ok()
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
    step: String,
    /// The path of the field; empty for the place of a step, or the whole step.
    path: String,
    /// The line in the text of the document, if it has the step.
    line: Option<usize>,
    /// The changes of the document.
    ours: Vec<Change>,
    /// The changes of the stored guide.
    theirs: Vec<Change>,
}

impl MergeConflict {
    /// Adds the line in a file. `planned` is what the file says, with the ids of the server. A
    /// field of a managed task itself has none.
    pub fn with_line(mut self, file: &GuideFile, planned: &TaskDocument) -> Self {
        let above = match self.step.as_str() {
            "" if self.task == guides::guid(planned) => Some("task".to_owned()),
            "" => None,
            step => path_to(&file.document, planned, step),
        };
        let path = above.map(|above| format!("{above}.{}", self.path));
        self.line = path.and_then(|path| file.lines().line(&path));
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

/// The path in a document of the step with this id in another form of it.
fn path_to(document: &TaskDocument, planned: &TaskDocument, guid: &str) -> Option<String> {
    let mut steps = pairs(document, planned).enumerate();
    steps.find_map(|(index, (step, planned))| {
        let (own, planned) = (format!("steps[{index}]"), planned?);
        if planned.guid == guid {
            return Some(own);
        }
        let config = step.feedback_config.first()?;
        let mut values = config.values.iter().enumerate();
        values.find_map(|(index, value)| {
            let planned = managed_document(planned, &value.key)?;
            let below = path_to(value.task_json.as_ref()?, planned, guid)?;
            Some(format!(
                "{own}.feedback_config[0].values[{index}].task_json.{below}"
            ))
        })
    })
}

/// What a document would make of the stored guide, by a dry run. Steps of the base that the stored
/// guide no longer has keep their ids, which `of_base` has: the same document with the ids of the
/// base.
pub(super) async fn planned(
    client: &Client,
    sent: &TaskDocument,
    of_base: &TaskDocument,
    stored: &StoredGuide,
) -> Result<ImportTaskResponse, CallError> {
    let message = guides::whole_import(sent.clone(), &stored.guide_etag);
    let mut answer = guides::dry_run(client, message).await?;
    if let Some(planned) = &mut answer.document {
        let mut ids = BTreeMap::new();
        add_former_ids(sent, of_base, planned, &mut ids);
        let known = guids(&stored.document);
        for_each_step_mut(&mut planned.steps, &mut |step| {
            if let Some(former) = ids.get(&step.guid).filter(|it| !known.contains(*it)) {
                step.guid.clone_from(former);
                // It would be the id of a step that is made again.
                step.external_id = step.external_id.take().filter(|id| id != former);
            }
        });
    }
    Ok(answer)
}

/// The ids of the steps at every depth.
fn guids(guide: &TaskDocument) -> BTreeSet<String> {
    let steps = all_steps(&guide.steps).into_iter();
    steps.map(|step| step.guid.clone()).collect()
}

/// For each step that was sent without an id adds its id in the base, by the id that the dry run
/// made up.
fn add_former_ids(
    sent: &TaskDocument,
    of_base: &TaskDocument,
    planned: &TaskDocument,
    ids: &mut BTreeMap<String, String>,
) {
    let steps = of_base.steps.iter().zip(pairs(sent, planned));
    for (former, (sent, planned)) in steps {
        let Some(planned) = planned else { continue };
        if sent.guid.is_empty() && !former.guid.is_empty() {
            ids.insert(planned.guid.clone(), former.guid.clone());
        }
        for (value, managed) in managed_documents(former) {
            let [sent, planned] = [sent, planned].map(|it| managed_document(it, &value.key));
            if let (Some(sent), Some(planned)) = (sent, planned) {
                add_former_ids(sent, managed, planned, ids);
            }
        }
    }
}
