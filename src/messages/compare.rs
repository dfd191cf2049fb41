//! The differences between two guides in the fields that imports honor.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use prost::Message;
use serde_json::Value;

use super::{
    encoded_resource::{EncodedResource, FieldKey},
    fields::{FieldUse, ResourceFields, STEP, TASK, TRANSLATIONS},
    managed_documents::{managed_document, managed_documents, values, values_mut},
    update::UNMANAGED_ONLY,
};
use crate::proto::v1::{FeedbackValue, Step, StepType, TaskDocument};

/// A field of a task or step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    /// The language of the translation that has the field.
    pub language: Option<String>,
    pub name: &'static str,
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.language {
            Some(language) => write!(f, "{TRANSLATIONS}[\"{language}\"].{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

impl FieldPath {
    /// The value of the field in the JSON of its task or step.
    pub fn value<'j>(&self, json: &'j Value) -> Option<&'j Value> {
        match &self.language {
            Some(language) => json.get(TRANSLATIONS)?.get(language)?.get(self.name),
            None => json.get(self.name),
        }
    }
}

/// The differences between two tasks.
#[derive(Debug)]
pub struct TaskDifference<'g> {
    pub base: &'g TaskDocument,
    pub target: &'g TaskDocument,
    pub fields: Vec<FieldPath>,
    /// The steps that differ, in the order of the target. A removed step comes after its
    /// predecessor in the base.
    pub steps: Vec<StepDifference<'g>>,
}

/// A step that differs.
#[derive(Debug)]
pub struct StepDifference<'g> {
    /// The step and its index in the base; `None` if it was added.
    pub base: Option<(usize, &'g Step)>,
    /// The step and its index in the target; `None` if it was removed.
    pub target: Option<(usize, &'g Step)>,
    /// Whether it has moved among the steps that both guides have: it is not in their longest
    /// common subsequence. Of equally long ones, the one with the earliest steps of the base
    /// counts.
    pub moved: bool,
    /// The fields that differ, if both guides have the step.
    pub fields: Vec<FieldPath>,
    /// The managed tasks that differ, by the keys of their values, if both guides have the step.
    pub managed: Vec<(&'g str, ManagedDifference<'g>)>,
}

/// How the managed tasks of a value differ.
#[derive(Debug)]
pub enum ManagedDifference<'g> {
    /// Only the target has the task.
    Added(&'g FeedbackValue, &'g TaskDocument),
    /// Only the base has the task.
    Removed(&'g FeedbackValue, &'g TaskDocument),
    /// Both have the task.
    Changed(TaskDifference<'g>),
}

impl TaskDifference<'_> {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.steps.is_empty()
    }
}

impl StepDifference<'_> {
    fn is_empty(&self) -> bool {
        let is_in_both = self.base.is_some() && self.target.is_some();
        is_in_both && !self.moved && self.fields.is_empty() && self.managed.is_empty()
    }
}

/// The differences from `base` to `target`, excluding what a managed task of `target` takes from
/// its answer.
pub fn compare<'g>(base: &'g TaskDocument, target: &'g TaskDocument) -> TaskDifference<'g> {
    let mut difference = compare_whole(base, target);
    let task = target.task.as_ref();
    if task.is_some_and(|task| !task.parent_guid.is_empty()) {
        let fields = &mut difference.fields;
        fields.retain(|it| it.language.is_some() || !UNMANAGED_ONLY.contains(&it.name));
    }
    difference
}

/// The differences from `base` to `target`.
pub fn compare_whole<'g>(base: &'g TaskDocument, target: &'g TaskDocument) -> TaskDifference<'g> {
    TaskDifference {
        base,
        target,
        fields: changed_fields(&TASK, &encoded_task(base), &encoded_task(target)),
        steps: compare_steps(&base.steps, &target.steps),
    }
}

