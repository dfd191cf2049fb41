use std::slice::from_ref;

use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::domain::compare::{FieldDifference, ManagedDifference, TaskDifference};

type Guide = ComparedTask<u8>;

/// A change of a guide. Steps, fields and managed tasks that do not exist leave it as it is.
#[derive(Clone, Debug)]
enum Edit {
    OfTask(usize, Option<u8>),
    OfStep(usize, usize, Option<u8>),
    Added(usize, usize),
    Deleted(usize),
    Moved(usize, usize),
    Managed(usize, usize, Option<u8>),
    InManaged(usize, usize, Box<Edit>),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let (id, name, value) = (0..8_usize, 0..3_usize, option::of(0..3_u8));
    let plain = prop_oneof![
        (name.clone(), value.clone()).prop_map(|(name, value)| Edit::OfTask(name, value)),
        (id.clone(), name.clone(), value.clone())
            .prop_map(|(id, name, value)| Edit::OfStep(id, name, value)),
        (id.clone(), id.clone()).prop_map(|(id, place)| Edit::Added(id, place)),
        id.clone().prop_map(Edit::Deleted),
        (id.clone(), id.clone()).prop_map(|(id, place)| Edit::Moved(id, place)),
        (id.clone(), name.clone(), value)
            .prop_map(|(id, key, value)| Edit::Managed(id, key, value)),
    ];
    let edit = plain.prop_recursive(1, 2, 1, move |inner| {
        (id.clone(), name.clone(), inner)
            .prop_map(|(id, key, inner)| Edit::InManaged(id, key, Box::new(inner)))
    });
    vec(edit, 0..5)
}

fn guide() -> impl Strategy<Value = Guide> {
    vec(edits(), 3).prop_map(|edits| {
        let first = (0..5).map(|id| Edit::Added(id, id));
        let managed = [0, 1].map(|id| Edit::Managed(id, 0, Some(1)));
        let all = first.chain(managed).chain(edits.into_iter().flatten());
        with_edits(&empty("task"), &all.collect::<Vec<Edit>>())
    })
}

fn empty(guid: &str) -> Guide {
    ComparedTask {
        guid: guid.to_owned(),
        fields: Vec::new(),
        steps: Vec::new(),
    }
}

fn with_edits(guide: &Guide, edits: &[Edit]) -> Guide {
    let mut guide = guide.clone();
    edits.iter().for_each(|edit| apply(&mut guide, edit));
    guide
}

fn apply(guide: &mut Guide, edit: &Edit) {
    let found = |guide: &Guide, id: &usize| {
        let guid = format!("{}/{id}", guide.guid);
        guide.steps.iter().position(|step| step.guid == guid)
    };
    match edit {
        Edit::OfTask(name, value) => set(&mut guide.fields, *name, *value),
        Edit::OfStep(id, name, value) => {
            if let Some(index) = found(guide, id) {
                set(&mut guide.steps[index].fields, *name, *value);
            }
        }
        Edit::Added(id, place) if found(guide, id).is_none() => {
            let step = ComparedStep {
                guid: format!("{}/{id}", guide.guid),
                fields: Vec::new(),
                managed: Vec::new(),
            };
            guide.steps.insert((*place).min(guide.steps.len()), step);
        }
        Edit::Added(..) => {}
        Edit::Deleted(id) => {
            let index = found(guide, id);
            index.map(|index| guide.steps.remove(index));
        }
        Edit::Moved(id, place) => {
            if let Some(index) = found(guide, id) {
                let step = guide.steps.remove(index);
                guide.steps.insert((*place).min(guide.steps.len()), step);
            }
        }
        Edit::Managed(id, key, value) => {
            if let Some(index) = found(guide, id) {
                let managed = value.map(|value| {
                    let mut task = empty(&format!("{}/{id}/{key}", guide.guid));
                    set(&mut task.fields, 0, Some(value));
                    task
                });
                set(&mut guide.steps[index].managed, *key, managed);
            }
        }
        Edit::InManaged(id, key, edit) => {
            if let Some(index) = found(guide, id) {
                let managed = guide.steps[index].managed.iter_mut();
                let task = managed
                    .into_iter()
                    .find(|(name, _)| *name == key.to_string());
                task.into_iter().for_each(|(_, task)| apply(task, edit));
            }
        }
    }
}

