//! Three-way merges of guides.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use super::{
    compare::{
        FieldPath, StepDifference, changed_keys, compare_steps, compare_whole, encoded_step,
        encoded_task, honored, read,
    },
    encoded_resource::EncodedResource,
    fields::{ResourceFields, STEP, TASK},
    managed_documents::{managed_document, managed_documents, values, values_mut},
};
use crate::proto::v1::{FeedbackValue, Step, Task, TaskDocument};

/// What both guides have changed in different ways.
#[derive(Debug)]
pub struct Conflict<'g> {
    /// The id of the task in the base.
    pub task: &'g str,
    /// The id of the step; empty for the task.
    pub step: &'g str,
    pub subject: ConflictSubject<'g>,
}

/// What both guides have changed.
#[derive(Clone, Debug)]
pub enum ConflictSubject<'g> {
    Field(FieldPath),
    /// The place of the step among the others.
    Place,
    /// The step itself: one guide has deleted it, and the other has changed it.
    Deleted,
    /// The managed task of the value with this key: one guide has deleted it, and the other has
    /// changed it.
    Managed(&'g str),
    /// Two managed tasks of the value with this key: each guide has added one.
    BothManaged(&'g str),
}

/// A merge with conflicts.
#[derive(Debug)]
pub struct ConflictingMerge<'g> {
    pub conflicts: Vec<Conflict<'g>>,
    /// The merge with our side of each conflict.
    pub preferring_ours: Box<TaskDocument>,
}

/// Applies to `theirs` the changes that `ours` made to `base`. The result is a document that an
/// import accepts. Other fields, such as types, come from `theirs`, or from `ours` if only it has
/// the step.
///
/// Steps keep the order of `theirs`. Steps that `ours` has added or moved come after their
/// predecessor in `ours`, or after the nearest earlier step that still exists. The same change on
/// both sides is not a conflict. A deletion conflicts with every change.
pub fn merge<'g>(
    base: &'g TaskDocument,
    ours: &'g TaskDocument,
    theirs: &'g TaskDocument,
) -> Result<TaskDocument, ConflictingMerge<'g>> {
    let mut conflicts = Vec::new();
    let merged = merge_guides(base, ours, theirs, &mut conflicts);
    match conflicts.is_empty() {
        true => Ok(merged),
        false => Err(ConflictingMerge {
            conflicts,
            preferring_ours: Box::new(merged),
        }),
    }
}

/// Merges guides, and lists the conflicts. The result has our side of each.
fn merge_guides<'g>(
    base: &'g TaskDocument,
    ours: &'g TaskDocument,
    theirs: &'g TaskDocument,
    conflicts: &mut Vec<Conflict<'g>>,
) -> TaskDocument {
    let mut merger = Merger {
        task: base.task.as_ref().map_or("", |task| &task.guid),
        step: "",
        conflicts,
    };
    let mut task: Task = merger.fields(&TASK, [base, ours, theirs].map(encoded_task));
    task.translations.retain(|_, it| *it != Default::default());
    let mut steps = merger.steps(&base.steps, &ours.steps, &theirs.steps);
    // Ours may have new wiring steps for answers that theirs has removed or unlinked.
    let managed = steps.iter().flat_map(managed_documents);
    let links: BTreeSet<String> = managed.map(|(value, _)| value.link.clone()).collect();
    let in_theirs = indexes(&theirs.steps);
    steps.retain(|step| {
        let is_in_theirs = in_theirs.contains_key(step.guid.as_str());
        step.link.is_empty() || is_in_theirs || links.contains(&step.link)
    });
    TaskDocument {
        task: Some(task),
        steps,
    }
}

/// Replaces a guide that does not exist.
static NO_GUIDE: TaskDocument = TaskDocument {
    task: None,
    steps: Vec::new(),
};

struct Merger<'g, 'c> {
    task: &'g str,
    step: &'g str,
    conflicts: &'c mut Vec<Conflict<'g>>,
}

