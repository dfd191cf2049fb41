//! The merge of two guides that were made from the same one.

use std::collections::{BTreeMap, BTreeSet};

use super::{ComparedStep, ComparedTask, StepDifference, compare, compare_fields, compare_steps};

/// What both guides have changed, and differently.
#[derive(Debug)]
pub struct Conflict<'g> {
    /// The id of the task in the base.
    pub task: &'g str,
    /// The id of the step; empty for the task itself.
    pub step: &'g str,
    /// What both have changed.
    pub subject: ConflictSubject<'g>,
}

/// What both guides have changed.
#[derive(Clone, Copy, Debug)]
pub enum ConflictSubject<'g> {
    /// The field at this path.
    Field(&'g str),
    /// The place of the step among the others.
    Place,
    /// The step itself: one guide lacks it, and the other one has changed it.
    Deleted,
    /// The task that the value with this key manages: one guide lacks it, and the other one has
    /// changed it.
    Managed(&'g str),
    /// Two tasks that the value with this key manages: both guides have added one.
    BothManaged(&'g str),
}

/// Makes the changes from `base` to `ours` on `theirs`.
///
/// Steps keep the order of `theirs`. Those that `ours` has added or moved stand behind the step
/// that they follow in `ours`, or if that is gone, behind the nearest step before it that remains. The
/// same change on both sides is no conflict; a deletion conflicts with every change.
pub fn merge<'g, V: Clone + PartialEq>(
    base: &'g ComparedTask<V>,
    ours: &'g ComparedTask<V>,
    theirs: &'g ComparedTask<V>,
) -> Result<ComparedTask<V>, Vec<Conflict<'g>>> {
    let mut conflicts = Vec::new();
    let merged = merge_tasks(base, ours, theirs, &mut conflicts);
    match conflicts.is_empty() {
        true => Ok(merged),
        false => Err(conflicts),
    }
}

/// Merges tasks; a conflict is listed, and leaves what theirs has.
fn merge_tasks<'g, V: Clone + PartialEq>(
    base: &'g ComparedTask<V>,
    ours: &'g ComparedTask<V>,
    theirs: &'g ComparedTask<V>,
    conflicts: &mut Vec<Conflict<'g>>,
) -> ComparedTask<V> {
    let mut merger = Merger {
        task: &base.guid,
        step: "",
        conflicts,
    };
    ComparedTask {
        guid: theirs.guid.clone(),
        fields: merger.fields(&base.fields, &ours.fields, &theirs.fields),
        steps: merger.steps(&base.steps, &ours.steps, &theirs.steps),
    }
}

