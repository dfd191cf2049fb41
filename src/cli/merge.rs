//! Merges a document with a stored guide that has changed since the document was exported.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    automatic,
    changes::{self, Change, ChangeKind},
    guide_file::GuideFile,
    guides::{self, StoredGuide},
    pairing::pairs,
};
use crate::{
    client::{CallError, Client},
    messages::{
        self,
        managed_documents::{
            all_managed, all_steps, for_each_step_mut, managed_document, managed_documents,
            managed_documents_mut,
        },
        merge::{Conflict, ConflictSubject},
    },
    proto::v1::{ImportTaskResponse, Step, TaskDocument},
};

/// Applies the changes of a file to the stored guide. `base` is the common ancestor, `ours` is what
/// an import of the file would store, and `theirs` is the stored guide. A step has the same id in
/// all three.
pub(super) fn merge(
    file: &GuideFile,
    base: &TaskDocument,
    ours: &TaskDocument,
    theirs: &TaskDocument,
) -> Result<TaskDocument, FailedMerge> {
    messages::merge::merge(base, ours, theirs).map_err(|failed| {
        let sides = [ours, theirs].map(|side| changes::between(base, side));
        // A step that both guides have added is not in the base, so the other guide replaces it.
        let of_added = [(theirs, ours), (ours, theirs)];
        let of_added = of_added.map(|(other, side)| changes::between(other, side));
        let conflicts = failed.conflicts.iter().map(|conflict| {
            let is_added = !conflict.step.is_empty() && find_step(base, conflict.step).is_none();
            let sides = if is_added { &of_added } else { &sides };
            MergeConflict::new(conflict, [base, ours, theirs], sides).located(file, ours)
        });
        FailedMerge {
            conflicts: conflicts.collect(),
            preferring_ours: failed.preferring_ours,
        }
    })
}

/// Removes the ids of steps that are not stored, so that an import creates them.
pub(super) fn clear_new_ids(merged: &mut TaskDocument, stored: &TaskDocument) {
    let known = guids(stored);
    for_each_step_mut(&mut merged.steps, &mut |step| {
        if !known.contains(&step.guid) {
            step.guid.clear();
        }
    });
}

/// Why a merge is not possible.
pub(super) struct FailedMerge {
    pub conflicts: Vec<MergeConflict>,
    /// The merge with the document's side of each conflict.
    pub preferring_ours: Box<TaskDocument>,
}

/// The step with this id, at every depth.
pub(super) fn find_step<'d>(guide: &'d TaskDocument, guid: &str) -> Option<&'d Step> {
    let mut steps = all_steps(&guide.steps).into_iter();
    steps.find(|step| step.guid == guid)
}

/// What a document and the stored guide have changed in different ways.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MergeConflict {
    /// The guid of the task.
    task: String,
    /// The guid of the step; empty for the task itself.
    step: String,
    /// The path of the field; empty for the position of a step, or the whole step.
    path: String,
    /// The line in the text of the document, if the step exists there.
    line: Option<usize>,
    /// The changes of the document.
    ours: Vec<Change>,
    /// The changes of the stored guide.
    theirs: Vec<Change>,
}

impl MergeConflict {
    /// Adds the changes of both sides that take part in a conflict.
    fn new(conflict: &Conflict<'_>, guides: [&TaskDocument; 3], sides: &[Vec<Change>; 2]) -> Self {
        let steps = guides.map(|guide| find_step(guide, conflict.step));
        let steps = steps.into_iter().flatten();
        let below = steps.flat_map(|step| all_managed(std::slice::from_ref(step)));
        let below: Vec<&TaskDocument> = below.map(|(_, managed)| managed).collect();
        let path = match &conflict.subject {
            ConflictSubject::Field(field) => field.to_string(),
            ConflictSubject::Managed(key) | ConflictSubject::BothManaged(key) => {
                format!("feedback_config.values[\"{key}\"].task_json")
            }
            ConflictSubject::Place | ConflictSubject::Deleted => String::new(),
        };
        let takes_part = |change: &&Change| {
            let is_of_step = change.task == conflict.task && change.step == conflict.step;
            let is_below = below.iter().any(|managed| match change.task.as_str() {
                "" => guides::name(managed) == change.title,
                task => guides::guid(managed) == task,
            });
            match conflict.subject {
                ConflictSubject::Field(_) => is_of_step && change.path == path,
                ConflictSubject::Place => is_of_step && change.kind == ChangeKind::Moved,
                _ => is_of_step || is_below,
            }
        };
        let sides = sides.each_ref();
        let [ours, theirs] = sides.map(|side| side.iter().filter(takes_part).cloned().collect());
        Self {
            task: conflict.task.to_owned(),
            step: conflict.step.to_owned(),
            path,
            line: None,
            ours,
            theirs,
        }
    }

