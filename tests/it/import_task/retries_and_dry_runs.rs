//! Imports with request ids, dry runs, and imports that fail midway.

use crate::kit::prelude::*;

on_both_databases![
    a_dry_import_shows_the_task_and_stores_nothing,
    a_dry_import_of_a_known_task_shows_it_and_stores_nothing,
    a_dry_import_checks_everything,
    a_dry_import_does_not_use_up_its_request_id,
    a_request_id_imports_once,
    a_request_id_imports_again_once,
    a_replay_undoes_nothing_done_since,
    a_request_id_with_another_document_is_refused,
    a_request_id_with_another_absent_steps_value_is_refused,
    a_refused_import_does_not_use_up_its_request_id,
    imports_at_the_same_time_with_one_request_id_make_one_task,
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

fn dry(document: TaskDocument) -> ImportTaskRequest {
    ImportTaskRequest {
        validate_only: true,
        ..request(document)
    }
}

async fn a_dry_import_shows_the_task_and_stores_nothing(client: Client) {
    let mut sent = sample();
    sent.steps[1].subtask_id = unknown_guid();
    let shown = client.send_import(dry(sent)).await.accepted();
    assert_eq!(shown.ignored_paths, ["document.steps.subtask_id"]);
    let shown = shown.task.unwrap();
    assert_eq!(shown.name, "Guide");
    assert_eq!(shown.steps.len(), 3);
    assert_eq!(client.all_tasks().await, []);
    let read = client.get_step(&shown.steps[0]).await;
    read.refused().is_step_not_found(&shown.steps[0]);
}

async fn a_dry_import_of_a_known_task_shows_it_and_stores_nothing(client: Client) {
    let made = client.imported(sample()).await;
    let before = client.tasks_with_steps().await;
    let mut sent = client.exported(&made.guid).await;
    sent.task.as_mut().unwrap().name = "Renamed".to_owned();
    sent.steps.truncate(1);
    sent.steps[0].feedback_config[0].values[0].value = "B".to_owned();
    sent.steps.push(document_step(StepType::End, "other end"));
    let request = ImportTaskRequest {
        absent_steps: AbsentSteps::Delete.into(),
        ..dry(sent)
    };
    let shown = client.send_import(request).await.accepted().task.unwrap();
    assert_eq!(shown.name, "Renamed");
    assert_eq!(shown.steps.len(), 3);
    assert_ne!(shown.etag, made.etag);
    assert_eq!(client.tasks_with_steps().await, before);
}

async fn a_dry_import_checks_everything(client: Client) {
    let made = client.imported(sample()).await;
    let wrong = document("", Vec::new());
    let failure = client.send_import(dry(wrong)).await.refused();
    failure.violates(&[("document.task.name", "FIELD_REQUIRED")]);

    let absent = task("Absent").with_guid(unknown_guid());
    let lost = document("Guide", vec![subtask(&Task::default(), &absent)]);
    let failure = client.send_import(dry(lost)).await.refused();
    failure.is_task_not_found(&absent.guid);

    let short = document_of(&made.guid, Vec::new());
    let failure = client.send_import(dry(short.clone())).await.refused();
    failure.is_precondition("ABSENT_STEPS");

    let late = ImportTaskRequest {
        etag: "old".to_owned(),
        ..dry(short)
    };
    let failure = client.send_import(late).await.refused();
    failure.is(Code::Aborted, "ETAG_MISMATCH");
}

async fn a_dry_import_does_not_use_up_its_request_id(client: Client) {
    let mut request = dry(sample());
    let shown = client.send_import(request.clone()).await.accepted();
    request.validate_only = false;
    let made = client.send_import(request).await.accepted().task.unwrap();
    assert_ne!(made.guid, shown.task.unwrap().guid);
    assert_eq!(client.get_task(&made.guid).await.accepted(), made);
}

async fn a_request_id_imports_once(client: Client) {
    let mut sent = sample();
    sent.steps[1].subtask_id = unknown_guid();
    let request = request(sent);
    let first = client.send_import(request.clone()).await.accepted();
    assert_ne!(first.ignored_paths, [""; 0]);
    let second = client.send_import(request).await.accepted();
    assert_eq!(second, first);
    assert_eq!(client.all_tasks().await.len(), 2);
}

async fn a_request_id_imports_again_once(client: Client) {
    let made = client.imported(sample()).await;
    let steps = made.steps.iter().map(|guid| step_of(guid));
    let steps = steps.chain(document_steps(&["added"])).collect();
    let request = request(document_of(&made.guid, steps));
    let first = client.send_import(request.clone()).await.accepted();
    let second = client.send_import(request).await.accepted();
    assert_eq!(second, first);
    assert_eq!(client.step_order(&made.guid).await.len(), 4);
}

async fn a_replay_undoes_nothing_done_since(client: Client) {
    let made = client.imported(sample()).await;
    let named = |name: &str| TaskDocument {
        task: Some(task_of(&made.guid).named(name)),
        steps: made.steps.iter().map(|guid| step_of(guid)).collect(),
    };
    let request = request(named("Before"));
    let first = client.send_import(request.clone()).await.accepted();
    client.imported(named("After")).await;
    assert_eq!(client.send_import(request).await.accepted(), first);
    assert_eq!(client.get_task(&made.guid).await.accepted().name, "After");
}

async fn a_request_id_with_another_document_is_refused(client: Client) {
    let mut request = request(sample());
    client.send_import(request.clone()).await.accepted();
    request.document = Some(document("Other", Vec::new()));
    let failure = client.send_import(request.clone()).await.refused();
    failure.is_precondition("REQUEST_ID_REUSED");
    let create = CreateTaskRequest {
        task: Some(task("Other")),
        request_id: request.request_id,
        validate_only: false,
    };
    let failure = client.tasks().create_task(create).await.refused();
    failure.is_precondition("REQUEST_ID_REUSED");
}

async fn a_request_id_with_another_absent_steps_value_is_refused(client: Client) {
    let made = client.imported(sample()).await;
    let steps = made.steps.iter().map(|guid| step_of(guid)).collect();
    let mut request = request(document_of(&made.guid, steps));
    client.send_import(request.clone()).await.accepted();
    request.set_absent_steps(AbsentSteps::Delete);
    let failure = client.send_import(request).await.refused();
    failure.is_precondition("REQUEST_ID_REUSED");
}

async fn a_refused_import_does_not_use_up_its_request_id(client: Client) {
    let absent = task("Absent").with_guid(unknown_guid());
    let lost = document("Guide", vec![subtask(&Task::default(), &absent)]);
    let mut request = request(lost);
    client.send_import(request.clone()).await.refused();
    request.document = Some(sample());
    client.send_import(request).await.accepted();
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
