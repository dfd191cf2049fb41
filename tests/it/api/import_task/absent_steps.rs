//! Steps of a task that its new document does not list.

use crate::prelude::*;

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
