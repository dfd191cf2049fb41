//! Many clients assign one external id concurrently. One task or step gets it.

use crate::prelude::*;
use tonic::Status;

const CLIENTS: usize = 16;
const TAKEN: &str = "EXTERNAL_ID_TAKEN";

/// Asserts that one of many calls at the same time gets an external id, and that the errors of the others
/// name the task or step that has it. Its id.
async fn one_gets_it<F>(client: &Client, field: &str, call: impl Fn(Client, usize) -> F) -> String
where
    F: Future<Output = Result<String, Status>> + Send + 'static,
{
    let (owner, refused) = the_one_accepted(at_once(client, CLIENTS, call).await);
    for failure in refused {
        failure.is(Code::AlreadyExists, TAKEN);
        assert_eq!(failure.violations(), [(field, TAKEN)], "{failure:?}");
        let resource = failure.details.resource_info().expect("a resource");
        assert_eq!(resource.resource_name, owner, "{failure:?}");
    }
    owner
}

#[apply(on_both_databases)]
async fn one_of_many_new_tasks_gets_an_id(client: Client) {
    let creations = one_gets_it(&client, "task.external_id", |client, number| async move {
        let new = task(&format!("Task {number}")).with_external_id("a");
        Ok(client.create_task(new).await?.task.unwrap().guid)
    });
    creations.await;
    assert_eq!(client.all_tasks().await.len(), 1);
}

#[apply(on_both_databases)]
async fn one_of_many_updated_tasks_gets_an_id(client: Client) {
    let tasks = at_once(&client, CLIENTS, |client, _| async move {
        client.given_task(task("Task")).await.guid
    });
    let tasks = tasks.await;
    let updates = one_gets_it(&client, "task.external_id", |client, number| {
        let update = task_of(&tasks[number]).with_external_id("a");
        async move {
            let updated = client.update_task(update, &["external_id"]).await?;
            Ok(updated.task.unwrap().guid)
        }
    });
    updates.await;
}

#[apply(on_both_databases)]
async fn one_of_many_new_steps_gets_an_id(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let creations = one_gets_it(&client, "step.external_id", |client, _| {
        let new = information_step(&guide, "Step").with_external_id("a");
        async move { Ok(client.create_step(new).await?.step.unwrap().guid) }
    });
    let owner = creations.await;
    assert_eq!(client.step_order(&guide.guid).await, [owner]);
}

#[apply(on_both_databases)]
async fn one_of_many_updated_steps_gets_an_id(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&guide, &["Step"; CLIENTS]).await;
    let updates = one_gets_it(&client, "step.external_id", |client, number| {
        let update = step_of(&steps[number]).with_external_id("a");
        async move {
            let updated = client.update_step(update, &["external_id"]).await?;
            Ok(updated.step.unwrap().guid)
        }
    });
    updates.await;
}

#[apply(on_both_databases)]
async fn concurrent_imports_of_one_external_id_make_one_task(client: Client) {
    let answers = at_once(&client, CLIENTS, |client, number| async move {
        let step = document_step(StepType::End, &format!("End {number}")).with_external_id("end");
        let guide = task(&format!("Guide {number}")).with_external_id("guide");
        let request =
            import_of(document_with(guide, vec![step])).with(|it| it.match_external_ids = true);
        client.call(request).await.accepted()
    });
    let answers = answers.await;
    let created = answers
        .iter()
        .filter(|answer| answer.outcome() == ImportOutcome::Created);
    assert_eq!(created.count(), 1);
    let tasks = client.tasks_with_steps().await;
    assert_eq!(tasks.len(), 1);
    let (guide, steps) = &tasks[0];
    assert_eq!(steps.len(), 1);
    // The last one has written both.
    assert_eq!(guide.name.replace("Guide", "End"), steps[0].title);
    for answer in answers {
        assert_eq!(answer.task.unwrap().guid, guide.guid);
    }
}

#[apply(on_both_databases)]
async fn imports_and_updates_leave_ids_unique(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let steps = client.given_steps(&guide, &["a", "b"]).await;
    let answers = at_once(&client, CLIENTS, |client, number| {
        let (guide, steps) = (guide.guid.clone(), steps.clone());
        async move {
            let id = format!("id {}", number % 3);
            let step = step_of(&steps[number % 2]).with_external_id(id);
            match number % 4 {
                0 | 1 => client.update_step(step, &["external_id"]).await.map(drop),
                2 => client
                    .import_with(AbsentSteps::Keep, document_of(&guide, vec![step]))
                    .await
                    .map(drop),
                _ => {
                    let new = document_step(StepType::End, "new");
                    let new = new.in_task(guide).with_external_id(step.external_id());
                    client.create_step(new).await.map(drop)
                }
            }
        }
    });
    for status in answers.await.into_iter().filter_map(Result::err) {
        Failure::from(status).is(Code::AlreadyExists, TAKEN);
    }
    let steps = client.steps_of(&guide.guid, 0).await;
    let mut ids: Vec<&str> = steps.iter().map(Step::external_id).collect();
    ids.retain(|id| !id.is_empty());
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}