fn set<T>(named: &mut Vec<(String, T)>, name: usize, value: Option<T>) {
    let name = name.to_string();
    named.retain(|(other, _)| *other != name);
    named.extend(value.map(|value| (name, value)));
}

fn is_same(one: &Guide, two: &Guide) -> bool {
    compare(one, two).is_empty()
}

/// Whether both differ in the order of their steps at most.
fn is_same_up_to_order(one: &Guide, two: &Guide) -> bool {
    let mut sorted = [one.clone(), two.clone()];
    sorted.iter_mut().for_each(sort);
    is_same(&sorted[0], &sorted[1])
}

fn sort(guide: &mut Guide) {
    guide.steps.sort_by(|one, two| one.guid.cmp(&two.guid));
    let steps = guide.steps.iter_mut();
    let managed = steps.flat_map(|step| &mut step.managed);
    managed.for_each(|(_, task)| sort(task));
}

/// Whether a merge has every change from `base` to `side` but for places: each of these becomes
/// none when it is made again.
fn has_changes(base: &Guide, side: &Guide, merged: &Guide) -> bool {
    let has_fields = |changes: &[FieldDifference<'_, u8>], merged: &[(String, u8)]| {
        changes.iter().all(|change| {
            let found = merged.iter().find(|(path, _)| path == change.path);
            found.map(|(_, value)| value) == change.target
        })
    };
    let difference = compare(base, side);
    has_fields(&difference.fields, &merged.fields)
        && difference.steps.iter().all(|change| {
            let before = change.base.map(|index| &base.steps[index]);
            let after = change.target.map(|index| &side.steps[index]);
            let guid = &after.or(before).expect("a step").guid;
            let found = merged.steps.iter().find(|step| step.guid == *guid);
            match (before, after, found) {
                (_, None, found) => found.is_none(),
                (None, Some(after), Some(found)) => {
                    has_fields(&compare_fields(&[], &after.fields), &found.fields)
                }
                (Some(before), Some(after), Some(found)) => {
                    let task = |step: &ComparedStep<u8>, key: &str| {
                        let task = step.managed.iter().find(|(name, _)| name == key);
                        task.map_or_else(|| empty(""), |(_, task)| task.clone())
                    };
                    let keys = change.managed.iter().map(|(key, _)| *key);
                    has_fields(&change.fields, &found.fields)
                        && keys.into_iter().all(|key| {
                            has_changes(&task(before, key), &task(after, key), &task(found, key))
                        })
                }
                (_, Some(_), None) => false,
            }
        })
}

/// The ids of steps that `base` and `side` have in another order, or that one of them lacks.
fn reordered<'g>(base: &'g Guide, side: &'g Guide) -> BTreeSet<&'g str> {
    let steps = changes(&base.steps, &side.steps).into_iter();
    let reordered = steps.filter(|(_, it)| it.moved || it.base.is_none() || it.target.is_none());
    reordered.map(|(guid, _)| guid).collect()
}

