//! After any history, each value of a linked question names its managed task, each managed task has
//! one wiring step, and exactly what has changed has a new version. A refused write changes nothing,
//! nor does a dry run, which is answered as the write.

use std::collections::BTreeMap;

use proptest::collection::vec;
use prost_reflect::DynamicMessage;
use tonic::Status;

use crate::{
    kit::{
        links::{State, links_are_consistent},
        random_writes::{Kind, Write, write},
        snapshot,
    },
    prelude::*,
};

/// The reasons with which a random write may be refused.
const REFUSALS: [&str; 11] = [
    "ABSENT_STEPS",
    "EXTERNAL_ID_TAKEN",
    // An observation that is created, as its id is left out, needs its question.
    "FIELD_REQUIRED",
    "LINKED_IMPORT_ONLY",
    "NESTING_TOO_DEEP",
    "ROLE_NOT_FOUND",
    "STEP_MANAGED",
    // A document under another key belongs to the task of that key, which lacks its steps.
    "STEP_NOT_FOUND",
    "TASK_HAS_STEPS",
    "TASK_MANAGED",
    "TASK_REFERENCED",
];

fn steps_of(state: &State) -> impl Iterator<Item = &Step> {
    state.iter().flat_map(|(_, steps)| steps)
}

/// Asserts that a key that a question had, and still has, manages the same task.
fn assert_known_keys_keep_their_tasks(before: &State, after: &State) {
    let links = |state: &State| -> BTreeMap<(String, String), String> {
        let values = steps_of(state).flat_map(|step| {
            let linked = answers_of(step).iter().filter(|it| !it.link.is_empty());
            linked.map(|value| ((step.guid.clone(), value.key.clone()), value.link.clone()))
        });
        values.collect()
    };
    let before = links(before);
    for (value, link) in links(after) {
        let known = before.get(&value).unwrap_or(&link);
        assert_eq!(*known, link, "{value:?}");
    }
}

/// Asserts that exactly the changed resources have a new version.
fn assert_versions_follow_changes(before: &State, after: &State) {
    let tasks: BTreeMap<&str, &Task> = before.iter().map(|(it, _)| (&*it.guid, it)).collect();
    for (task, _) in after {
        if let Some(before) = tasks.get(&*task.guid) {
            let content = |task: &Task| without_system_fields_of_task(task.clone());
            let changed = content(task) != content(before);
            assert_eq!(task.etag != before.etag, changed, "{before:?} {task:?}");
            assert_eq!(task.created_ts, before.created_ts);
            let later = task.modified_ts != before.modified_ts;
            assert_eq!(later, changed, "{before:?} {task:?}");
        }
    }
    let steps: BTreeMap<&str, &Step> = steps_of(before).map(|it| (&*it.guid, it)).collect();
    for step in steps_of(after) {
        if let Some(before) = steps.get(&*step.guid) {
            let content = |step: &Step| without_system_fields_of_step(step.clone());
            let changed = content(step) != content(before);
            assert_eq!(step.etag != before.etag, changed, "{before:?} {step:?}");
            assert_eq!(step.created_ts, before.created_ts);
            let later = step.modified_ts != before.modified_ts;
            assert_eq!(later, changed, "{before:?} {step:?}");
        }
    }
}

/// What the answers to a write and to its dry run have in common: all but new ids, versions and
/// what only one of them has.
fn in_common(answer: &Result<DynamicMessage, Status>) -> String {
    let text = match answer {
        Ok(response) => {
            let mut shown = snapshot::shown(response);
            let members = shown.as_object_mut().expect("a message");
            for name in ["document", "guide_etag", "previous_revision"] {
                members.remove(name);
            }
            shown.to_string()
        }
        Err(status) => format!("{:?} {}", status.code(), status.message()),
    };
    snapshot::number_ids(&text)
}

#[apply(property_on_both_databases)]
#[cases(6, vec(write(), 2..16))]
async fn links_stay_consistent(client: Client, mut writes: Vec<Write>) {
    // Something to link from, and above all edits of it.
    for (number, write) in writes.iter_mut().enumerate() {
        let kind = match number % 4 {
            _ if number == 0 => Kind::ImportGuide,
            1 => Kind::ImportEdited,
            3 => Kind::UpdateQuestion,
            _ => continue,
        };
        *write = write.of_kind(kind);
    }
    let mut state = State::new();
    for (number, write) in writes.iter().enumerate() {
        let Some(call) = write.call(&client, number).await.accepted() else {
            continue;
        };
        let mut shown = None;
        if let Some(dry_run) = call.clone().dry_run() {
            shown = Some(dry_run.response(&client).await);
            assert_eq!(client.tasks_with_steps().await, state, "{dry_run:?}");
        }
        let answer = call.response(&client).await;
        let after = client.tasks_with_steps().await;
        if let Some(shown) = &shown {
            assert_eq!(in_common(shown), in_common(&answer), "{call:?}");
        }
        if call.rpc() == "ImportTask"
            && let (Some(Ok(shown)), Ok(done)) = (&shown, &answer)
        {
            let done = done
                .transcode_to::<ImportTaskResponse>()
                .expect("its response");
            let shown = shown
                .transcode_to::<ImportTaskResponse>()
                .expect("its response");
            let exported = client
                .exported(&done.task.as_ref().expect("a task").guid)
                .await;
            let shown_guide = shown.document.expect("the guide");
            assert_eq!(canonical(shown_guide), canonical(exported));
            assert_eq!(done.outcome() == ImportOutcome::Unchanged, after == state);
        }
        if let Err(status) = answer {
            let failure = Failure::from(status);
            assert!(
                REFUSALS.contains(&failure.reason()),
                "{call:?}: {failure:?}"
            );
            assert_eq!(after, state);
        }
        links_are_consistent(&after);
        assert_known_keys_keep_their_tasks(&state, &after);
        assert_versions_follow_changes(&state, &after);
        state = after;
    }
    for (task, _) in &state {
        let exported = client.exported(&task.guid).await;
        let response = client.import(exported).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0]);
        assert_eq!(response.task.as_ref(), Some(task));
    }
    assert_eq!(client.tasks_with_steps().await, state);
}
