//! Steps of a task that its new document does not list.

use crate::kit::prelude::*;

async fn guide(client: &Client) -> Task {
    let steps = document_steps(&["a", "b", "c", "d"]);
    client.given_guide(steps).await
}

/// A document that lists two of the steps, the last one first.
fn two_of(task: &Task) -> TaskDocument {
    let steps = vec![
        step_of(&task.steps[3]),
        document_step(StepType::Information, "new"),
        step_of(&task.steps[1]),
    ];
    document_of(&task.guid, steps)
}

#[apply(on_both_databases)]
async fn by_default_absent_steps_are_named_and_nothing_changes(client: Client) {
    let made = guide(&client).await;
    let before = client.tasks_with_steps().await;
    let failure = client.import(two_of(&made)).await.refused();
    failure.is_precondition("ABSENT_STEPS");
    let expected = [
        ("ABSENT_STEPS", made.steps[0].as_str()),
        ("ABSENT_STEPS", made.steps[2].as_str()),
    ];
    assert_eq!(failure.preconditions(), expected);
    assert!(failure.metadata().is_empty(), "{failure:?}");
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn twenty_absent_steps_are_named(client: Client) {
    let made = client.given_guide(document_steps(&["a"; 21])).await;
    let failure = client.import(document_of(&made.guid, Vec::new())).await;
    let failure = failure.refused();
    failure.is_precondition("ABSENT_STEPS");
    let named: Vec<&str> = failure
        .preconditions()
        .iter()
        .map(|named| named.1)
        .collect();
    assert_eq!(named, made.steps[..20]);
    assert!(failure.message.contains("21"), "{failure:?}");
    // What to do is said once, not with each step.
    for violation in failure.of_preconditions() {
        assert_eq!(violation.description, "the document does not list the step");
    }
    let metadata = failure.metadata();
    assert_eq!(metadata["violations_shown"], "20", "{failure:?}");
    assert_eq!(metadata["violations_total"], "21", "{failure:?}");
}

#[apply(on_both_databases)]
async fn kept_steps_follow_the_listed_ones_in_their_former_order(client: Client) {
    let made = guide(&client).await;
    let response = client.import_with(AbsentSteps::Keep, two_of(&made)).await;
    let after = response.accepted().task.unwrap();
    assert_eq!(
        client.step_titles(&made.guid).await,
        ["d", "new", "b", "a", "c"]
    );
    assert_eq!(client.get_task(&made.guid).await.accepted(), after);
    // Their former order is not that in which they were made.
    let sent = document_of(&made.guid, vec![step_of(&made.steps[2])]);
    client.import_with(AbsentSteps::Keep, sent).await.accepted();
    let titles = client.step_titles(&made.guid).await;
    assert_eq!(titles, ["c", "d", "new", "b", "a"]);
}

#[apply(on_both_databases)]
async fn absent_steps_are_deleted(client: Client) {
    let made = guide(&client).await;
    let response = client.import_with(AbsentSteps::Delete, two_of(&made)).await;
    let after = response.accepted().task.unwrap();
    assert_eq!(after.steps.len(), 3);
    assert_eq!(client.step_titles(&made.guid).await, ["d", "new", "b"]);
    for gone in [&made.steps[0], &made.steps[2]] {
        client
            .get_step(gone)
            .await
            .refused()
            .is_step_not_found(gone);
    }
    assert_ne!(after.etag, made.etag);
}

#[apply(on_both_databases)]
async fn tasks_that_absent_steps_refer_to_are_kept(client: Client) {
    let outside = client.given_task(task("Outside")).await;
    let steps = vec![subtask(&Task::default(), &outside)];
    let made = client.given_guide(steps).await;
    let sent = document_of(&made.guid, Vec::new());
    client
        .import_with(AbsentSteps::Delete, sent)
        .await
        .accepted();
    assert_eq!(client.get_task(&outside.guid).await.accepted(), outside);
    client.delete_task(&outside.guid).await.accepted();
}

/// An exported guide whose managed task has two steps, and the managed task.
async fn nested(client: &Client) -> (TaskDocument, Task) {
    let inner = document("", document_steps(&["a", "b"]));
    let question = linked_question(vec![answer_with("a", "A", inner)]);
    let made = client.given_guide(vec![observation_asking(question)]).await;
    let sent = client.exported(&made.guid).await;
    let link = answers_of(&sent.steps[0])[0].link.clone();
    (sent, client.get_task(&link).await.accepted())
}

fn inner(document: &mut TaskDocument) -> &mut TaskDocument {
    let values = &mut document.steps[0].feedback_config[0].values;
    values[0].task_json.as_mut().unwrap()
}

#[apply(on_both_databases)]
async fn absent_steps_of_managed_tasks_are_treated_alike(client: Client) {
    let (mut sent, managed) = nested(&client).await;
    let gone = inner(&mut sent).steps.remove(0).guid;
    let failure = client.import(sent.clone()).await.refused();
    failure.is_precondition("ABSENT_STEPS");
    assert_eq!(failure.preconditions(), [("ABSENT_STEPS", gone.as_str())]);

    let kept = client.import_with(AbsentSteps::Keep, sent.clone()).await;
    kept.accepted();
    let [a, b] = [managed.steps[0].clone(), managed.steps[1].clone()];
    assert_eq!(client.step_order(&managed.guid).await, [b.clone(), a]);

    let deleted = client.import_with(AbsentSteps::Delete, sent).await;
    deleted.accepted();
    assert_eq!(client.step_order(&managed.guid).await, [b]);
}

#[apply(on_both_databases)]
async fn a_task_without_its_steps_in_the_document_keeps_them_if_asked(client: Client) {
    let (mut sent, managed) = nested(&client).await;
    inner(&mut sent).steps.clear();
    let before = client.tasks_with_steps().await;
    client.import_with(AbsentSteps::Keep, sent).await.accepted();
    assert_eq!(client.step_order(&managed.guid).await, managed.steps);
    assert_eq!(client.tasks_with_steps().await, before);
}

#[apply(on_both_databases)]
async fn kept_steps_of_all_sizes_keep_their_order(client: Client) {
    let guide = client.given_task(task("Guide")).await;
    for bytes in [10, 5_000, 10, 2_000_000, 10] {
        let body = Some("x".repeat(bytes));
        let information = step(&guide, StepType::Information, "Step");
        client
            .given_step(information.with(|it| it.body = body))
            .await;
    }
    let before = client.exported(&guide.guid).await;
    let sent = document_of(&guide.guid, Vec::new());
    let response = client.import_with(AbsentSteps::Keep, sent).await.accepted();
    assert_eq!(response.outcome(), ImportOutcome::Unchanged);
    assert_eq!(client.exported(&guide.guid).await, before);
}
