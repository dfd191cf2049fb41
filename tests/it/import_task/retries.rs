//! Imports that are repeated, made at once, or fail midway.

use crate::kit::prelude::*;

on_both_databases![
    imports_at_the_same_time_with_one_request_id_make_one_task,
    imports_at_the_same_time_with_one_request_id_and_an_etag_are_one,
    a_failed_import_leaves_nothing,
    imports_of_one_task_at_the_same_time_all_count,
];

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
    ImportTaskRequest {
        document: Some(document),
        request_id: unknown_guid(),
        ..ImportTaskRequest::default()
    }
}

async fn imports_at_the_same_time_with_one_request_id_make_one_task(client: Client) {
    let request = request(sample());
    let calls = (0..8).map(|_| {
        let (client, request) = (client.over_new_connection(), request.clone());
        tokio::spawn(async move { client.send_import(request).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut responses = Vec::new();
    for call in calls {
        responses.push(call.await.unwrap().accepted());
    }
    assert!(responses.iter().all(|response| *response == responses[0]));
    assert_eq!(client.all_tasks().await.len(), 2);
}

async fn imports_at_the_same_time_with_one_request_id_and_an_etag_are_one(client: Client) {
    let steps = ["a"; 200].map(|title| document_step(StepType::Information, title));
    let first = client.import(document("Guide", steps.to_vec())).await;
    let mut guide_etag = first.accepted().guide_etag;
    let task = client.all_tasks().await.remove(0);
    for number in 0..4 {
        let renamed = TaskDocument {
            task: Some(task_of(&task.guid).named(format!("Guide {number}"))),
            steps: task.steps.iter().map(|guid| step_of(guid)).collect(),
        };
        let request = ImportTaskRequest {
            guide_etag,
            ..request(renamed)
        };
        let calls = (0..8).map(|_| {
            let (client, request) = (client.over_new_connection(), request.clone());
            tokio::spawn(async move { client.send_import(request).await })
        });
        let mut responses = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            responses.push(call.await.unwrap().accepted());
        }
        assert!(responses.iter().all(|response| *response == responses[0]));
        guide_etag = responses.remove(0).guide_etag;
    }
}

async fn a_failed_import_leaves_nothing(client: Client) {
    let made = client.imported(sample()).await;
    let before = client.tasks_with_steps().await;
    let absent = task("Absent").with_guid(unknown_guid());
    let mut sent = client.exported(&made.guid).await;
    sent.task.as_mut().unwrap().name = "Renamed".to_owned();
    sent.steps.push(linked_observation(&[("x", "X")]));
    sent.steps.push(subtask(&Task::default(), &absent));
    client
        .import(sent)
        .await
        .refused()
        .is_task_not_found(&absent.guid);
    assert_eq!(client.tasks_with_steps().await, before);
}

async fn imports_of_one_task_at_the_same_time_all_count(client: Client) {
    let made = client.imported(document("Guide", Vec::new())).await;
    let calls = (0..16).map(|n| {
        let (client, guid) = (client.over_new_connection(), made.guid.clone());
        tokio::spawn(async move {
            let steps = document_steps(&[&format!("step {n}")]);
            let sent = document_of(&guid, steps);
            client.import_with(AbsentSteps::Keep, sent).await
        })
    });
    let calls: Vec<_> = calls.collect();
    for call in calls {
        call.await.unwrap().accepted();
    }
    let mut titles = client.step_titles(&made.guid).await;
    titles.sort_unstable();
    titles.dedup();
    assert_eq!(titles.len(), 16);
}