impl<'g> Merger<'g, '_> {
    fn add(&mut self, subject: ConflictSubject<'g>) {
        self.conflicts.push(Conflict {
            task: self.task,
            step: self.step,
            subject,
        });
    }

    /// Merges encoded tasks or steps; missing ones are empty.
    fn fields<M: Message + Default>(
        &mut self,
        resource: &'static ResourceFields,
        encoded: [Vec<u8>; 3],
    ) -> M {
        let [base, ours, theirs] = encoded.each_ref().map(|bytes| read(resource, bytes));
        let by_ours = changed_keys(resource, &base, &ours);
        let by_theirs = changed_keys(resource, &base, &theirs);
        let differing = changed_keys(resource, &ours, &theirs);
        let is_new = theirs == EncodedResource::default();
        let EncodedResource(ours) = ours;
        let mut merged = if is_new { ours.clone() } else { theirs.0 };
        // The shorthand follows from the dependencies.
        merged.retain(|key, _| !resource.is_shorthand(*key));
        for key in by_ours {
            let is_by_both = by_theirs.contains(&key);
            if is_by_both && !differing.contains(&key) {
                continue;
            }
            if let Some(path) = honored(resource, key).filter(|_| is_by_both) {
                self.add(ConflictSubject::Field(path));
            }
            if let Some(values) = ours.get(&key) {
                merged.insert(key, values.clone());
            } else {
                merged.remove(&key);
            }
        }
        // A message that was just encoded can be decoded.
        M::decode(&EncodedResource(merged).encode(resource)[..]).unwrap_or_default()
    }

    fn steps(&mut self, base: &'g [Step], ours: &'g [Step], theirs: &'g [Step]) -> Vec<Step> {
        let (by_ours, by_theirs) = (changes(base, ours), changes(base, theirs));
        let [in_base, in_ours, in_theirs] = [base, ours, theirs].map(indexes);
        // Steps that are placed last, where ours has them: added, moved, or changed by ours and deleted
        // by theirs.
        let mut placed: BTreeMap<&str, Step> = BTreeMap::new();
        let mut fixed = Vec::new();
        for (index, other) in theirs.iter().enumerate() {
            let guid = other.guid.as_str();
            self.step = guid;
            let change = by_ours.get(guid);
            if change.is_some_and(|change| change.target.is_none()) {
                if by_theirs.contains_key(guid) {
                    self.add(ConflictSubject::Deleted);
                }
                continue;
            }
            let [former, mine] = [(&in_base, base), (&in_ours, ours)]
                .map(|(indexes, steps)| indexes.get(guid).and_then(|index| steps.get(*index)));
            let merged = self.step(former, mine, Some(other));
            let is_moved = |changes: &Changes<'g>| changes.get(guid).is_some_and(|it| it.moved);
            if is_moved(&by_ours) {
                if !is_moved(&by_theirs) {
                    placed.insert(guid, merged);
                    continue;
                }
                let before = in_ours.get(guid).and_then(|index| ours.get(..*index));
                let before_ours = last_in(before.unwrap_or_default(), &in_theirs);
                let before_theirs = last_in(theirs.get(..index).unwrap_or_default(), &in_ours);
                if before_ours != before_theirs {
                    self.add(ConflictSubject::Place);
                    placed.insert(guid, merged);
                    continue;
                }
            }
            fixed.push(merged);
        }
        for (guid, change) in &by_ours {
            let Some((_, mine)) = change.target.filter(|_| !in_theirs.contains_key(guid)) else {
                continue;
            };
            self.step = guid;
            if change.base.is_some() {
                self.add(ConflictSubject::Deleted);
            }
            placed.insert(guid, self.step(None, Some(mine), None));
        }
        self.step = "";
        place(fixed, placed, ours)
    }

    /// A step that at least one side has. The base does not have added steps.
    fn step(
        &mut self,
        base: Option<&'g Step>,
        ours: Option<&'g Step>,
        theirs: Option<&'g Step>,
    ) -> Step {
        let own = [base, ours, theirs].map(|step| step.map(encoded_step).unwrap_or_default());
        let earlier = self.conflicts.len();
        let mut step: Step = self.fields(&STEP, own);
        step.translations.retain(|_, it| *it != Default::default());
        let mut managed = self.managed([base, ours, theirs]);
        for value in values_mut(&mut step) {
            let both = [theirs, ours].into_iter().flatten().flat_map(values);
            let mut same = both.filter(|it| it.key == value.key);
            let linked = same.find(|it| !it.link.is_empty());
            value.link = linked.map(|it| it.link.clone()).unwrap_or_default();
            value.task_json = managed.remove(value.key.as_str()).map(Box::new);
        }
        for (key, task) in managed {
            self.keep_value(key, task, &mut step, ours, earlier);
        }
        step
    }

    /// Handles the managed task of a value that the merged step lacks: one guide has removed the value, and
    /// the other has changed the task. If ours has the value, it is put back.
    fn keep_value(
        &mut self,
        key: &'g str,
        task: TaskDocument,
        step: &mut Step,
        ours: Option<&'g Step>,
        earlier: usize,
    ) {
        let mut known = self.conflicts.iter().skip(earlier);
        let is_known = known.any(|it| match &it.subject {
            ConflictSubject::Managed(known) => it.step == self.step && *known == key,
            ConflictSubject::Field(path) => it.step == self.step && path.name == "feedback_config",
            _ => false,
        });
        if !is_known {
            self.add(ConflictSubject::Managed(key));
        }
        let kept = ours.and_then(|ours| values(ours).enumerate().find(|(_, it)| it.key == key));
        if let (Some((place, value)), Some(config)) = (kept, step.feedback_config.first_mut()) {
            let value = FeedbackValue {
                // The task was unlinked when the value was removed.
                link: String::new(),
                task_json: Some(Box::new(task)),
                ..value.clone()
            };
            config.values.insert(place.min(config.values.len()), value);
        }
    }

    /// The managed tasks of a step by the keys of their values.
    fn managed(&mut self, steps: [Option<&'g Step>; 3]) -> BTreeMap<&'g str, TaskDocument> {
        let [_, ours, theirs] = steps;
        let both = [theirs, ours].into_iter().flatten();
        let keys = both
            .flat_map(managed_documents)
            .map(|(value, _)| value.key.as_str());
        let mut seen = BTreeSet::new();
        let keys: Vec<&str> = keys.filter(|key| seen.insert(*key)).collect();
        let mut merged = BTreeMap::new();
        for key in keys {
            let [former, mine, other] = steps.map(|step| managed_document(step?, key));
            let [former, mine, other] = match (former, mine, other) {
                (None, Some(mine), Some(other)) if !compare_whole(mine, other).is_empty() => {
                    self.add(ConflictSubject::BothManaged(key));
                    [None, Some(mine), None]
                }
                // Both have added the same guide. Its position comes from theirs.
                (None, Some(_), Some(other)) => [None, None, Some(other)],
                (Some(former), None, Some(kept)) => {
                    if !compare_whole(former, kept).is_empty() {
                        self.add(ConflictSubject::Managed(key));
                    }
                    continue;
                }
                (Some(former), Some(kept), None) => {
                    if compare_whole(former, kept).is_empty() {
                        continue;
                    }
                    self.add(ConflictSubject::Managed(key));
                    [None, Some(kept), None]
                }
                guides => guides.into(),
            }
            .map(|guide| guide.unwrap_or(&NO_GUIDE));
            merged.insert(key, merge_guides(former, mine, other, self.conflicts));
        }
        merged
    }
}

/// The changes of steps by their ids.
type Changes<'g> = BTreeMap<&'g str, StepDifference<'g>>;

fn changes<'g>(base: &'g [Step], target: &'g [Step]) -> Changes<'g> {
    let changes = compare_steps(base, target).into_iter();
    let by_guid = changes.filter_map(|change| {
        let (_, step) = change.target.or(change.base)?;
        Some((step.guid.as_str(), change))
    });
    by_guid.collect()
}

fn indexes(steps: &[Step]) -> BTreeMap<&str, usize> {
    let steps = steps.iter().enumerate();
    steps
        .map(|(index, step)| (step.guid.as_str(), index))
        .collect()
}

/// The last of these steps that the other guide also has.
fn last_in<'g>(steps: &'g [Step], other: &BTreeMap<&str, usize>) -> Option<&'g str> {
    let guids = steps.iter().rev().map(|step| step.guid.as_str());
    guids.into_iter().find(|guid| other.contains_key(guid))
}

/// Inserts each placed step after its predecessor in ours.
fn place(fixed: Vec<Step>, mut placed: BTreeMap<&str, Step>, ours: &[Step]) -> Vec<Step> {
    let is_fixed: BTreeSet<&str> = fixed.iter().map(|step| step.guid.as_str()).collect();
    let mut steps = Vec::new();
    let mut followers: BTreeMap<&str, Vec<Step>> = BTreeMap::new();
    let mut predecessor = None;
    for guid in ours.iter().map(|step| step.guid.as_str()) {
        if is_fixed.contains(guid) {
            predecessor = Some(guid);
        } else if let Some(step) = placed.remove(guid) {
            match predecessor {
                None => steps.push(step),
                Some(fixed) => followers.entry(fixed).or_default().push(step),
            }
        }
    }
    for step in fixed {
        let following = followers.remove(step.guid.as_str());
        steps.push(step);
        steps.extend(following.unwrap_or_default());
    }
    steps
}

#[cfg(test)]
mod tests;
