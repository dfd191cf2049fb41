//! Deleted steps: what is kept of them, and how they come back.

use proptest::{collection::vec, prelude::*, sample::Index};

use crate::prelude::*;

pub fn restore(guid: &str) -> RestoreStepRequest {
    RestoreStepRequest { guid: guid.into() }
}

async fn restored(client: &Client, guid: &str) -> (Step, Placement) {
    let restored = client.call(restore(guid)).await.accepted();
    let placement = restored.placement();
    (restored.step.expect("the step"), placement)
}

pub async fn not_restored(client: &Client, guid: &str) {
    let failure = client.call(restore(guid)).await.refused();
    failure.is_step_not_found(guid);
}

async fn deleted_ids(client: &Client, task: &str) -> Vec<String> {
    let steps = client.deleted_steps(task).await.into_iter();
    let ids = steps.map(|deleted| deleted.step.expect("the step").guid);
    ids.collect()
}

/// The step without what a restore renews.
fn content(step: &Step) -> Step {
    step.clone().with_etag("").with(|it| it.modified_ts = None)
}

fn without_bodies(mut step: Step) -> Step {
    step.body = None;
    for translation in step.translations.values_mut() {
        translation.body = None;
    }
    step
}

#[apply(on_both_databases)]
async fn a_step_comes_back_as_it_was(client: Client) {
    let client = client.with_metadata("x-subject", "jane");
    let guide = client.given_task(task("Guide")).await;
    let first = client.given_step(information_step(&guide, "First")).await;
    let step = client.given_step(full_step(&guide)).await;
    client.given_step(information_step(&guide, "Last")).await;
    let locked = step_translation("Gesperrt").with_lock(true);
    let update = step_of(&step.guid).translated("nl", locked);
    client.updated_step(update, &["translations.nl"]).await;
    // Made from a text that has changed since.
    let work = client.translation_work(&["fr"]).await;
    for work in work.iter().filter(|work| work.guid == step.guid) {
        client.written(automatic(work, "Français")).await;
    }
    let before = client.retitle(&step.guid, "Changed").await;
    let order = client.step_order(&guide.guid).await;
    let languages = ["de", "fr", "nl"];
    let work = client.translation_work(&languages).await;
    let cursor = client.cursor_now().await;
    client.delete_step(&step.guid).await.accepted();

    let deleted = client.deleted_steps(&guide.guid).await;
    let [deleted] = deleted.as_slice() else {
        panic!("one deleted step: {deleted:?}");
    };
    let shown = deleted.step.clone().expect("the step");
    assert_eq!(shown, without_bodies(before.clone()));
    assert_eq!(deleted.previous_step, first.guid);
    assert_eq!(deleted.subject, "jane");
    assert!(deleted.deleted_ts.is_some());

    let (after, placement) = restored(&client, &step.guid.to_uppercase()).await;
    assert_eq!(placement, Placement::AfterPrevstep);
    assert_eq!(content(&after), content(&before));
    assert_ne!(after.etag, before.etag);
    assert_eq!(after, client.get_step(&step.guid).await.accepted());
    assert_eq!(client.step_order(&guide.guid).await, order);
    assert_eq!(client.translation_work(&languages).await, work);
    assert_eq!(client.deleted_steps(&guide.guid).await, []);
    let changes = client.changes_after(&cursor).await.0;
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.kind(), &*change.step, &*change.rpc))
        .collect();
    let expected = [
        (ChangeKind::StepDeleted, &*step.guid, "DeleteStep"),
        (ChangeKind::StepCreated, &*step.guid, "RestoreStep"),
    ];
    assert_eq!(told, expected);
    assert_eq!(changes[1].etag, after.etag);

    not_restored(&client, &step.guid).await;
    // It can be deleted again, with its new etag alone.
    let delete = |etag: &str| {
        let (guid, etag) = (step.guid.clone(), etag.to_owned());
        client.call(DeleteStepRequest { guid, etag })
    };
    delete(&before.etag).await.refused();
    delete(&after.etag).await.accepted();
    restored(&client, &step.guid).await;
}

/// That steps come back after the one before them is a law below.
#[apply(on_both_databases)]
async fn steps_come_back_until_there_is_no_room_left_before_the_others(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&guide, &["a", "b", "c"]).await;
    for _ in 0..80 {
        for (step, expected) in steps
            .iter()
            .zip([Placement::First, Placement::AfterPrevstep])
        {
            client.delete_step(step).await.accepted();
            assert_eq!(restored(&client, step).await.1, expected);
        }
    }
    assert_eq!(client.step_order(&guide.guid).await, steps);
}

