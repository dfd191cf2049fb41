//! Imports that are repeated, made at once, or fail midway.

use crate::prelude::*;

/// A guide with a linked question.
fn sample() -> TaskDocument {
    let inner = document("A", document_steps(&["inner"]));
    let question = linked_question(vec![answer_with("a", "A", inner)]);
    document(
        "Guide",
        vec![
            observation_asking(question),
            document_step(StepType::End, "end"),
        ],
    )
}

fn request(document: TaskDocument) -> ImportTaskRequest {
    import_of(document).with(|it| it.request_id = unknown_guid())
}

/// Sends a request eight times at once; the one answer.
async fn import_eight_times(client: &Client, request: &ImportTaskRequest) -> ImportTaskResponse {
    let responses = at_once(client, 8, |client, _| {
        let request = request.clone();
        async move { client.call(request).await.accepted() }
    });
    let mut responses = responses.await;
    assert!(responses.iter().all(|response| *response == responses[0]));
    responses.remove(0)
}

#[apply(on_both_databases)]
async fn imports_at_the_same_time_with_one_request_id_make_one_task(client: Client) {
    let request = request(sample());
    import_eight_times(&client, &request).await;
    assert_eq!(client.all_tasks().await.len(), 2);
}

#[apply(on_both_databases)]
async fn imports_at_the_same_time_with_one_request_id_and_an_etag_are_one(client: Client) {
    let steps = ["a"; 200].map(|title| document_step(StepType::Information, title));
    let first = client.import(document("Guide", steps.to_vec())).await;
    let mut guide_etag = first.accepted().guide_etag;
    let task = client.all_tasks().await.remove(0);
    for number in 0..4 {
        let renamed = document_with(
            task_of(&task.guid).named(format!("Guide {number}")),
            task.steps.iter().map(|guid| step_of(guid)).collect(),
        );
        let request = request(renamed).with(|it| it.guide_etag = guide_etag);
        guide_etag = import_eight_times(&client, &request).await.guide_etag;
    }
}

#[apply(on_both_databases)]
async fn imports_of_one_task_at_the_same_time_all_count(client: Client) {
    let made = client.given_guide(Vec::new()).await;
    let imports = at_once(&client, 16, |client, number| {
        let steps = document_steps(&[&format!("step {number}")]);
        let sent = document_of(&made.guid, steps);
        async move { client.import_with(AbsentSteps::Keep, sent).await.accepted() }
    });
    imports.await;
    let mut titles = client.step_titles(&made.guid).await;
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), 16);
}
