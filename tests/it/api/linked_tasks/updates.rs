//! Linked questions in UpdateStep.

use super::{guide, managed_by, now, unlinked};
use crate::kit::prelude::*;

/// The step after an update of its question, which must succeed.
async fn updated_question(
    client: &Client,
    step: &Step,
    change: impl FnOnce(&mut FeedbackConfig),
) -> Step {
    let update = update(step, change);
    client.updated_step(update, &["feedback_config"]).await
}

fn update(step: &Step, change: impl FnOnce(&mut FeedbackConfig)) -> Step {
    let mut config = step.feedback_config[0].clone();
    for value in &mut config.values {
        value.link.clear();
    }
    change(&mut config);
    step_of(&step.guid).with_question(config)
}

#[apply(on_both_databases)]
async fn switching_linked_off_unlinks_all_tasks(client: Client) {
    for linked in [Some(false), None] {
        let (_, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
        let before = managed_by(&client, &question).await;
        let after = updated_question(&client, &question, |config| config.linked = linked).await;
        assert!(answers_of(&after).iter().all(|value| value.link.is_empty()));
        for (task, step) in before.iter().zip(&wiring) {
            unlinked(&client, task, step).await;
            client.delete_step(&step.guid).await.accepted();
            client.delete_task(&task.guid).await.accepted();
        }
    }
}

#[apply(on_both_databases)]
async fn a_key_that_is_gone_unlinks_its_task_alone(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let before = managed_by(&client, &question).await;
    let after = updated_question(&client, &question, |config| {
        config.values.remove(0);
    })
    .await;
    unlinked(&client, &before[0], &wiring[0]).await;
    let managed = managed_by(&client, &after).await.remove(0);
    assert_eq!((&managed.guid, managed.idx), (&before[1].guid, 0));
    assert_eq!(now(&client, &wiring[1]).await, wiring[1]);
    assert_eq!(client.step_order(&made.guid).await, made.steps);
    // The task has a name of its own from now on.
    let renamed = task_of(&before[0].guid).named("Own");
    client.updated_task(renamed, &[]).await;
    assert_eq!(now(&client, &wiring[0]).await.title, "Own");
}

#[apply(on_both_databases)]
async fn other_fields_of_a_wiring_step_may_change(client: Client) {
    let (_, _, wiring) = guide(&client, &[("a", "A")]).await;
    let update = step_of(&wiring[0].guid)
        .with_body("<p>Go on.</p>")
        .with_subtask_id(wiring[0].subtask_id.clone());
    let after = client.updated_step(update, &[]).await;
    assert_eq!(
        (after.body(), &after.link),
        ("<p>Go on.</p>", &wiring[0].link)
    );
}

#[apply(on_both_databases)]
async fn a_wiring_step_cannot_refer_to_another_task(client: Client) {
    let (_, _, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let other = client.given_task(task("Another")).await;
    // The product is the stored one.
    for (mask, ignored) in [
        (&[][..], &["step.subtask_id"][..]),
        (&["subtask_id"], &["step.subtask_id"]),
        (
            &["subtask_id", "subtask_pid"],
            &["step.subtask_id", "step.subtask_pid"],
        ),
    ] {
        let sent = step_of(&wiring[0].guid)
            .with_subtask_id(other.guid.clone())
            .with(|it| it.subtask_pid = other.product_id);
        let updated = client.update_step(sent, mask).await.accepted();
        assert_eq!(updated.ignored_paths, ignored);
        assert_eq!(updated.step.as_ref(), Some(&wiring[0]));
    }
}
