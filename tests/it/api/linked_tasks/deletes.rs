//! Deletion of managed tasks, their observations and wiring steps.

use super::{guide, managed_by, unlinked};
use crate::kit::prelude::*;

#[apply(on_both_databases)]
async fn the_observation_that_manages_a_task_is_named(client: Client) {
    let first = linked_observation(&[("a", "A")]);
    let second = linked_observation(&[("b", "B")]);
    let made = client.given_guide(vec![first, second]).await;
    let mut observations = client.steps_with_bodies(&made.guid).await;
    observations.retain(|step| step.r#type() == StepType::Observation);
    assert_eq!(observations.len(), 2);
    for observation in observations {
        let managed = managed_by(&client, &observation).await.remove(0);
        let failure = client.delete_task(&managed.guid).await.refused();
        let named = [("TASK_MANAGED", managed.guid.as_str())];
        assert_eq!(failure.preconditions(), named);
        assert_eq!(failure.metadata()["managed_by"], observation.guid);
        assert!(failure.message.contains(&observation.guid), "{failure:?}");
        let purge = deletion_of(&managed.guid)
            .with(|it| it.force = true)
            .with(|it| it.purge_history = true);
        let failure = client.call(purge).await.refused();
        assert_eq!(failure.preconditions(), named);
    }
}

#[apply(on_both_databases)]
async fn a_linked_observation_is_unlinked_before_it_is_deleted(client: Client) {
    let (made, question, wiring) = guide(&client, &[("a", "A"), ("b", "B")]).await;
    let managed = managed_by(&client, &question).await;
    client.delete_step(&question.guid).await.accepted();
    assert_eq!(client.step_order(&made.guid).await, made.steps[1..]);
    for (task, step) in managed.iter().zip(&wiring) {
        unlinked(&client, task, step).await;
        client.delete_step(&step.guid).await.accepted();
        client.delete_task(&task.guid).await.accepted();
    }
}

#[apply(on_both_databases)]
async fn a_wiring_step_is_not_deleted(client: Client) {
    let (made, _, wiring) = guide(&client, &[("a", "A")]).await;
    let before = client.tasks_with_steps().await;
    let failure = client.delete_step(&wiring[0].guid).await.refused();
    failure.is_precondition("STEP_MANAGED");
    let named = failure.preconditions();
    assert_eq!(named, [("STEP_MANAGED", made.steps[1].as_str())]);
    let after = "delete the step, then the task";
    for part in [wiring[0].link.as_str(), "`linked`", after] {
        assert!(failure.message.contains(part), "{part}: {failure:?}");
    }
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn a_task_that_manages_others_leaves_them_as_ordinary_tasks(client: Client) {
    let inner = document("A", document_steps(&["inner"]));
    let question = linked_question(vec![answer_with("a", "A", inner), answer("b", "B")]);
    let made = client.given_guide(vec![observation_asking(question)]).await;
    let question = client.get_step(&made.steps[0]).await.accepted();
    let managed = managed_by(&client, &question).await;
    client.force_delete_task(&made.guid).await.accepted();
    let survivors = client.all_tasks().await;
    assert_eq!(survivors.len(), 2);
    for (survivor, task) in survivors.iter().zip(&managed) {
        assert_eq!((&survivor.guid, &survivor.name), (&task.guid, &task.name));
        assert_eq!(survivor.r#type(), TaskType::Standard);
        assert_eq!((survivor.parent_guid.as_str(), survivor.idx), ("", 0));
        assert_eq!(survivor.steps, task.steps);
    }
    client.force_delete_task(&managed[0].guid).await.accepted();
    client.delete_task(&managed[1].guid).await.accepted();
}
