//! Subtask steps that name their tasks by external ids.

use crate::prelude::*;

/// A step that only names its task by an external id.
fn naming(id: &str) -> Step {
    document_step(StepType::Subtask, "").with(|it| it.subtask_external_id = Some(id.to_owned()))
}

#[track_caller]
fn refers_to(step: &Step, target: &Task) {
    let expected = (&*target.guid, target.product_id, target.external_id());
    let found = (
        &*step.subtask_id,
        step.subtask_pid,
        step.subtask_external_id(),
    );
    assert_eq!(found, expected, "{step:?}");
    assert_eq!(step.title, target.name);
}

#[apply(on_both_databases)]
async fn a_document_is_analyzed_with_the_tasks_that_it_names(client: Client) {
    let target = task("Target").with_external_id("target").with_published(0);
    let target = client.given_task(target).await;
    let own = task("Guide").with_external_id("guide");
    let document = document_with(own, vec![naming("target"), naming("guide")]);
    let validated = client
        .validated(validation_of_document(document.clone()))
        .await;
    let rules: Vec<&str> = validated.findings.iter().map(|it| &*it.rule).collect();
    assert!(rules.contains(&"subtask/unpublished"), "{rules:?}");
    assert!(rules.contains(&"subtask/cycle"), "{rules:?}");
    let preview = preview_of_document(document.clone())
        .with(|it| it.subtask_depth = 1)
        .with(|it| it.include_unpublished = true);
    let previewed = client.previewed(preview.clone()).await;
    let title = previewed.steps[0].title.as_ref().unwrap();
    assert_eq!(title.text, target.name);
    client.delete_task(&target.guid).await.accepted();
    let failure = client.call(preview).await.refused();
    failure.is_task_not_found("target");
    let field = "document.steps[0].subtask_external_id";
    assert_eq!(failure.metadata()["field"], field, "{failure:?}");
}

#[apply(on_both_databases)]
async fn a_document_may_lead_back_to_the_task_that_it_replaces(client: Client) {
    let guide = task("Guide").with_external_id("guide");
    let guide = client.imported(document_with(guide, vec![])).await;
    let other = task("Other").with_external_id("other");
    let other = document_with(other, vec![naming("guide")]);
    client.imported(other).await;
    let mut exported = client.exported(&guide.guid).await;
    exported.steps.push(naming("other"));
    let mut named = exported.clone();
    named.task.as_mut().unwrap().guid.clear();
    let mut another = exported.clone();
    another.task.as_mut().unwrap().external_id = None;
    let same = validation_of_document(another.clone()).with(|it| it.replaces_stored = true);
    let another = validation_of_document(another);
    for (request, cycles) in [(validation_of_document(named), 1), (same, 1), (another, 0)] {
        let found = client.validated(request).await.findings;
        let found: Vec<_> = found
            .iter()
            .filter(|it| it.rule == "subtask/cycle")
            .collect();
        assert_eq!(found.len(), cycles, "{found:?}");
    }
    client.imported(exported).await;
    let found = client.validated(validation_of(&guide.guid)).await.findings;
    assert!(
        found.iter().any(|it| it.rule == "subtask/cycle"),
        "{found:?}"
    );
}

/// Clients move an external id between tasks, while others refer to the task that has it.
#[apply(on_both_databases)]
async fn a_name_that_moves_names_one_task_at_a_time(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    let [a, b] = ["A", "B"].map(|name| client.given_task(task(name)));
    let (a, b) = (a.await, b.await);
    let answers = at_once(&client, 8, |client, number| {
        let (guide, tasks) = (guide.clone(), [a.guid.clone(), b.guid.clone()]);
        async move {
            for round in 0..8 {
                if number % 2 == 0 {
                    let id = ["moving", "resting"][(number / 2 + round) % 2];
                    let update = task_of(&tasks[round % 2]).with_external_id(id);
                    let moved = client.update_task(update, &["external_id"]).await;
                    assert!(
                        moved.is_ok()
                            || Failure::from(moved.unwrap_err()).reason() == "EXTERNAL_ID_TAKEN"
                    );
                } else {
                    let sent = naming("moving").in_task(&guide.guid);
                    if let Ok(made) = client.create_step(sent).await {
                        assert_eq!(made.step.unwrap().subtask_external_id(), "moving");
                    }
                }
            }
        }
    });
    answers.await;
    for step in client.steps_of(&guide.guid, 0).await {
        let target = client.get_task(&step.subtask_id).await.accepted();
        refers_to(&step, &target);
    }
}
