//! Requests for references that are refused.

use super::{first_page, of_task, of_variable, places};
use crate::kit::prelude::*;

on_one_database![
    neither_task_nor_variable_is_refused,
    an_answer_without_a_variable_is_refused,
    a_malformed_task_is_refused,
    names_and_answers_have_limits,
    nul_is_refused,
];

async fn neither_task_nor_variable_is_refused(client: Client) {
    let refused = first_page(&client, ListReferencesRequest::default())
        .await
        .refused();
    refused.violates(&[("task", "FIELD_REQUIRED")]);
}

async fn an_answer_without_a_variable_is_refused(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let request = ListReferencesRequest {
        answer: "on".to_owned(),
        ..of_task(&task)
    };
    let refused = first_page(&client, request).await.refused();
    refused.violates(&[("answer", "FIELD_INVALID")]);
}

async fn a_malformed_task_is_refused(client: Client) {
    for variable in ["", "light"] {
        let request = ListReferencesRequest {
            variable: variable.to_owned(),
            ..of_task(&task_of("17"))
        };
        let refused = first_page(&client, request).await.refused();
        refused.violates(&[("task", "FIELD_INVALID")]);
    }
}

async fn names_and_answers_have_limits(client: Client) {
    let request = |name: usize, answer: usize| ListReferencesRequest {
        answer: "ö".repeat(answer),
        ..of_variable(&"ö".repeat(name))
    };
    assert_eq!(places(&client, request(2_001, 1_000)).await, []);
    let refused = first_page(&client, request(2_002, 1_001)).await.refused();
    refused.violates(&[("variable", "FIELD_TOO_LONG"), ("answer", "FIELD_TOO_LONG")]);
}

async fn nul_is_refused(client: Client) {
    let request = ListReferencesRequest {
        answer: "a\0".to_owned(),
        ..of_variable("a\0")
    };
    let refused = first_page(&client, request).await.refused();
    refused.violates(&[("variable", "FIELD_INVALID"), ("answer", "FIELD_INVALID")]);
}
