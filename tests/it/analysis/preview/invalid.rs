//! Requests that are refused. Those beyond a limit exceed it by one.

use super::observation;
use crate::kit::prelude::*;

on_one_database![
    a_source_is_required,
    lists_and_objects_are_no_answers,
    each_field_has_limits,
    unknown_values_are_refused,
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

async fn each_field_has_limits(client: Client) {
    let request = existing(&client).await;
    let answers = |count: usize| {
        let names = (0..count).map(|n| format!("name {n}"));
        names.fold(request.clone(), |request, name| {
            request.answering(&name, text("off"))
        })
    };
    let known = |length, count| request.clone().knowing(vec!["ä".repeat(length); count]);
    let falling = |count| {
        let languages = vec!["fr"; count];
        request
            .clone()
            .in_language("de")
            .falling_back_to(&languages)
    };
    let named = |length| request.clone().answering(&"ä".repeat(length), text("off"));
    for (fits, refused, field, reason) in [
        (
            answers(1_000),
            answers(1_001),
            "answers",
            "TOO_MANY_ELEMENTS",
        ),
        (
            known(1, 1_000),
            known(1, 1_001),
            "known_variables",
            "TOO_MANY_ELEMENTS",
        ),
        (
            known(2_001, 1),
            known(2_002, 1),
            "known_variables[0]",
            "FIELD_TOO_LONG",
        ),
        (
            falling(10),
            falling(11),
            "fallback_languages",
            "TOO_MANY_ELEMENTS",
        ),
        (
            request.clone().to_depth(8),
            request.clone().to_depth(9),
            "subtask_depth",
            "FIELD_OUT_OF_RANGE",
        ),
        (
            request.clone().to_depth(0),
            request.clone().to_depth(-1),
            "subtask_depth",
            "FIELD_OUT_OF_RANGE",
        ),
        (named(2_001), named(0), "answers[\"\"]", "FIELD_REQUIRED"),
    ] {
        client.previewed(fits).await;
        let failure = client.preview(refused).await.refused();
        failure.violates(&[(field, reason)]);
    }
}

async fn unknown_values_are_refused(client: Client) {
    let request = existing(&client).await;
    let unknown_level = PreviewTaskRequest {
        level: Some(4),
        ..request.clone()
    };
    let fallback = request.clone().falling_back_to(&["de", "de_CH"]);
    let expanding = vec!["body".to_owned(), "title".to_owned()];
    for (refused, field) in [
        (unknown_level, "level"),
        (request.clone().in_language("d"), "language"),
        (fallback, "fallback_languages[1]"),
        (request.expanding(expanding), "expand[1]"),
    ] {
        let failure = client.preview(refused).await.refused();
        failure.violates(&[(field, "FIELD_INVALID")]);
    }
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
