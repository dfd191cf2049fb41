use std::slice::from_ref;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::messages::{
    compare::{ManagedDifference, TaskDifference, changed_fields, compare_whole as compare},
    managed_documents::managed_documents_mut,
};
use edits::{Edit, edits, empty, empty_step, guide, set_step, with_edits};

mod edits;

fn is_same(one: &TaskDocument, two: &TaskDocument) -> bool {
    compare(one, two).is_empty()
}

/// Whether both differ in the order of their steps at most.
fn is_same_up_to_order(one: &TaskDocument, two: &TaskDocument) -> bool {
    let mut sorted = [one.clone(), two.clone()];
    sorted.iter_mut().for_each(sort);
    is_same(&sorted[0], &sorted[1])
}

fn sort(guide: &mut TaskDocument) {
    guide.steps.sort_by(|one, two| one.guid.cmp(&two.guid));
    let steps = guide.steps.iter_mut();
    steps.flat_map(managed_documents_mut).for_each(sort);
}

/// Whether a merge has every change from `base` to `side`, except positions. Making such a change
/// again changes nothing.
fn has_changes(base: &TaskDocument, side: &TaskDocument, merged: &TaskDocument) -> bool {
    let difference = compare(base, side);
    let missing = changed_fields(&TASK, &encoded_task(side), &encoded_task(merged));
    difference.fields.iter().all(|path| !missing.contains(path))
        && difference.steps.iter().all(|change| {
            let [before, after] = [change.base, change.target].map(|it| it.map(|(_, step)| step));
            let guid = &after.or(before).expect("a step").guid;
            let found = merged.steps.iter().find(|step| step.guid == *guid);
            let (Some(after), Some(found)) = (after, found) else {
                return after.is_none() && found.is_none();
            };
            let missing = changed_fields(&STEP, &encoded_step(after), &encoded_step(found));
            let fields = match before {
                Some(_) => change.fields.clone(),
                None => changed_fields(&STEP, &[], &encoded_step(after)),
            };
            let task = |step, key: &str| managed_document(step, key).unwrap_or(&NO_GUIDE);
            fields.iter().all(|path| !missing.contains(path))
                && change.managed.iter().all(|(key, _)| {
                    let former = before.map_or(&NO_GUIDE, |before| task(before, key));
                    has_changes(former, task(after, key), task(found, key))
                })
        })
}

/// The ids of steps that `base` and `side` have in another order, or that one of them lacks.
fn reordered<'g>(base: &'g TaskDocument, side: &'g TaskDocument) -> BTreeSet<&'g str> {
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
        let merged = match merge(&base, &ours, &theirs) {
            Ok(merged) => merged,
            Err(failed) => {
                let merged = failed.preferring_ours;
                prop_assert!(has_changes(&base, &ours, &merged), "preferring ours: {merged:?}");
                return Ok(());
            }
        };
        prop_assert!(has_changes(&base, &ours, &merged), "ours: {merged:?}");
        prop_assert!(has_changes(&base, &theirs, &merged), "theirs: {merged:?}");
        // What ours leaves in its place has the order of theirs.
        let elsewhere = reordered(&base, &ours);
        let order = |guide: &TaskDocument| {
            let guids = guide.steps.iter().map(|step| step.guid.clone());
            let left = guids.filter(|guid| !elsewhere.contains(guid.as_str()));
            left.collect::<Vec<String>>()
        };
        prop_assert_eq!(order(&merged), order(&theirs));
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
            (Err(one), Err(two)) => prop_assert_eq!(one.conflicts.len(), two.conflicts.len()),
            (one, two) => prop_assert!(false, "{one:?} {two:?}"),
        }
    }

    /// Ids may even appear twice.
    #[test]
    fn any_guides_can_be_merged(guides in vec(vec((0..4_u8, 0..3_u8), 0..7), 3)) {
        let guides = guides.iter().map(|steps| {
            let steps = steps.iter().map(|(id, value)| {
                let mut step = empty_step(id.to_string());
                set_step(&mut step, 0, Some(*value));
                for (value, name) in step.feedback_config[0].values.iter_mut().zip(["m", "n"]) {
                    value.key = "k".to_owned();
                    value.task_json = Some(Box::new(empty(name)));
                }
                step
            });
            TaskDocument { steps: steps.collect(), ..empty("") }
        });
        let guides: Vec<TaskDocument> = guides.collect();
        let _ = merge(&guides[0], &guides[1], &guides[2]);
    }
}

/// Whether the steps are the same, in the same order, at every depth.
fn keeps_order(difference: &TaskDifference<'_>) -> bool {
    difference.steps.iter().all(|step| {
        let is_in_place = step.base.is_some() && step.target.is_some() && !step.moved;
        is_in_place
            && step.managed.iter().all(|(_, managed)| match managed {
                ManagedDifference::Changed(task) => keeps_order(task),
                ManagedDifference::Added(..) | ManagedDifference::Removed(..) => true,
            })
    })
}

/// A conflict on one line; of a task itself with its id.
fn line(conflict: &Conflict<'_>) -> String {
    let subject = match &conflict.subject {
        ConflictSubject::Field(path) => path.to_string(),
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
        (OfTask(0, Some(2)), OfTask(0, Some(3)), vec![" name"]),
        (OfTask(0, None), OfTask(0, Some(3)), vec![" name"]),
        (OfTask(1, Some(2)), OfTask(1, Some(3)), vec![" external_id"]),
        (OfTask(0, Some(2)), OfTask(0, None), vec![" name"]),
        (OfTask(0, Some(2)), OfTask(1, Some(3)), vec![]),
        (OfStep(1, 0, Some(2)), OfStep(1, 0, None), vec!["/1 title"]),
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
            vec!["/1/0 name"],
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
        (inner(Added(1, 0)), ValueRemoved(1, 0), vec!["/1 managed 0"]),
        (
            ValueRemoved(1, 2),
            Managed(1, 2, Some(1)),
            vec!["/1 managed 2"],
        ),
        (ValueRemoved(1, 0), OfStep(1, 0, None), vec![]),
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
        let failed = merge(&base, &mine, &other).err();
        let found = failed.map(|it| it.conflicts).unwrap_or_default();
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
