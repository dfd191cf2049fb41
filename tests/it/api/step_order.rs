//! The place of a new step, and the order of a task's steps.

use crate::prelude::*;

async fn task_with_steps(client: &Client, titles: &[&str]) -> (Task, Vec<String>) {
    let task = client.given_task(task("Ordered")).await;
    let steps = client.given_steps(&task, titles).await;
    (task, steps)
}

/// Creates a step after `prevstep`; its id and its placement.
async fn create_after(client: &Client, new: Step, prevstep: &str) -> (String, Placement) {
    let created = client.create_step_after(new, prevstep).await.accepted();
    let placement = created.placement();
    (created.step.expect("the step").guid, placement)
}

/// A subtask step is created under locks, any other without.
#[apply(on_both_databases)]
async fn a_new_step_stands_after_its_prevstep_or_last(client: Client) {
    use Placement::{AfterPrevstep, Appended, AppendedPrevstepUnknown};
    let (other, others) = task_with_steps(&client, &["d"]).await;
    for kind in [StepType::Information, StepType::Subtask] {
        let (task, mut order) = task_with_steps(&client, &["a", "b", "c"]).await;
        let deleted = order.remove(1);
        client.delete_step(&deleted).await.accepted();
        let (first, last) = (order[0].clone(), order[1].clone());
        for (prevstep, placement, index) in [
            (&last, AfterPrevstep, 2),
            (&first, AfterPrevstep, 1),
            (&first.to_uppercase(), AfterPrevstep, 1),
            (&String::new(), Appended, 5),
            (&unknown_guid(), AppendedPrevstepUnknown, 6),
            (&others[0], AppendedPrevstepUnknown, 7),
            (&deleted, AppendedPrevstepUnknown, 8),
        ] {
            let new = match kind {
                StepType::Subtask => subtask(&task, &other),
                _ => information_step(&task, "new"),
            };
            let (new, found) = create_after(&client, new, prevstep).await;
            assert_eq!(found, placement, "{kind:?} {prevstep:?}");
            order.insert(index, new);
            let stored = client.step_order(&task.guid).await;
            assert_eq!(stored, order, "{kind:?} {prevstep:?}");
        }
    }
}

#[apply(on_both_databases)]
async fn an_appended_step_follows_every_place_ever_given_out(client: Client) {
    let task = client.given_task(task("Guide")).await;
    client.given_steps(&task, &["a", "b"]).await;
    let (full, last) = client.nearly_full(&task).await;
    let mut order = full.steps;
    let behind = order.iter().position(|step| *step == last).expect("it");
    for at in [order.len() - 1]
        .into_iter()
        .chain(std::iter::repeat_n(behind, INSERTS_UNTIL_RENUMBERED))
    {
        let made = client
            .create_step_after(information_step(&task, "between"), &order[at])
            .await;
        order.insert(at + 1, made.accepted().step.expect("a step").guid);
    }
    let appended = client.given_step(information_step(&task, "last")).await;
    order.push(appended.guid.clone());
    assert_eq!(client.step_order(&task.guid).await, order);
    // The next step is the last one, whether or not the deleted step's place is reused.
    client.delete_step(&appended.guid).await.accepted();
    order.pop();
    order.push(
        client
            .given_step(information_step(&task, "again"))
            .await
            .guid,
    );
    assert_eq!(client.step_order(&task.guid).await, order);
}

#[apply(on_both_databases)]
async fn an_appended_step_follows_the_last_step_of_an_import(client: Client) {
    let task = client.given_guide(document_steps(&["a", "b", "c"])).await;
    let first = client.given_step(information_step(&task, "d")).await;
    let mut exported = client.exported(&task.guid).await;
    exported.steps.reverse();
    exported.steps.extend(document_steps(&["e", "f"]));
    client.imported(exported).await;
    client.given_step(information_step(&task, "g")).await;
    assert_eq!(first.title, "d");
    let titles = client.step_titles(&task.guid).await;
    assert_eq!(titles, ["d", "c", "b", "a", "e", "f", "g"]);
}