/// The fields that differ between two encoded tasks or steps.
pub fn changed_fields(
    resource: &'static ResourceFields,
    base: &[u8],
    target: &[u8],
) -> Vec<FieldPath> {
    if base == target {
        return Vec::new();
    }
    let [base, target] = [base, target].map(|bytes| read(resource, bytes));
    let changed = changed_keys(resource, &base, &target).into_iter();
    changed.filter_map(|key| honored(resource, key)).collect()
}

/// An encoded task or step; empty if it does not exist.
pub fn read<'m>(resource: &ResourceFields, bytes: &'m [u8]) -> EncodedResource<'m> {
    EncodedResource::read(resource, bytes).unwrap_or_default()
}

/// The fields that differ between two tasks or steps, if an import honors them. Fields of
/// translations are compared one by one. `subtask_external_id` only counts if `subtask_id` is
/// absent or differs.
pub fn changed_keys<'m>(
    resource: &'static ResourceFields,
    EncodedResource(base): &EncodedResource<'m>,
    EncodedResource(target): &EncodedResource<'m>,
) -> Vec<FieldKey<'m>> {
    let added = target.keys().filter(|key| !base.contains_key(*key));
    let all = base.keys().chain(added).copied();
    let changed = all.filter(|key| base.get(key) != target.get(key));
    let mut changed: Vec<_> = changed
        .filter(|key| honored(resource, *key).is_some())
        .collect();
    let key = |name| Some((None, resource.find(name)?.0));
    if let (Some(id), Some(external_id)) = (key("subtask_id"), key("subtask_external_id"))
        && base.contains_key(&id)
        && base.get(&id) == target.get(&id)
    {
        changed.retain(|key| *key != external_id);
    }
    changed
}

/// The path of a field, if imports honor it.
pub fn honored(resource: &'static ResourceFields, key: FieldKey<'_>) -> Option<FieldPath> {
    let (language, number) = key;
    let name = match (language, resource.get(number)) {
        (Some(_), _) => resource.translation.get(&number)?,
        (None, Some((name, FieldUse::Honored))) => name,
        (None, _) => return None,
    };
    Some(FieldPath {
        language: language.map(str::to_owned),
        name,
    })
}

pub fn encoded_task(guide: &TaskDocument) -> Vec<u8> {
    let task = guide.task.as_ref();
    task.map(Message::encode_to_vec).unwrap_or_default()
}

/// A step with its [`own_fields`].
pub fn encoded_step(step: &Step) -> Vec<u8> {
    own_fields(step).encode_to_vec()
}

/// The step without managed tasks, which are compared separately, and without fields that follow
/// from other tasks.
pub fn own_fields(step: &Step) -> Cow<'_, Step> {
    let mut own = Cow::Borrowed(step);
    if values(step).any(|value| value.task_json.is_some() || !value.link.is_empty()) {
        for value in values_mut(own.to_mut()) {
            value.task_json = None;
            value.link.clear();
        }
    }
    if step.r#type() == StepType::Subtask && !step.title.is_empty() {
        own.to_mut().title.clear();
    }
    own
}