proptest! {
    #[test]
    fn a_side_without_changes_leaves_the_other(base in guide(), edits in edits()) {
        let side = with_edits(&base, &edits);
        let (ours, theirs) = (merge(&base, &side, &base), merge(&base, &base, &side));
        prop_assert!(is_same(&ours.expect("no conflict"), &side));
        prop_assert!(is_same(&theirs.expect("no conflict"), &side));
    }

    #[test]
    fn equal_changes_are_no_conflict(base in guide(), edits in edits()) {
        let side = with_edits(&base, &edits);
        let merged = merge(&base, &side, &side).expect("no conflict");
        prop_assert!(is_same(&merged, &side));
    }

    #[test]
    fn a_merge_has_the_changes_of_both_sides(
        base in guide(),
        ours in edits(),
        theirs in edits(),
    ) {
        let (ours, theirs) = (with_edits(&base, &ours), with_edits(&base, &theirs));
        if let Ok(merged) = merge(&base, &ours, &theirs) {
            prop_assert!(has_changes(&base, &ours, &merged), "ours: {merged:?}");
            prop_assert!(has_changes(&base, &theirs, &merged), "theirs: {merged:?}");
            // What ours leaves in its place has the order of theirs.
            let elsewhere = reordered(&base, &ours);
            let order = |guide: &Guide| {
                let guids = guide.steps.iter().map(|step| step.guid.clone());
                let left = guids.filter(|guid| !elsewhere.contains(guid.as_str()));
                left.collect::<Vec<String>>()
            };
            prop_assert_eq!(order(&merged), order(&theirs));
        }
    }

    #[test]
    fn it_does_not_matter_which_side_is_whose(
        base in guide(),
        ours in edits(),
        theirs in edits(),
    ) {
        let (ours, theirs) = (with_edits(&base, &ours), with_edits(&base, &theirs));
        let (one, two) = (merge(&base, &ours, &theirs), merge(&base, &theirs, &ours));
        match (one, two) {
            (Ok(one), Ok(two)) => {
                prop_assert!(is_same_up_to_order(&one, &two));
                let is_in_order = |side| keeps_order(&compare(&base, side));
                if is_in_order(&ours) || is_in_order(&theirs) {
                    prop_assert!(is_same(&one, &two));
                }
            }
            (Err(one), Err(two)) => prop_assert_eq!(one.len(), two.len()),
            (one, two) => prop_assert!(false, "{one:?} {two:?}"),
        }
    }

    /// Ids may even appear twice.
    #[test]
    fn any_guides_can_be_merged(guides in vec(vec((0..4_u8, 0..3_u8), 0..7), 3)) {
        let guides = guides.iter().map(|steps| {
            let steps = steps.iter().map(|(id, value)| ComparedStep {
                guid: id.to_string(),
                fields: vec![("a".to_owned(), *value), ("a".to_owned(), *id)],
                managed: vec![("k".to_owned(), empty("m")), ("k".to_owned(), empty("n"))],
            });
            ComparedTask { steps: steps.collect(), ..empty("") }
        });
        let guides: Vec<Guide> = guides.collect();
        let _ = merge(&guides[0], &guides[1], &guides[2]);
    }
}

/// Whether the steps are the same, in the same order, at every depth.
fn keeps_order(difference: &TaskDifference<'_, u8>) -> bool {
    difference.steps.iter().all(|step| {
        let is_in_place = step.base.is_some() && step.target.is_some() && !step.moved;
        is_in_place
            && step.managed.iter().all(|(_, managed)| match managed {
                ManagedDifference::Changed(task) => keeps_order(task),
                ManagedDifference::Added | ManagedDifference::Removed => true,
            })
    })
}

/// A conflict on one line; of a task itself with its id.
fn line(conflict: &Conflict<'_>) -> String {
    let subject = match conflict.subject {
        ConflictSubject::Field(path) => path.to_owned(),
        ConflictSubject::Place => "place".to_owned(),
        ConflictSubject::Deleted => "deleted".to_owned(),
        ConflictSubject::Managed(key) => format!("managed {key}"),
        ConflictSubject::BothManaged(key) => format!("both managed {key}"),
    };
    let place = match conflict.step {
        "" => conflict.task,
        step => step,
    };
    format!("{place} {subject}")
}

