//! RestoreRevision.

use super::given_guide;
use crate::prelude::*;

/// A guide that is deleted; the id of the task that it has managed, which is left, with a step; and
/// the revision that brings the guide back.
async fn given_deleted_guide(client: &Client) -> (Task, String, Step, i64) {
    let guide = given_guide(client).await;
    let managed = client.managed_by(&guide.steps[0], 0).await.guid;
    let task = client.get_task(&managed).await.accepted();
    let below = client.given_step(information_step(&task, "Below")).await;
    let deleted = client.force_delete_task(&guide.guid).await.accepted();
    (guide, managed, below, deleted.previous_revision)
}

#[apply(on_both_databases)]
async fn what_nests_too_deep_for_a_managed_task_is_named(client: Client) {
    let (guide, managed, below, revision) = given_deleted_guide(&client).await;
    // Nobody manages it, so its values may nest deeper.
    let with = |instructions| step_of(&below.guid).with_instructions(instructions);
    let deep = with(vec![objects_deep(1), objects_deep(32)]);
    client.updated_step(deep, &["instructions"]).await;
    let kept = client.kept_revision(&managed).await;
    client
        .updated_step(with(Vec::new()), &["instructions"])
        .await;
    let restored = client.restored(&guide.guid, revision).await;
    assert!(restored.replaced_ids.is_empty(), "{restored:?}");
    let restore = client.call(restore_of(&managed, kept.revision)).await;
    let failure = restore.refused();
    failure.violates(&[("revision", "NESTING_TOO_DEEP")]);
    let named = format!("step {}.instructions[1] nests too deep", below.guid);
    let description = failure.description_of("revision");
    assert!(description.starts_with(&named), "{description}");
    // What just fits is restored.
    let mut depths = (1..32).rev();
    let deepest = loop {
        let depth = depths.next().expect("a depth that fits");
        let deep = with(vec![objects_deep(depth)]);
        let updated = client.update_step(deep, &["instructions"]).await;
        if updated.is_ok() {
            break client.kept_revision(&managed).await.revision;
        }
    };
    client
        .updated_step(with(Vec::new()), &["instructions"])
        .await;
    client.restored(&managed, deepest).await;
}

#[apply(on_both_databases)]
async fn the_first_twenty_missing_subtasks_are_named(client: Client) {
    let other = client.given_task(task("Other")).await;
    let steps = vec![subtask(&Task::default(), &other); 21];
    let guide = client.given_guide(steps).await;
    client.force_delete_task(&guide.guid).await.accepted();
    client.delete_task(&other.guid).await.accepted();
    let failure = client.call(restore_of(&guide.guid, 1)).await.refused();
    let named: Vec<&str> = failure.preconditions().iter().map(|it| it.1).collect();
    assert_eq!(named, guide.steps[..20]);
    let metadata = failure.metadata();
    let counts = ["violations_shown", "violations_total"].map(|name| &*metadata[name]);
    assert_eq!(counts, ["20", "21"]);
}

#[apply(on_both_databases)]
async fn a_name_that_is_published_with_its_translation_does_not_outdate_it(client: Client) {
    let name = |name| task_translation(name).with_lock(false);
    let guide = task("Guide").with_published(0);
    let guide = client.given_task(guide.translated("de", name("Alt"))).await;
    let renamed = task_of(&guide.guid).named("Renamed").with_published(1);
    let renamed = renamed.translated("de", name("Neu"));
    let mask = ["name", "published", "translations"];
    client.updated_task(renamed, &mask).await;
    assert_eq!(client.translation_work(&["de"]).await, []);
    client.force_delete_task(&guide.guid).await.accepted();
    client.restored(&guide.guid, 1).await;
    assert_eq!(client.translation_work(&["de"]).await, []);
}
