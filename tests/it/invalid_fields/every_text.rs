//! Every text that a task or step has in the contract, found by reflection: U+0000, and more
//! than any text may hold, is refused at its place, or ignored and left out of the response.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{Kind, Value};

use crate::kit::{
    contract::{Contract, json},
    prelude::*,
};

/// More code points than any text but a body may have.
const TOO_LONG: usize = 100_000;

/// Asserts that the text at the path is refused, and beside it only what its message needs
/// and lacks. The text may be within a document that cannot be there at all.
fn refuses_at(path: &str, failure: &Failure) {
    let place = path.trim_end_matches("[key]");
    let is_at_place = |field: &str| {
        let parts = field.split(['[', ']']).step_by(2);
        let field = parts.collect::<String>();
        field == place || (field.ends_with(".task_json") && place.starts_with(&field))
    };
    let violations = failure.violations().into_iter();
    let (at_place, others): (Vec<_>, Vec<_>) =
        violations.partition(|(field, _)| is_at_place(field));
    assert!(!at_place.is_empty(), "{path}: {failure:?}");
    let faults = ["FIELD_INVALID", "FIELD_TOO_LONG", "SHORTHAND_INVALID"];
    for (_, reason) in at_place {
        assert!(faults.contains(&reason), "{path}: {failure:?}");
    }
    for (_, reason) in others {
        assert_eq!(reason, "FIELD_REQUIRED", "{path}: {failure:?}");
    }
}

/// Sends the request once for each of its texts and each fault.
async fn every_text_is_checked(client: &Client, call: &str, request: Vec<u8>) {
    let contract = Contract::of(client).await;
    let paths = contract.field_paths(call).into_iter();
    let texts: Vec<_> = paths.filter(|path| path.kind() == Kind::String).collect();
    assert!(texts.len() > 5, "{} texts", texts.len());
    for place in texts {
        let path = place.path();
        for (text, shown) in [
            ("a\0b".to_owned(), "\\u0000".to_owned()),
            ("y".repeat(TOO_LONG), "y".repeat(TOO_LONG)),
        ] {
            if path.ends_with(".body") && text.len() == TOO_LONG {
                continue;
            }
            let mut message = contract.request(call, &request);
            place.set(&mut message, Value::String(text));
            let message = Bytes::from(message.encode_to_vec());
            match client.send_bytes(call, message).await {
                // What is a well-formed version may be another one.
                Err(refused) if path.ends_with(".etag") && refused.code() == Code::Aborted => {}
                Err(refused) => refuses_at(&path, &Failure::from(refused)),
                Ok(response) => {
                    let response = json(&contract.response(call, &response)).to_string();
                    assert!(!response.contains(&shown), "{path} is not checked");
                }
            }
        }
    }
}

#[apply(on_one_database)]
async fn every_text_of_a_new_task_is_checked(client: Client) {
    let request = CreateTaskRequest {
        task: Some(full_task().with_external_id("new")),
        validate_only: true,
        ..CreateTaskRequest::default()
    };
    every_text_is_checked(&client, "TaskService/CreateTask", request.encode_to_vec()).await;
}

#[apply(on_one_database)]
async fn every_text_of_an_updated_task_is_checked(client: Client) {
    let request = UpdateTaskRequest {
        task: Some(client.given_task(full_task().with_external_id("own")).await),
        validate_only: true,
        ..UpdateTaskRequest::default()
    };
    every_text_is_checked(&client, "TaskService/UpdateTask", request.encode_to_vec()).await;
}

#[apply(on_one_database)]
async fn every_text_of_a_new_step_is_checked(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let request = CreateStepRequest {
        step: Some(full_step(&task).with_external_id("new")),
        validate_only: true,
        ..CreateStepRequest::default()
    };
    every_text_is_checked(&client, "StepService/CreateStep", request.encode_to_vec()).await;
}

#[apply(on_one_database)]
async fn every_text_of_an_updated_step_is_checked(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let request = UpdateStepRequest {
        step: Some(
            client
                .given_step(full_step(&task).with_external_id("own"))
                .await,
        ),
        validate_only: true,
        ..UpdateStepRequest::default()
    };
    every_text_is_checked(&client, "StepService/UpdateStep", request.encode_to_vec()).await;
}
