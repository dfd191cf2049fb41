//! What an import says that it did, and the guide that a dry run shows.

use crate::{
    kit::server::{Settings, TestServer},
    prelude::*,
};

fn dry(request: &ImportTaskRequest) -> ImportTaskRequest {
    request
        .clone()
        .with(|it| it.validate_only = true)
        .with(|it| it.request_id = String::new())
}

fn request(document: TaskDocument) -> ImportTaskRequest {
    import_of(document).with(|it| it.set_absent_steps(AbsentSteps::Delete))
}

/// Two levels of managed tasks and a subtask step of each.
fn sample() -> TaskDocument {
    let inner = answer_with("x", "Inner", document("", document_steps(&["deep"])));
    let middle = vec![observation_asking(linked_question(vec![inner]))];
    let question = linked_question(vec![
        answer_with("a", "A", document("", middle)),
        answer_with("b", "B", document("", document_steps(&["b"]))),
    ]);
    let steps = vec![
        observation_asking(question),
        document_step(StepType::End, "end"),
    ];
    document("Guide", steps)
}

fn value(guide: &mut TaskDocument, index: usize) -> &mut FeedbackValue {
    &mut guide.steps[0].feedback_config[0].values[index]
}

#[apply(on_both_databases)]
async fn the_outcome_says_what_became_of_the_guide(client: Client) {
    let mut sent = sample();
    for outcome in [
        ImportOutcome::Created,
        ImportOutcome::Unchanged,
        ImportOutcome::Updated,
    ] {
        if outcome == ImportOutcome::Updated {
            sent.steps.swap(0, 3);
        }
        let request = request(sent);
        let shown = client.call(dry(&request)).await.accepted();
        assert_eq!(shown.outcome(), outcome);
        let done = client.call(request).await.accepted();
        assert_eq!((done.outcome(), &done.document), (outcome, &None));
        if outcome == ImportOutcome::Unchanged {
            assert_eq!(shown.guide_etag, done.guide_etag);
        }
        let guid = done.task.unwrap().guid;
        let exported = client.call(ExportTaskRequest { guid }).await;
        let exported = exported.accepted();
        assert_eq!(exported.guide_etag, done.guide_etag);
        sent = exported.document.unwrap();
    }
}

/// Asserts that a dry run returns the guide that is exported after the import.
async fn assert_shown(client: &Client, request: ImportTaskRequest) -> TaskDocument {
    let before = client.tasks_with_steps().await;
    let shown = client.call(dry(&request)).await.accepted();
    assert_eq!(client.tasks_with_steps().await, before);
    let shown = shown.document.expect("the guide");
    let done = client.call(request).await.accepted();
    let exported = client.exported(&done.task.unwrap().guid).await;
    assert_eq!(canonical(shown), canonical(exported.clone()));
    exported
}

#[apply(on_both_databases)]
async fn a_dry_run_shows_new_names_in_steps_that_are_not_listed(client: Client) {
    let made = client.imported(sample()).await;
    let mut guide = client.exported(&made.guid).await;
    let managed = value(&mut guide, 1).link.clone();
    let managed = client.get_task(&managed).await.accepted();
    client.given_step(subtask(&managed, &made)).await;
    let mut sent = client.exported(&made.guid).await;
    sent.task.as_mut().unwrap().name = "Renamed".to_owned();
    value(&mut sent, 1).task_json = None;
    let mut after = assert_shown(&client, request(sent)).await;
    let inner = value(&mut after, 1).task_json.take().unwrap();
    assert_eq!(inner.steps[1].title, "Renamed");
}

fn with_bodies(steps: usize, bytes: usize) -> TaskDocument {
    let step = document_step(StepType::Information, "a").with_body("x".repeat(bytes));
    document("Guide", vec![step; steps])
}

#[apply(on_both_databases)]
async fn a_dry_run_of_a_large_guide_shows_it(client: Client) {
    let request = request(with_bodies(5, 1_000_000));
    let exported = assert_shown(&client, request).await;
    assert_eq!(exported.steps.len(), 5);
}

/// The largest message that is stored here, in bytes.
const LIMIT: usize = 64 * 1024;

#[apply(on_both_databases)]
async fn a_dry_run_of_a_guide_too_large_to_export_is_refused(url: String) {
    let settings = Settings::new(&url).set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT);
    let server = TestServer::start(settings).await;
    let client = server.client();
    // Each message is small enough, and the guide is not.
    let bodies = || with_bodies(2, LIMIT / 3);
    let guide = client.imported(bodies()).await.guid;
    let request = request(document_of(&guide, bodies().steps))
        .with(|it| it.set_absent_steps(AbsentSteps::Keep));
    let failure = client.call(dry(&request)).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    // The import itself returns no guide.
    client.call(request).await.accepted();
    let failure = client.export(&guide).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
}
