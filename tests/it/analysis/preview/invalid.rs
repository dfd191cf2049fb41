//! Requests that are refused. Those beyond a limit exceed it by one.

use super::observation;
use crate::kit::prelude::*;

async fn existing(client: &Client) -> PreviewTaskRequest {
    let steps = vec![observation("light", &["off", "on"])];
    preview_of(&client.imported(document("Lamp", steps)).await.guid)
}

#[apply(on_one_database)]
async fn an_answer_has_a_kind_and_is_finite(client: Client) {
    let request = existing(&client).await;
    for wrong in [number(f64::INFINITY), prost_types::Value { kind: None }] {
        let request = request.clone().answering("light", wrong);
        let failure = client.preview(request).await.refused();
        failure.violates(&[("answers[\"light\"]", "FIELD_INVALID")]);
    }
}

#[apply(on_one_database)]
async fn all_violations_are_found_at_once(client: Client) {
    let request = PreviewTaskRequest {
        level: Some(4),
        page_size: -1,
        page_token: "no token".to_owned(),
        ..preview_of("lamp").in_language("d").to_depth(9)
    };
    let failure = client.preview(request).await.refused();
    failure.violates(&[
        ("guid", "FIELD_INVALID"),
        ("level", "FIELD_INVALID"),
        ("language", "FIELD_INVALID"),
        ("subtask_depth", "FIELD_OUT_OF_RANGE"),
        ("page_size", "FIELD_OUT_OF_RANGE"),
        ("page_token", "PAGE_TOKEN_INVALID"),
    ]);
}

#[apply(on_one_database)]
async fn a_guide_of_too_many_steps_is_refused(client: Client) {
    let small = document("small", document_steps(&["a", "b", "c"]));
    let small = client.imported(small).await;
    // 2,500 entries of a task of three steps make 10,000 steps.
    let entries = |count| vec![subtask(&Task::default(), &small); count];
    let exact = client.imported(document("exact", entries(2_500))).await;
    client.previewed(preview_of(&exact.guid)).await;
    let over = client.imported(document("over", entries(2_501))).await;
    let failure = client.preview(preview_of(&over.guid)).await.refused();
    failure.violates(&[("guid", "TOO_MANY_ELEMENTS")]);
    let request = preview_of_document(document("over", entries(2_501)));
    let failure = client.preview(request).await.refused();
    failure.violates(&[("document", "TOO_MANY_ELEMENTS")]);
}

#[apply(on_one_database)]
async fn a_guide_of_too_many_conditions_is_refused(client: Client) {
    let full = document_step(StepType::Information, "full").depending_on(conditions(1_000));
    let exact = vec![full.clone(); 20];
    client
        .previewed(preview_of_document(document("exact", exact)))
        .await;
    let mut over = vec![full; 20];
    over.push(document_step(StepType::Information, "one").depending_on(conditions(1)));
    let request = preview_of_document(document("over", over));
    let failure = client.preview(request).await.refused();
    failure.violates(&[("document", "TOO_MANY_ELEMENTS")]);
}
