//! The differences between two guides, such as a stored one and what an import makes of it.

mod merge;

use std::collections::{BTreeMap, BTreeSet};

pub use self::merge::{Conflict, ConflictSubject, merge};

/// A task of a guide with its steps. `V` is the value of a field.
#[derive(Clone, Debug)]
pub struct ComparedTask<V> {
    /// Its id.
    pub guid: String,
    /// The honored fields that it has, by their paths.
    pub fields: Vec<(String, V)>,
    /// Its steps in order.
    pub steps: Vec<ComparedStep<V>>,
}

/// A step of a guide.
#[derive(Clone, Debug)]
pub struct ComparedStep<V> {
    /// Its id, by which the steps of two guides are matched.
    pub guid: String,
    /// The honored fields that it has, by their paths. Managed tasks are compared apart.
    pub fields: Vec<(String, V)>,
    /// The tasks that it manages, by the keys of their values.
    pub managed: Vec<(String, ComparedTask<V>)>,
}

/// The differences between two tasks.
#[derive(Debug)]
pub struct TaskDifference<'g, V> {
    /// The fields that differ.
    pub fields: Vec<FieldDifference<'g, V>>,
    /// The steps that differ, in the order of the target. One that it lacks stands behind its
    /// former predecessor.
    pub steps: Vec<StepDifference<'g, V>>,
}

/// A field that differs.
#[derive(Debug)]
pub struct FieldDifference<'g, V> {
    /// Its path.
    pub path: &'g str,
    /// What the base has there, if anything.
    pub base: Option<&'g V>,
    /// What the target has there.
    pub target: Option<&'g V>,
}

/// A step that differs.
#[derive(Debug)]
pub struct StepDifference<'g, V> {
    /// Its index in the base; `None` if it is added.
    pub base: Option<usize>,
    /// Its index in the target; `None` if it is removed.
    pub target: Option<usize>,
    /// Whether its place among the steps of both guides is another one: it is not in their
    /// longest common subsequence. Of equally long ones that with the earliest steps of the base
    /// counts.
    pub moved: bool,
    /// The fields that differ, if both guides have the step.
    pub fields: Vec<FieldDifference<'g, V>>,
    /// The managed tasks that differ, if both guides have the step.
    pub managed: Vec<(&'g str, ManagedDifference<'g, V>)>,
}

/// How the tasks differ that a value manages.
#[derive(Debug)]
pub enum ManagedDifference<'g, V> {
    /// Only the target has one.
    Added,
    /// Only the base has one.
    Removed,
    /// Both have one.
    Changed(TaskDifference<'g, V>),
}

impl<V> TaskDifference<'_, V> {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.steps.is_empty()
    }
}

impl<V> StepDifference<'_, V> {
    fn is_empty(&self) -> bool {
        let is_in_both = self.base.is_some() && self.target.is_some();
        is_in_both && !self.moved && self.fields.is_empty() && self.managed.is_empty()
    }
}

/// What makes `target` of `base`.
pub fn compare<'g, V: PartialEq>(
    base: &'g ComparedTask<V>,
    target: &'g ComparedTask<V>,
) -> TaskDifference<'g, V> {
    TaskDifference {
        fields: compare_fields(&base.fields, &target.fields),
        steps: compare_steps(&base.steps, &target.steps),
    }
}

fn compare_fields<'g, V: PartialEq>(
    base: &'g [(String, V)],
    target: &'g [(String, V)],
) -> Vec<FieldDifference<'g, V>> {
    fn by_path<V>(fields: &[(String, V)]) -> BTreeMap<&str, &V> {
        let fields = fields.iter();
        fields.map(|(path, value)| (path.as_str(), value)).collect()
    }
    let (in_base, in_target) = (by_path(base), by_path(target));
    let added = target.iter().map(|(path, _)| path.as_str());
    let added = added.filter(|path| !in_base.contains_key(path));
    let paths = base.iter().map(|(path, _)| path.as_str()).chain(added);
    let fields = paths.map(|path| FieldDifference {
        path,
        base: in_base.get(path).copied(),
        target: in_target.get(path).copied(),
    });
    fields.filter(|field| field.base != field.target).collect()
}

fn compare_steps<'g, V: PartialEq>(
    base: &'g [ComparedStep<V>],
    target: &'g [ComparedStep<V>],
) -> Vec<StepDifference<'g, V>> {
    let places: BTreeMap<&str, usize> = base
        .iter()
        .enumerate()
        .map(|(index, step)| (step.guid.as_str(), index))
        .collect();
    let in_base = target
        .iter()
        .map(|step| places.get(step.guid.as_str()).copied());
    let in_base: Vec<Option<usize>> = in_base.collect();
    let common: Vec<usize> = in_base.iter().copied().flatten().collect();
    let unmoved: BTreeSet<usize> = longest_increasing(&common).into_iter().collect();
    let common: BTreeSet<usize> = common.into_iter().collect();
    // The removed steps by the index of the step of both guides that they stand behind.
    let mut removed: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    let mut predecessor = None;
    for index in 0..base.len() {
        match common.contains(&index) {
            true => predecessor = Some(index),
            false => removed.entry(predecessor).or_default().push(index),
        }
    }
    let mut take_removed = |behind: Option<usize>| {
        let indexes = removed.remove(&behind).unwrap_or_default().into_iter();
        indexes.map(|index| StepDifference {
            base: Some(index),
            target: None,
            moved: false,
            fields: Vec::new(),
            managed: Vec::new(),
        })
    };
    let mut differences: Vec<StepDifference<'g, V>> = take_removed(None).collect();
    for (index, (after, place)) in target.iter().zip(in_base).enumerate() {
        let before = place.and_then(|place| base.get(place));
        differences.push(StepDifference {
            base: place,
            target: Some(index),
            moved: place.is_some_and(|place| !unmoved.contains(&place)),
            fields: before.map_or_else(Vec::new, |it| compare_fields(&it.fields, &after.fields)),
            managed: before.map_or_else(Vec::new, |it| compare_managed(it, after)),
        });
        if place.is_some() {
            differences.extend(take_removed(place));
        }
    }
    differences.retain(|step| !step.is_empty());
    differences
}

