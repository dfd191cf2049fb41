//! What would not fit into the largest message is not stored, and not read to be returned.

use crate::{
    kit::server::{Settings, TestServer},
    prelude::*,
};

/// The largest message that is stored here, in bytes.
const LIMIT: usize = 64 * 1024;

/// A server with a small limit.
async fn serve(url: &str) -> TestServer {
    TestServer::start(Settings::new(url).set("EXPERTISE_MAX_MESSAGE_BYTES", LIMIT)).await
}

/// Conditions whose texts have so many bytes.
fn conditions_of(bytes: usize) -> DependencyGroup {
    let long = "x".repeat(1_000);
    all_of((0..bytes / 1_000).map(|_| when(&long, "=", "y")).collect())
}

#[apply(on_both_databases)]
async fn a_task_too_large_to_return_is_refused(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let too_large = || conditions_of(LIMIT - 5_000);
    let new = task("Large").with_dependencies(too_large());
    let failure = client.create_task(new).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(
        failure.message,
        "the task would be too large to return: its texts and elements take more than 65536 bytes"
    );
    assert_eq!(client.all_tasks().await, []);
    let small = client.given_task(task("Small")).await;
    let update = task_of(&small.guid).with_dependencies(too_large());
    let failure = client.update_task(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.get_task(&small.guid).await.accepted(), small);
}

#[apply(on_both_databases)]
async fn a_step_too_large_to_return_is_refused(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let task = client.given_task(task("Guide")).await;
    let half = "x".repeat(LIMIT / 2);
    let small = information_step(&task, "Half").with_body(&half);
    let small = client.given_step(small).await;
    let row = |body: &str| step_translation("Titel").with_body(body);
    let (large, step) = (half.repeat(2), information_step(&task, "Large"));
    for too_large in [
        step.clone().with_body(&large),
        step.clone().translated("de", row(&large)),
        step.clone().translated("de", row(&half)).with_body(&half),
        step.clone()
            .with_tags(vec!["x".repeat(1_000); LIMIT / 1_000]),
    ] {
        let update = too_large.clone().with_guid(&small.guid);
        for failure in [
            client.create_step(too_large).await.refused(),
            client.update_step(update, &[]).await.refused(),
        ] {
            failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
            assert_eq!(failure.metadata()["limit_bytes"], LIMIT.to_string());
        }
    }
    // With the body that it has.
    let update = step_of(&small.guid).translated("de", row(&half));
    let failure = client.update_step(update, &[]).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.steps_with_bodies(&task.guid).await, [small]);
}

/// This applies to a step that is created without locks and, as a subtask step, with locks.
#[apply(on_both_databases)]
async fn a_task_takes_no_more_steps_than_it_can_be_returned_with(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let full = task("Full").with_dependencies(conditions_of(LIMIT - 10_000));
    let task = client.given_task(full).await;
    let mut count = 0;
    let refused = loop {
        match client.create_step(information_step(&task, "Step")).await {
            Ok(_) => count += 1,
            Err(refused) => break Err::<(), _>(refused),
        }
        assert!(count < LIMIT / 38, "no step was refused");
    };
    let failure = refused.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    let refused = client.create_step(subtask(&task, &task)).await.refused();
    refused.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(client.step_order(&task.guid).await.len(), count);
}

#[apply(on_both_databases)]
async fn a_guide_too_large_to_export_can_be_read_step_by_step(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let task = client.given_task(task("Guide")).await;
    let body = "x".repeat(LIMIT / 4);
    for _ in 0..5 {
        let step = information_step(&task, "Step").with_body(&body);
        client.given_step(step).await;
    }
    let failure = client.export(&task.guid).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    for step in client.step_order(&task.guid).await {
        let step = client.get_step(&step).await.accepted();
        assert_eq!(step.body, Some(body.clone()));
    }
}

#[apply(on_both_databases)]
async fn a_guide_whose_texts_exceed_a_message_is_not_analyzed(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let task = client.given_task(task("Guide")).await;
    for _ in 0..3 {
        let step = information_step(&task, "Step").depending_on(conditions_of(30_000));
        client.given_step(step).await;
    }
    let failure = client.call(validation_of(&task.guid)).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    assert_eq!(
        failure.message,
        "the guide without its bodies is larger than 65536 bytes: split it into several guides, or \
         raise EXPERTISE_MAX_MESSAGE_BYTES of the server (EXPERTISE_MAX_INFLIGHT_BYTES must be \
         five times as large)"
    );
    let failure = client.export(&task.guid).await.refused();
    assert_eq!(
        failure.message,
        "the guide would be too large to return: its texts and elements take more than 65536 \
         bytes: list its steps page by page with ListSteps"
    );
}

/// One step may be far larger than the others, in whichever task of the guide it is.
#[apply(on_both_databases)]
async fn a_guide_with_one_large_step_is_analyzed_while_the_whole_fits(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let large = |task: &Task| information_step(task, "Large").depending_on(conditions_of(30_000));
    let inner = client.given_task(task("Inner")).await;
    client.given_step(large(&inner)).await;
    client.given_step(information_step(&inner, "Small")).await;
    let outer = client.given_task(task("Outer")).await;
    for _ in 0..3 {
        client.given_step(information_step(&outer, "Small")).await;
    }
    client.given_step(large(&outer)).await;
    for task in [&inner, &outer] {
        client.call(validation_of(&task.guid)).await.accepted();
    }
    let small = client.given_task(task("Small")).await;
    client.given_step(subtask(&small, &inner)).await;
    client.call(validation_of(&small.guid)).await.accepted();
    client.given_step(subtask(&outer, &inner)).await;
    let failure = client.call(validation_of(&outer.guid)).await.refused();
    failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
}

#[apply(on_both_databases)]
async fn a_list_of_findings_says_which_guides_are_too_large_and_goes_on(url: String) {
    let server = serve(&url).await;
    let client = server.client();
    let large = client.given_task(task("Large")).await;
    for _ in 0..3 {
        let step = information_step(&large, "Step").depending_on(conditions_of(30_000));
        client.given_step(step).await;
    }
    let small = client.given_task(task("Small")).await;
    let of_small = client.validated(validation_of(&small.guid)).await.findings;
    let first = client.call(ListFindingsRequest::default()).await.accepted();
    let [finding] = first.findings.as_slice() else {
        panic!("{first:#?}");
    };
    assert_eq!(finding.rule, "analysis/too-large");
    assert_eq!(finding.task, large.guid);
    assert_eq!(fact(finding, "limit"), Some(text("bytes")));
    let request = ListFindingsRequest::default().with(|it| it.page_token = first.next_page_token);
    let second = client.call(request).await.accepted();
    assert_eq!(
        (second.findings, second.next_page_token),
        (of_small, String::new())
    );
}

fn fact(finding: &Finding, name: &str) -> Option<prost_types::Value> {
    finding.facts.as_ref()?.fields.get(name).cloned()
}