#[test]
fn what_both_change_differently_is_a_conflict() {
    use Edit::*;

    let base = with_edits(
        &empty(""),
        &[
            OfTask(0, Some(1)),
            Added(0, 0),
            Added(1, 1),
            Added(2, 2),
            OfStep(1, 0, Some(1)),
            Managed(1, 0, Some(1)),
        ],
    );
    let inner = |edit| InManaged(1, 0, Box::new(edit));
    for (ours, theirs, conflicts) in [
        (OfTask(0, Some(2)), OfTask(0, Some(3)), vec![" 0"]),
        (OfTask(0, None), OfTask(0, Some(3)), vec![" 0"]),
        (OfTask(1, Some(2)), OfTask(1, Some(3)), vec![" 1"]),
        (OfTask(0, Some(2)), OfTask(0, None), vec![" 0"]),
        (OfTask(0, Some(2)), OfTask(1, Some(3)), vec![]),
        (OfStep(1, 0, Some(2)), OfStep(1, 0, None), vec!["/1 0"]),
        (OfStep(1, 0, Some(2)), OfStep(0, 0, Some(2)), vec![]),
        (Deleted(1), OfStep(1, 0, Some(2)), vec!["/1 deleted"]),
        (OfStep(1, 0, Some(2)), Deleted(1), vec!["/1 deleted"]),
        (Moved(2, 0), Deleted(2), vec!["/2 deleted"]),
        (Deleted(2), Moved(2, 0), vec!["/2 deleted"]),
        (Deleted(1), inner(OfTask(0, Some(2))), vec!["/1 deleted"]),
        (inner(OfTask(0, Some(2))), Deleted(1), vec!["/1 deleted"]),
        (Deleted(1), Deleted(1), vec![]),
        (Deleted(1), OfStep(0, 0, Some(2)), vec![]),
        (Moved(2, 0), Moved(2, 1), vec!["/2 place"]),
        (Moved(2, 0), Moved(2, 0), vec![]),
        (Added(7, 0), Added(7, 2), vec![]),
        (
            inner(OfTask(0, Some(2))),
            inner(OfTask(0, Some(3))),
            vec!["/1/0 0"],
        ),
        (
            inner(OfTask(0, Some(2))),
            Managed(1, 0, None),
            vec!["/1 managed 0"],
        ),
        (
            Managed(1, 0, None),
            inner(Added(1, 0)),
            vec!["/1 managed 0"],
        ),
        (
            Managed(0, 1, Some(1)),
            Managed(0, 1, Some(2)),
            vec!["/0 both managed 1"],
        ),
        (Managed(0, 1, Some(1)), Managed(0, 1, Some(1)), vec![]),
    ] {
        let (mine, other) = (
            with_edits(&base, from_ref(&ours)),
            with_edits(&base, from_ref(&theirs)),
        );
        let found = merge(&base, &mine, &other).err().unwrap_or_default();
        let found: Vec<String> = found.iter().map(line).collect();
        assert_eq!(found, conflicts, "{ours:?} {theirs:?}");
    }
}

#[test]
fn added_and_moved_steps_stand_behind_those_that_they_follow() {
    for (ours, theirs, expected) in [
        (&[0, 7, 1, 2][..], &[0, 1, 2][..], &[0, 7, 1, 2][..]),
        (&[7, 8, 0, 1, 2], &[0, 2], &[7, 8, 0, 2]),
        (&[0, 7, 1, 2], &[0, 9, 1, 2], &[0, 7, 9, 1, 2]),
        (&[0, 8, 7, 1, 2], &[0, 1, 2], &[0, 8, 7, 1, 2]),
        // The one before it is deleted.
        (&[0, 1, 7, 2], &[0, 2], &[0, 7, 2]),
        (&[2, 0, 1], &[0, 1, 9, 2], &[2, 0, 1, 9]),
        (&[0, 1, 2], &[2, 1, 0], &[2, 1, 0]),
    ] {
        let guide = |ids: &[usize]| {
            let added = ids
                .iter()
                .enumerate()
                .map(|(place, id)| Edit::Added(*id, place));
            with_edits(&empty(""), &added.collect::<Vec<Edit>>())
        };
        let merged = merge(&guide(&[0, 1, 2]), &guide(ours), &guide(theirs)).expect("no conflict");
        let merged: Vec<&str> = merged.steps.iter().map(|step| step.guid.as_str()).collect();
        let expected: Vec<String> = expected.iter().map(|id| format!("/{id}")).collect();
        assert_eq!(merged, expected, "{ours:?} {theirs:?}");
    }
}