#[apply(on_both_databases)]
async fn what_is_not_kept_is_not_found(client: Client) {
    let steps = document_steps(&["a", "b", "c"]);
    let guide = client.given_guide(steps).await;
    let [a, b, c] = &guide.steps[..] else {
        panic!("three steps");
    };
    not_restored(&client, &unknown_guid()).await;
    not_restored(&client, a).await;
    client.kept_revision(&guide.guid).await;
    client.delete_step(a).await.accepted();
    let other = client.other_account();
    not_restored(&other, a).await;
    let failure =
        other.call(ListDeletedStepsRequest::default().with(|it| it.task = guide.guid.clone()));
    failure.await.refused().is_task_not_found(&guide.guid);
    // An import keeps no single steps.
    let rest = document_of(&guide.guid, vec![step_of(c)]);
    client
        .import_with(AbsentSteps::Delete, rest)
        .await
        .accepted();
    not_restored(&client, b).await;
    assert_eq!(deleted_ids(&client, &guide.guid).await, [&**a]);

    // Not while its task is deleted.
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    not_restored(&client, a).await;
    client
        .restored(&guide.guid, deleted.previous_revision)
        .await;
    assert_eq!(deleted_ids(&client, &guide.guid).await, [&**a]);
    // A revision brings it back, too.
    client.restored(&guide.guid, 1).await;
    assert_eq!(client.deleted_steps(&guide.guid).await, []);
    not_restored(&client, a).await;
    client.delete_step(a).await.accepted();
    client.kept_revision(&guide.guid).await;
    client.purge(&guide.guid).await.accepted();
    not_restored(&client, a).await;
}

#[apply(on_both_databases)]
async fn a_large_step_comes_back(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let step = information_step(&guide, "Large").with_body("ä".repeat(1_500_000));
    let step = client.given_step(step).await;
    client.delete_step(&step.guid).await.accepted();
    assert_eq!(deleted_ids(&client, &guide.guid).await, [&*step.guid]);
    assert_eq!(
        content(&restored(&client, &step.guid).await.0),
        content(&step)
    );
}

#[derive(Clone, Debug)]
enum Act {
    Create(Index),
    Translate(Index, bool),
    Delete(Index),
    Restore(Index),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => any::<Index>().prop_map(Act::Create),
        2 => any::<(Index, bool)>().prop_map(|(step, locked)| Act::Translate(step, locked)),
        4 => any::<Index>().prop_map(Act::Delete),
        4 => any::<Index>().prop_map(Act::Restore),
    ]
}

/// The order and content of a task's steps and its deleted steps, against a model.
#[apply(property_on_both_databases)]
#[cases(10, vec(act(), 1..60))]
async fn steps_are_those_of_a_model(client: Client, acts: Vec<Act>) {
    let guide = client.given_task(task("Guide")).await;
    let mut order: Vec<String> = Vec::new();
    // The latest deletion first, each with the step before it.
    let mut deleted: Vec<(Step, Option<String>)> = Vec::new();
    for (number, act) in acts.into_iter().enumerate() {
        match act {
            Act::Create(after) if order.is_empty() => {
                let _ = after;
                let step = client.given_step(information_step(&guide, "Step")).await;
                order.push(step.guid);
            }
            Act::Create(after) => {
                let at = after.index(order.len());
                let new = information_step(&guide, "Step");
                let created = client.create_step_after(new, &order[at]).await.accepted();
                order.insert(at + 1, created.step.expect("the step").guid);
            }
            Act::Translate(step, locked) if !order.is_empty() => {
                let title = format!("Schritt {number}");
                let translation = step_translation(&title).with_lock(locked);
                let step = step_of(&order[step.index(order.len())]).translated("de", translation);
                client.updated_step(step, &["translations"]).await;
            }
            Act::Delete(step) if !order.is_empty() => {
                let at = step.index(order.len());
                let previous = at.checked_sub(1).map(|at| order[at].clone());
                let step = client.get_step(&order.remove(at)).await.accepted();
                client.delete_step(&step.guid).await.accepted();
                deleted.insert(0, (step, previous));
            }
            Act::Restore(step) if !deleted.is_empty() => {
                let (step, previous) = deleted.remove(step.index(deleted.len()));
                let found = previous
                    .as_ref()
                    .and_then(|previous| order.iter().position(|it| it == previous));
                let (at, expected) = match (&previous, found) {
                    (_, Some(at)) => (at + 1, Placement::AfterPrevstep),
                    (None, None) if !order.is_empty() => (0, Placement::First),
                    (_, None) => (order.len(), Placement::AppendedPrevstepUnknown),
                };
                let (back, placement) = restored(&client, &step.guid).await;
                assert_eq!((content(&back), placement), (content(&step), expected));
                order.insert(at, step.guid);
            }
            Act::Translate(..) | Act::Delete(_) | Act::Restore(_) => {}
        }
    }
    assert_eq!(client.step_order(&guide.guid).await, order);
    let request = ListDeletedStepsRequest::default()
        .with(|it| it.task = guide.guid.clone())
        .with(|it| it.page_size = 2);
    let listed = client.list(request).await;
    let listed = listed.into_iter().map(|it| {
        let previous = Some(it.previous_step).filter(|step| !step.is_empty());
        (it.step.expect("the step"), previous)
    });
    assert_eq!(listed.collect::<Vec<_>>(), deleted);
}