/// The differences between the steps of `base` and `target`. Steps are matched by their ids.
pub fn compare_steps<'g>(base: &'g [Step], target: &'g [Step]) -> Vec<StepDifference<'g>> {
    let base: Vec<(usize, &Step)> = base.iter().enumerate().collect();
    let in_base: BTreeMap<&str, (usize, &Step)> =
        base.iter().map(|it| (it.1.guid.as_str(), *it)).collect();
    let pairs = target
        .iter()
        .map(|step| in_base.get(step.guid.as_str()).copied());
    let pairs: Vec<Option<(usize, &Step)>> = pairs.collect();
    let common: Vec<usize> = pairs.iter().flatten().map(|(index, _)| *index).collect();
    let unmoved: BTreeSet<usize> = longest_increasing(&common).into_iter().collect();
    let common: BTreeSet<usize> = common.into_iter().collect();
    // The removed steps by the index of the nearest earlier step that both guides have.
    let mut removed: BTreeMap<Option<usize>, Vec<StepDifference<'g>>> = BTreeMap::new();
    let mut predecessor = None;
    for (index, step) in base {
        if common.contains(&index) {
            predecessor = Some(index);
            continue;
        }
        removed
            .entry(predecessor)
            .or_default()
            .push(StepDifference {
                base: Some((index, step)),
                target: None,
                moved: false,
                fields: Vec::new(),
                managed: Vec::new(),
            });
    }
    let mut differences = removed.remove(&None).unwrap_or_default();
    for (target, base) in target.iter().enumerate().zip(pairs) {
        let place = base.map(|(index, _)| index);
        let (fields, managed) = base.map_or_else(Default::default, |(_, base)| {
            let [before, after] = [base, target.1].map(encoded_step);
            let fields = changed_fields(&STEP, &before, &after);
            (fields, compare_managed(base, target.1))
        });
        differences.push(StepDifference {
            base,
            target: Some(target),
            moved: place.is_some_and(|place| !unmoved.contains(&place)),
            fields,
            managed,
        });
        if place.is_some() {
            differences.extend(removed.remove(&place).unwrap_or_default());
        }
    }
    differences.retain(|step| !step.is_empty());
    differences
}

fn compare_managed<'g>(base: &'g Step, target: &'g Step) -> Vec<(&'g str, ManagedDifference<'g>)> {
    let compared = managed_documents(target).filter_map(|(value, after)| {
        let difference = match managed_document(base, &value.key) {
            None => ManagedDifference::Added(value, after),
            Some(before) => {
                let difference = compare(before, after);
                ManagedDifference::Changed(Some(difference).filter(|it| !it.is_empty())?)
            }
        };
        Some((value.key.as_str(), difference))
    });
    let removed = managed_documents(base).filter_map(|(value, before)| {
        let is_gone = managed_document(target, &value.key).is_none();
        is_gone.then_some((
            value.key.as_str(),
            ManagedDifference::Removed(value, before),
        ))
    });
    compared.chain(removed).collect()
}

/// The longest increasing subsequence of distinct numbers. Of equally long ones, the one with the
/// smallest numbers at every position.
fn longest_increasing(list: &[usize]) -> Vec<usize> {
    // `ends[n]` is the index of the smallest last element of a subsequence of n + 1 elements.
    let mut ends: Vec<usize> = Vec::new();
    // For each element, the index of its predecessor in the longest subsequence that ends with it.
    let mut before: Vec<Option<usize>> = Vec::with_capacity(list.len());
    for (index, number) in list.iter().enumerate() {
        let length = ends.partition_point(|end| list.get(*end) < Some(number));
        before.push(length.checked_sub(1).and_then(|at| ends.get(at).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut longest = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        longest.extend(list.get(index));
        next = before.get(index).copied().flatten();
    }
    longest.reverse();
    longest
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::subsequence};

    use super::*;

    /// All increasing subsequences of the greatest length.
    fn longest(list: &[usize]) -> Vec<Vec<usize>> {
        let all = (0..1_u32 << list.len()).map(|chosen| {
            let chosen = list
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1);
            chosen.map(|(_, number)| *number).collect::<Vec<usize>>()
        });
        let all: Vec<_> = all.filter(|it| it.is_sorted()).collect();
        let length = all.iter().map(Vec::len).max().unwrap_or_default();
        all.into_iter().filter(|it| it.len() == length).collect()
    }

    proptest! {
        #[test]
        fn the_longest_subsequence_with_the_earliest_steps_is_kept(
            list in subsequence((0..9).collect::<Vec<usize>>(), 0..=9).prop_shuffle(),
        ) {
            let earliest = longest(&list).into_iter().min().unwrap_or_default();
            prop_assert_eq!(longest_increasing(&list), earliest);
        }
    }
}
