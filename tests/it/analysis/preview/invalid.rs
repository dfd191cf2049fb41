//! Requests that are refused. Those beyond a limit exceed it by one.

use super::observation;
use crate::kit::prelude::*;

on_both_databases![
    a_source_is_required,
    a_task_that_is_not_there_is_not_found,
    lists_and_objects_are_no_answers,
    answers_are_limited,
    known_variables_are_limited,
    fallback_languages_are_limited,
    malformed_languages_are_refused,
    the_depth_is_zero_to_eight,
    unknown_levels_are_refused,
    only_bodies_are_expanded,
    names_are_limited,
    all_violations_are_found_at_once,
    a_guide_of_too_many_steps_is_refused,
    a_guide_of_too_many_conditions_is_refused,
];

async fn existing(client: &Client) -> PreviewTaskRequest {
    let steps = vec![observation("light", &["off", "on"])];
    preview_of(&client.imported(document("Lamp", steps)).await.guid)
}

async fn a_source_is_required(client: Client) {
    let failure = client
        .preview(PreviewTaskRequest::default())
        .await
        .refused();
    failure.violates(&[("source", "FIELD_REQUIRED")]);
    let failure = client.preview(preview_of("")).await.refused();
    failure.violates(&[("guid", "FIELD_REQUIRED")]);
    let failure = client.preview(preview_of("lamp")).await.refused();
    failure.violates(&[("guid", "FIELD_INVALID")]);
}

async fn a_task_that_is_not_there_is_not_found(client: Client) {
    let missing = unknown_guid();
    let failure = client.preview(preview_of(&missing)).await.refused();
    failure.is_task_not_found(&missing);
    let foreign = client.other_account().given_task(task("Foreign")).await;
    let failure = client.preview(preview_of(&foreign.guid)).await.refused();
    failure.is_task_not_found(&foreign.guid);
}

async fn lists_and_objects_are_no_answers(client: Client) {
    let request = existing(&client).await;
    for wrong in [
        value(serde_json::json!(["off"])),
        value(serde_json::json!({"light": "off"})),
        number(f64::INFINITY),
        text("\0"),
        prost_types::Value { kind: None },
    ] {
        let request = request.clone().answering("light", wrong);
        let failure = client.preview(request).await.refused();
        failure.violates(&[("answers[\"light\"]", "FIELD_INVALID")]);
    }
}

async fn answers_are_limited(client: Client) {
    let mut request = existing(&client).await;
    for index in 0..1_000 {
        request = request.answering(&format!("name {index}"), text("off"));
    }
    client.previewed(request.clone()).await;
    let request = request.answering("light", text("off"));
    let failure = client.preview(request).await.refused();
    failure.violates(&[("answers", "TOO_MANY_ELEMENTS")]);
}

async fn known_variables_are_limited(client: Client) {
    let request = existing(&client).await;
    let names = |count| vec!["light".to_owned(); count];
    client
        .previewed(request.clone().knowing(names(1_000)))
        .await;
    let failure = client
        .preview(request.knowing(names(1_001)))
        .await
        .refused();
    failure.violates(&[("known_variables", "TOO_MANY_ELEMENTS")]);
}

async fn fallback_languages_are_limited(client: Client) {
    let request = existing(&client).await.in_language("de");
    client
        .previewed(request.clone().falling_back_to(&["fr"; 10]))
        .await;
    let request = request.falling_back_to(&["fr"; 11]);
    let failure = client.preview(request).await.refused();
    failure.violates(&[("fallback_languages", "TOO_MANY_ELEMENTS")]);
}

async fn malformed_languages_are_refused(client: Client) {
    let request = existing(&client).await;
    let failure = client.preview(request.clone().in_language("d")).await;
    failure.refused().violates(&[("language", "FIELD_INVALID")]);
    let request = request.falling_back_to(&["de", "de_CH"]);
    let failure = client.preview(request).await.refused();
    failure.violates(&[("fallback_languages[1]", "FIELD_INVALID")]);
}

async fn the_depth_is_zero_to_eight(client: Client) {
    let request = existing(&client).await;
    client.previewed(request.clone().to_depth(8)).await;
    for depth in [-1, 9] {
        let failure = client.preview(request.clone().to_depth(depth)).await;
        let failure = failure.refused();
        failure.violates(&[("subtask_depth", "FIELD_OUT_OF_RANGE")]);
    }
}

async fn unknown_levels_are_refused(client: Client) {
    let request = PreviewTaskRequest {
        level: Some(4),
        ..existing(&client).await
    };
    let failure = client.preview(request).await.refused();
    failure.violates(&[("level", "FIELD_INVALID")]);
}

async fn only_bodies_are_expanded(client: Client) {
    let list = vec!["body".to_owned(), "title".to_owned()];
    let request = existing(&client).await.expanding(list);
    let failure = client.preview(request).await.refused();
    failure.violates(&[("expand[1]", "FIELD_INVALID")]);
}

async fn names_are_limited(client: Client) {
    let request = existing(&client).await;
    let (longest, too_long) = ("ä".repeat(2_001), "ä".repeat(2_002));
    let longest = request
        .clone()
        .answering(&longest, text("off"))
        .knowing(vec![longest.clone()]);
    client.previewed(longest).await;
    let too_long = request.clone().knowing(vec![too_long]);
    let failure = client.preview(too_long).await.refused();
    failure.violates(&[("known_variables[0]", "FIELD_TOO_LONG")]);
    let failure = client.preview(request.answering("", text("off"))).await;
    failure
        .refused()
        .violates(&[("answers[\"\"]", "FIELD_REQUIRED")]);
}

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
