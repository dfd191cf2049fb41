//! Safe repetition of calls: request ids, etags and dry runs.

use crate::prelude::*;

mod every_call;
mod expiry;

fn create(name: &str, request_id: &str) -> CreateTaskRequest {
    CreateTaskRequest {
        task: Some(task(name)),
        request_id: request_id.to_owned(),
        validate_only: false,
    }
}

async fn count(client: &Client) -> usize {
    let listed = client.call(ListTasksRequest::default()).await;
    listed.accepted().tasks.len()
}

/// Both requests have the same bytes: a task and the text `1` in the second field.
#[apply(on_both_databases)]
async fn a_request_id_belongs_to_one_rpc(client: Client) {
    let (id, guide) = (unknown_guid(), client.given_task(task("Guide")).await.guid);
    let create = revision_of(&guide)
        .with(|it| it.note = "1".to_owned())
        .with(|it| it.request_id = id.clone());
    client.call(create).await.accepted();
    let restore = restore_of(&guide, "1").with(|it| it.request_id = id);
    let reused = client.call(restore).await.refused();
    reused.is_precondition("REQUEST_ID_REUSED");
}

#[apply(on_both_databases)]
async fn a_retry_answers_although_the_task_is_gone(client: Client) {
    let request = create("Gone", &unknown_guid());
    let first = client.call(request.clone()).await.accepted();
    let guid = &first.task.as_ref().unwrap().guid;
    client.delete_task(guid).await.accepted();
    assert_eq!(client.call(request).await.accepted(), first);
    assert_eq!(count(&client).await, 0);

    let guide = client.given_task(task("Guide")).await;
    let create = CreateStepRequest {
        prevstep: client.given_step(information_step(&guide, "a")).await.guid,
        request_id: unknown_guid(),
        ..create_step_request(information_step(&guide, "b").with_body("text"))
    };
    let import = import_of(document_of(&guide.guid, document_steps(&["c"])))
        .with(|it| it.set_absent_steps(AbsentSteps::Keep))
        .with(|it| it.request_id = unknown_guid());
    let step = client.call(create.clone()).await.accepted();
    let imported = client.call(import.clone()).await.accepted();
    client.force_delete_task(&guide.guid).await.accepted();
    assert_eq!(client.call(create).await.accepted(), step);
    assert_eq!(client.call(import).await.accepted(), imported);
    assert_eq!(count(&client).await, 0);
}

#[apply(on_both_databases)]
async fn calls_at_the_same_time_with_one_request_id_create_one_task(client: Client) {
    let request = create("Once", &unknown_guid());
    let responses = at_once(&client, 16, |client, _| {
        let request = request.clone();
        async move { client.call(request).await.accepted() }
    });
    let responses = responses.await;
    assert!(responses.iter().all(|response| *response == responses[0]));
    assert_eq!(count(&client).await, 1);
}

/// An update that would change nothing, too.
#[apply(on_both_databases)]
async fn an_old_etag_and_any_other_text_abort_an_update(client: Client) {
    let before = client.given_task(task("Before")).await;
    let after = client.rename(&before.guid, "After").await;
    for name in ["After", "Later"] {
        for etag in [before.etag.as_str(), "x", " ", "W/\"1\"", "*"] {
            let update = task_of(&before.guid).named(name).with_etag(etag);
            let failure = client.update_task(update, &[]).await.refused();
            failure.is(Code::Aborted, "ETAG_MISMATCH");
            assert_eq!(client.get_task(&before.guid).await.accepted(), after);
        }
    }
}

/// A guide with steps of each kind, one of which manages a task, and one refers to another.
async fn given_every_kind(client: &Client) -> Task {
    let other = client.given_task(task("Other")).await;
    let steps = vec![
        linked_observation(&[("a", "A")]),
        document_step(StepType::Observation, "observation"),
        document_step(StepType::Solution, "solution"),
        document_step(StepType::Information, "translated")
            .translated("de", step_translation("Titel")),
        document_step(StepType::End, "end"),
        document_step(StepType::Idp, "problem"),
        subtask(&Task::default(), &other),
    ];
    client.given_guide(steps).await
}

#[apply(on_both_databases)]
async fn an_old_etag_aborts_the_writes_of_every_kind_of_task_and_step(client: Client) {
    let guide = given_every_kind(&client).await;
    for before in client.all_tasks().await {
        let hidden = task_of(&before.guid).with_published(0);
        let after = client.updated_task(hidden, &["published"]).await;
        let late = task_of(&before.guid).with_etag(&before.etag);
        for (update, field) in [
            (late.clone().named("Late"), "name"),
            (late.clone().with_published(1), "published"),
            (late.with_roles(vec![1]), "roles"),
        ] {
            let failure = client.update_task(update, &[field]).await.refused();
            failure.is(Code::Aborted, "ETAG_MISMATCH");
        }
        let request = DeleteTaskRequest {
            guid: before.guid.clone(),
            etag: before.etag,
            force: true,
            purge_history: false,
        };
        let failure = client.call(request).await.refused();
        failure.is(Code::Aborted, "ETAG_MISMATCH");
        assert_eq!(client.get_task(&before.guid).await.accepted(), after);
    }
    // The wiring step comes before the observation, whose deletion makes it an ordinary one.
    let steps = client.steps_with_bodies(&guide.guid).await;
    assert_eq!(steps.len(), 8);
    for before in steps.into_iter().rev() {
        let kind = before.r#type();
        let changed = step_of(&before.guid).with_body("since");
        let after = client.updated_step(changed, &["body"]).await;
        let late = step_of(&before.guid).with_etag(&before.etag);
        let asked = late.clone().with_question(question("late", &["x"]));
        let french = late.clone().translated("fr", step_translation("Tard"));
        for (update, field) in [
            (late.clone().titled("Late"), "title"),
            (late.clone().with_body("late"), "body"),
            (asked, "feedback_config"),
            (
                late.with(|it| it.subtask_id = guide.guid.clone()),
                "subtask_id",
            ),
            (french, "translations.fr"),
        ] {
            let failure = client.update_step(update, &[field]).await.refused();
            assert_eq!(failure.reason(), "ETAG_MISMATCH", "{kind:?} {field}");
        }
        let mut request = DeleteStepRequest {
            guid: before.guid.clone(),
            etag: before.etag,
        };
        let failure = client.call(request.clone()).await.refused();
        assert_eq!(failure.reason(), "ETAG_MISMATCH", "{kind:?}");
        assert_eq!(client.get_step(&before.guid).await.accepted(), after);
        if after.link.is_empty() {
            request.etag = after.etag;
            client.call(request).await.accepted();
        }
    }
}

#[apply(on_both_databases)]
async fn the_etag_of_a_dry_run_matches_no_later_write(client: Client) {
    let created = client.given_task(task("Guide")).await;
    let renamed = |name: &str| task_of(&created.guid).named(name);
    let request = UpdateTaskRequest::default()
        .with(|it| it.task = Some(renamed("dry")))
        .with(|it| it.validate_only = true);
    let dry_run = client.call(request).await.accepted();
    let dry_run = dry_run.task.unwrap();
    client.updated_task(renamed("theirs"), &[]).await;
    let mine = renamed("mine").with_etag(dry_run.etag);
    let outcome = client.update_task(mine, &[]).await;
    outcome.refused().is(Code::Aborted, "ETAG_MISMATCH");
    let read = client.get_task(&created.guid).await.accepted();
    assert_eq!(read.name, "theirs");
}