fn compare_managed<'g, V: PartialEq>(
    base: &'g ComparedStep<V>,
    target: &'g ComparedStep<V>,
) -> Vec<(&'g str, ManagedDifference<'g, V>)> {
    fn by_key<V>(step: &ComparedStep<V>) -> BTreeMap<&str, &ComparedTask<V>> {
        let managed = step.managed.iter();
        managed.map(|(key, task)| (key.as_str(), task)).collect()
    }
    let (in_base, in_target) = (by_key(base), by_key(target));
    let mut differences = Vec::new();
    for (key, after) in &target.managed {
        match in_base.get(key.as_str()) {
            None => differences.push((key.as_str(), ManagedDifference::Added)),
            Some(before) => {
                let difference = compare(before, after);
                if !difference.is_empty() {
                    differences.push((key.as_str(), ManagedDifference::Changed(difference)));
                }
            }
        }
    }
    let gone = base.managed.iter().map(|(key, _)| key.as_str());
    let gone = gone.filter(|key| !in_target.contains_key(key));
    differences.extend(gone.map(|key| (key, ManagedDifference::Removed)));
    differences
}

/// The longest increasing subsequence of a list of different numbers; of equally long ones the
/// one with the smallest numbers at every place.
fn longest_increasing(list: &[usize]) -> Vec<usize> {
    // `ends[n]` is the index of the smallest element that ends a subsequence of n + 1 elements.
    let mut ends: Vec<usize> = Vec::new();
    // For each element, the index of the one before it in the longest subsequence it ends.
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

    fn task(steps: &[usize]) -> ComparedTask<usize> {
        let step = |id: &usize| ComparedStep {
            guid: id.to_string(),
            fields: vec![("id".to_owned(), *id)],
            managed: Vec::new(),
        };
        ComparedTask {
            guid: String::new(),
            fields: Vec::new(),
            steps: steps.iter().map(step).collect(),
        }
    }

    #[test]
    fn steps_are_added_removed_and_moved() {
        // What stands in each guide, and the ids of the added, removed and moved steps in order.
        for (base, target, expected) in [
            (&[][..], &[][..], &[][..]),
            (&[0, 1, 2], &[0, 1, 2], &[]),
            (&[0, 1], &[0, 2, 1], &["+2"]),
            (&[0, 1, 2], &[0, 2, 3], &["-1", "+3"]),
            (&[0, 1, 2, 3], &[3], &["-0", "-1", "-2"]),
            (&[0, 1, 2], &[1, 2, 0], &["~0"]),
            // Of equally long subsequences, the one with step 0 counts.
            (&[0, 1], &[1, 0], &["~1"]),
            (&[0, 1, 2, 3], &[2, 3, 0, 1], &["~2", "~3"]),
            (&[0, 1, 2], &[2, 0], &["~2", "-1"]),
        ] {
            let (base, target) = (task(base), task(target));
            let difference = compare(&base, &target);
            let shown = difference
                .steps
                .iter()
                .map(|step| match (step.base, step.target) {
                    (Some(index), None) => format!("-{}", base.steps[index].guid),
                    (None, Some(index)) => format!("+{}", target.steps[index].guid),
                    (_, index) => format!("~{}", target.steps[index.expect("an index")].guid),
                });
            let shown: Vec<String> = shown.collect();
            assert_eq!(shown, expected, "{base:?} {target:?}");
        }
    }

    #[test]
    fn fields_and_managed_tasks_are_compared() {
        let with = |fields: &[(&str, usize)], managed: &[(&str, ComparedTask<usize>)]| {
            let mut task = task(&[1]);
            let fields = fields
                .iter()
                .map(|(path, value)| ((*path).to_owned(), *value));
            task.steps[0].fields = fields.collect();
            let managed = managed
                .iter()
                .map(|(key, task)| ((*key).to_owned(), task.clone()));
            task.steps[0].managed = managed.collect();
            task
        };
        let base = with(
            &[("same", 1), ("other", 1), ("gone", 1)],
            &[("a", task(&[])), ("b", task(&[])), ("c", task(&[]))],
        );
        let target = with(
            &[("new", 1), ("other", 2), ("same", 1)],
            &[("c", task(&[])), ("a", task(&[7])), ("d", task(&[]))],
        );
        let difference = compare(&base, &target);
        let step = &difference.steps[0];
        let paths: Vec<&str> = step.fields.iter().map(|field| field.path).collect();
        assert_eq!(paths, ["other", "gone", "new"]);
        let managed = step
            .managed
            .iter()
            .map(|(key, difference)| match difference {
                ManagedDifference::Added => format!("+{key}"),
                ManagedDifference::Removed => format!("-{key}"),
                ManagedDifference::Changed(task) => format!("{key} {}", task.steps.len()),
            });
        let managed: Vec<String> = managed.collect();
        assert_eq!(managed, ["a 1", "+d", "-b"]);
        assert!(compare(&target, &target).is_empty());
    }

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