    /// The conflict with its line in a file, whose content with the ids of all steps is `content`.
    pub fn located(&self, file: &GuideFile, content: &TaskDocument) -> Self {
        // A field of a managed task itself has no line.
        let above = match self.step.as_str() {
            "" if self.task == guides::guid(content) => Some("task".to_owned()),
            "" => None,
            step => path_to(&file.document, content, step),
        };
        let line = above.and_then(|above| file.lines().line(&format!("{above}.{}", self.path)));
        Self {
            line,
            ..self.clone()
        }
    }

    /// The lines for people. `ours` is the name of the document.
    pub fn text(&self, ours: &str) -> String {
        let at = match self.line {
            Some(line) => format!(" at line {line}"),
            None => String::new(),
        };
        let mut text = format!("conflict{at}:\n");
        for (side, changes) in [(ours, &self.ours), ("the stored guide", &self.theirs)] {
            text.push_str(&format!("  {side}:\n{}", changes::text(changes, 4)));
        }
        text
    }
}

/// The path in a document of the step with this id in another version of the document.
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

/// What an import of a document would store, by a dry run. `of_base` is the document with the ids
/// of the base, which also identify deleted steps.
pub(super) async fn planned(
    client: &Client,
    sent: &TaskDocument,
    of_base: &TaskDocument,
    stored: &StoredGuide,
) -> Result<ImportTaskResponse, CallError> {
    let mut document = sent.clone();
    automatic::add_left_out(&mut document, &stored.document);
    let message = guides::whole_import(document, &stored.guide_etag);
    let mut answer = guides::dry_run(client, message).await?;
    if let Some(planned) = &mut answer.document {
        let mut ids = BTreeMap::new();
        add_former_ids(sent, of_base, planned, &mut ids);
        let known = guids(&stored.document);
        for_each_step_mut(&mut planned.steps, &mut |step| {
            if let Some(former) = ids.get(&step.guid).filter(|it| !known.contains(*it)) {
                step.guid.clone_from(former);
                // Such an external id only says that the step was created again.
                step.external_id = step.external_id.take().filter(|id| id != former);
            }
            if let Some(former) = ids.get(&step.subtask_id) {
                step.subtask_id.clone_from(former);
            }
        });
        let former: BTreeSet<String> = ids.into_values().chain(known).collect();
        remove_second_wiring_steps(&mut planned.steps, &former);
    }
    Ok(answer)
}

/// Removes wiring steps that a dry run added although a former step leads to the same task. This happens if
/// others have removed an answer but left its step, which is then an ordinary subtask step.
fn remove_second_wiring_steps(steps: &mut Vec<Step>, former: &BTreeSet<String>) {
    let is_former = |step: &&Step| former.contains(&step.guid);
    let targets = steps.iter().filter(is_former);
    let targets: BTreeSet<String> = targets.map(|step| step.subtask_id.clone()).collect();
    steps.retain(|step| {
        step.link.is_empty() || is_former(&step) || !targets.contains(&step.subtask_id)
    });
    for managed in steps.iter_mut().flat_map(managed_documents_mut) {
        remove_second_wiring_steps(&mut managed.steps, former);
    }
}

/// The ids of the steps at every depth.
pub(super) fn guids(guide: &TaskDocument) -> BTreeSet<String> {
    let steps = all_steps(&guide.steps).into_iter();
    steps.map(|step| step.guid.clone()).collect()
}

/// Maps the ids that a dry run generated for steps, and for the tasks that wiring steps lead to, to the ids of
/// the base.
fn add_former_ids(
    sent: &TaskDocument,
    of_base: &TaskDocument,
    planned: &TaskDocument,
    ids: &mut BTreeMap<String, String>,
) {
    let steps = of_base.steps.iter().zip(pairs(sent, planned));
    for (former, (sent, planned)) in steps {
        let Some(planned) = planned else { continue };
        let mut add = |planned: &str, former: &str| {
            if !former.is_empty() && !planned.eq_ignore_ascii_case(former) {
                ids.insert(planned.to_owned(), former.to_owned());
            }
        };
        add(&planned.guid, &former.guid);
        // Other ids were replaced by those of the account before the dry run.
        if sent.subtask_id == former.subtask_id {
            add(&planned.subtask_id, &former.subtask_id);
        }
        for (value, managed) in managed_documents(former) {
            let [sent, planned] = [sent, planned].map(|it| managed_document(it, &value.key));
            if let (Some(sent), Some(planned)) = (sent, planned) {
                add_former_ids(sent, managed, planned, ids);
            }
        }
    }
}