/// The fields of a task or step by their paths, or the tasks that a step manages by their keys.
type Named<T> = [(String, T)];

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

    fn fields<V: Clone + PartialEq>(
        &mut self,
        base: &'g Named<V>,
        ours: &'g Named<V>,
        theirs: &'g Named<V>,
    ) -> Vec<(String, V)> {
        let by_theirs = compare_fields(base, theirs).into_iter();
        let by_theirs: BTreeMap<&str, Option<&V>> =
            by_theirs.map(|it| (it.path, it.target)).collect();
        let mut merged = theirs.to_vec();
        for change in compare_fields(base, ours) {
            let (path, value) = (change.path, change.target);
            match by_theirs.get(path) {
                Some(theirs) if *theirs == value => {}
                Some(_) => self.add(ConflictSubject::Field(path)),
                None => {
                    let place = merged.iter().position(|(name, _)| name == path);
                    merged.retain(|(name, _)| name != path);
                    let place = place.unwrap_or(merged.len());
                    if let Some(value) = value {
                        merged.insert(place, (path.to_owned(), value.clone()));
                    }
                }
            }
        }
        merged
    }

    fn steps<V: Clone + PartialEq>(
        &mut self,
        base: &'g [ComparedStep<V>],
        ours: &'g [ComparedStep<V>],
        theirs: &'g [ComparedStep<V>],
    ) -> Vec<ComparedStep<V>> {
        let (by_ours, by_theirs) = (changes(base, ours), changes(base, theirs));
        let (in_ours, in_theirs) = (indexes(ours), indexes(theirs));
        // Those that ours has moved or added. They are placed behind the others.
        let mut placed: BTreeMap<&str, ComparedStep<V>> = BTreeMap::new();
        let mut fixed = Vec::new();
        for (index, theirs_step) in theirs.iter().enumerate() {
            let guid = theirs_step.guid.as_str();
            self.step = guid;
            let Some(change) = by_ours.get(guid) else {
                fixed.push(theirs_step.clone());
                continue;
            };
            let Some(ours_index) = change.target else {
                if by_theirs.contains_key(guid) {
                    self.add(ConflictSubject::Deleted);
                }
                continue;
            };
            let former = change.base.and_then(|index| base.get(index));
            let Some(ours_step) = ours.get(ours_index) else {
                continue;
            };
            let merged = self.steps_of_both(former, ours_step, theirs_step);
            let is_moved_by_theirs = by_theirs.get(guid).is_some_and(|it| it.moved);
            let is_at_same_place = || {
                let before_ours = ours.get(..ours_index).unwrap_or_default();
                let before_theirs = theirs.get(..index).unwrap_or_default();
                last_in(before_ours, &in_theirs) == last_in(before_theirs, &in_ours)
            };
            match change.base {
                Some(_) if change.moved && !is_moved_by_theirs => {
                    placed.insert(guid, merged);
                    continue;
                }
                Some(_) if change.moved && !is_at_same_place() => {
                    self.add(ConflictSubject::Place);
                }
                Some(_) | None => {}
            }
            fixed.push(merged);
        }
        for (guid, change) in &by_ours {
            let Some(ours_step) = change.target.and_then(|index| ours.get(index)) else {
                continue;
            };
            match change.base {
                _ if in_theirs.contains_key(guid) => {}
                None => {
                    placed.insert(guid, ours_step.clone());
                }
                Some(_) => {
                    self.step = guid;
                    self.add(ConflictSubject::Deleted);
                }
            }
        }
        self.step = "";
        place(fixed, placed, ours)
    }

    /// A step that both have. The base lacks one that both have added.
    fn steps_of_both<V: Clone + PartialEq>(
        &mut self,
        base: Option<&'g ComparedStep<V>>,
        ours: &'g ComparedStep<V>,
        theirs: &'g ComparedStep<V>,
    ) -> ComparedStep<V> {
        let (fields, managed) = base.map_or((&[][..], &[][..]), |it| (&it.fields, &it.managed));
        ComparedStep {
            guid: theirs.guid.clone(),
            fields: self.fields(fields, &ours.fields, &theirs.fields),
            managed: self.managed(managed, &ours.managed, &theirs.managed),
        }
    }

    fn managed<V: Clone + PartialEq>(
        &mut self,
        base: &'g Named<ComparedTask<V>>,
        ours: &'g Named<ComparedTask<V>>,
        theirs: &'g Named<ComparedTask<V>>,
    ) -> Vec<(String, ComparedTask<V>)> {
        let keys = theirs.iter().chain(ours).map(|(key, _)| key.as_str());
        let mut seen = BTreeSet::new();
        let keys: Vec<&str> = keys.filter(|key| seen.insert(*key)).collect();
        let mut merged = Vec::new();
        for key in keys {
            let [former, mine, other] = [base, ours, theirs].map(|tasks| {
                let found = tasks.iter().find(|(name, _)| name == key);
                found.map(|(_, task)| task)
            });
            let task = match (former, mine, other) {
                (None, Some(task), None) | (None, None, Some(task)) => Some(task.clone()),
                (None, Some(mine), Some(other)) => {
                    if !compare(mine, other).is_empty() {
                        self.add(ConflictSubject::BothManaged(key));
                    }
                    Some(other.clone())
                }
                (Some(former), Some(mine), Some(other)) => {
                    Some(merge_tasks(former, mine, other, self.conflicts))
                }
                (Some(former), None, Some(kept)) | (Some(former), Some(kept), None) => {
                    if !compare(former, kept).is_empty() {
                        self.add(ConflictSubject::Managed(key));
                    }
                    None
                }
                (_, None, None) => None,
            };
            merged.extend(task.map(|task| (key.to_owned(), task)));
        }
        merged
    }
}

/// The changes of steps by the ids of these.
fn changes<'g, V: PartialEq>(
    base: &'g [ComparedStep<V>],
    target: &'g [ComparedStep<V>],
) -> BTreeMap<&'g str, StepDifference<'g, V>> {
    let changes = compare_steps(base, target).into_iter();
    let by_guid = changes.filter_map(|change| {
        let step = match (change.target, change.base) {
            (Some(index), _) => target.get(index),
            (None, index) => base.get(index?),
        };
        Some((step?.guid.as_str(), change))
    });
    by_guid.collect()
}

fn indexes<V>(steps: &[ComparedStep<V>]) -> BTreeMap<&str, usize> {
    let steps = steps.iter().enumerate();
    steps
        .map(|(index, step)| (step.guid.as_str(), index))
        .collect()
}

/// The last of the steps that the other guide has, too.
fn last_in<'g, V>(steps: &'g [ComparedStep<V>], other: &BTreeMap<&str, usize>) -> Option<&'g str> {
    let guids = steps.iter().rev().map(|step| step.guid.as_str());
    guids.into_iter().find(|guid| other.contains_key(guid))
}

/// Puts each of the placed steps behind the fixed step that it follows in ours.
fn place<V>(
    fixed: Vec<ComparedStep<V>>,
    mut placed: BTreeMap<&str, ComparedStep<V>>,
    ours: &[ComparedStep<V>],
) -> Vec<ComparedStep<V>> {
    let is_fixed = indexes(&fixed);
    let mut steps = Vec::new();
    let mut followers: BTreeMap<&str, Vec<ComparedStep<V>>> = BTreeMap::new();
    let mut predecessor = None;
    for guid in ours.iter().map(|step| step.guid.as_str()) {
        if is_fixed.contains_key(guid) {
            predecessor = Some(guid);
        } else if let Some(step) = placed.remove(guid) {
            match predecessor {
                None => steps.push(step),
                Some(fixed) => followers.entry(fixed).or_default().push(step),
            }
        }
    }
    for step in fixed {
        let behind = followers.remove(step.guid.as_str());
        steps.push(step);
        steps.extend(behind.unwrap_or_default());
    }
    steps
}

#[cfg(test)]
mod tests;
