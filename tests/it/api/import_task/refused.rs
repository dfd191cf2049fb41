//! Documents that ImportTask refuses, of which nothing is stored.

use crate::kit::prelude::*;

async fn nothing_is_made(client: &Client, failure: Failure) -> Failure {
    assert_eq!(client.all_tasks().await, [], "{failure:?}");
    failure
}

async fn refused(client: &Client, document: TaskDocument) -> Failure {
    let failure = client.import(document).await.refused();
    nothing_is_made(client, failure).await
}

#[apply(on_one_database)]
async fn more_violations_than_fit_are_counted(client: Client) {
    let failure = refused(&client, document("Guide", document_steps(&[""; 60]))).await;
    failure.is(Code::InvalidArgument, "FIELD_REQUIRED");
    assert!(failure.violations().len() <= 50);
    let total = failure.metadata().remove("violations_total");
    assert_eq!(total.as_deref(), Some("60"));
}

#[apply(on_one_database)]
async fn a_document_in_a_value_that_is_not_linked_is_listed(client: Client) {
    // It is ignored, although it is invalid.
    let values = vec![answer_with("a", "A", document("", document_steps(&[""])))];
    let question = linked_question(values).with(|it| it.linked = None);
    for kind in [StepType::Observation, StepType::Information] {
        let step = document_step(kind, "a").with_question(question.clone());
        let response = client
            .import(document("Guide", vec![step]))
            .await
            .accepted();
        let listed = "document.steps.feedback_config.values.task_json";
        assert_eq!(response.ignored_paths, [listed]);
        assert_eq!(response.task.unwrap().steps.len(), 1);
    }
}
