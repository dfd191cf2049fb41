//! Every call of the contract, as the server's reflection shows it.

use std::collections::BTreeSet;

use prost::Message;
use tonic::Code;

use super::{
    caller::Caller,
    invalid_values,
    marks::TEXT,
    service::{Mode, Service},
    valid_calls::{Resources, calls, request},
};
use crate::kit::{client::Client, contract::Contract, databases::Database};

macro_rules! leak_tests {
    ($($(#[$ignored:meta])? $name:ident: $database:ident, $mode:ident, $format:literal;)+) => {$(
        #[tokio::test]
        $(#[$ignored])?
        async fn $name() {
            expect_no_leak(stringify!($name), Database::$database, Mode::$mode, $format).await;
        }
    )+};
}

// Each pair of database, credentials and format.
leak_tests! {
    #[ignore = "slow"]
    sqlite_with_headers_in_text: Sqlite, Header, "text";
    sqlite_with_tokens_in_json: Sqlite, Jwt, "json";
    #[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
    postgres_with_headers_in_json: Postgres, Header, "json";
    #[ignore = "slow"]
    postgres_with_tokens_in_text: Postgres, Jwt, "text";
}

async fn expect_no_leak(name: &str, database: Database, mode: Mode, format: &str) {
    let service = Service::start(name, database, mode, format);
    let caller = service.caller();
    let contract = Contract::of(&caller.client).await;
    let listed: BTreeSet<_> = calls().collect();
    assert_eq!(
        listed,
        contract.calls().collect(),
        "every call has a request here"
    );
    for call in calls() {
        let caller_of_this = caller.other_account();
        let resources = Resources::of(&caller_of_this).await;
        let good = request(call, &resources);
        refused_at_every_place(&caller_of_this, &contract, call, &good).await;
        refused_for_its_bytes(&caller_of_this, call, &good).await;
        refused_for_its_credentials(&caller_of_this, call, &good).await;
        let resources = Resources::of(&caller_of_this).await;
        let accepted = caller_of_this.send(call, request(call, &resources)).await;
        accepted.unwrap_or_else(|status| panic!("{call}: {status:?}"));
    }
    refused_for_their_state(&caller).await;
    refused_as_unknown(&caller.client).await;
    service.end_and_expect_no_mark(caller.calls());
}

/// Sends invalid values in each field of the request. Some are accepted, as a text may
/// be anything; each call checks its error.
async fn refused_at_every_place(caller: &Caller, contract: &Contract, call: &str, good: &[u8]) {
    let (mut sent, mut refused) = (0, 0);
    for place in contract.field_paths(call) {
        for value in invalid_values::values(&place) {
            let mut request = contract.request(call, good);
            place.set(&mut request, value);
            let outcome = caller.send(call, request.encode_to_vec()).await;
            sent += 1;
            refused += usize::from(outcome.is_err());
        }
    }
    assert!(
        sent == 0 || refused * 4 > sent,
        "{call}: {refused} of {sent}"
    );
}

async fn refused_for_its_bytes(caller: &Caller, call: &str, good: &[u8]) {
    let field_without_end = [&[0x0a, 0x7f][..], TEXT.as_bytes()].concat();
    let mut messages = vec![field_without_end];
    messages.extend(invalid_values::broken(good.to_vec()));
    for message in messages {
        let status = caller.send(call, message).await.expect_err(call);
        assert_eq!(status.code(), Code::InvalidArgument, "{call}: {status:?}");
    }
}

async fn refused_for_its_credentials(caller: &Caller, call: &str, good: &[u8]) {
    for metadata in caller.wrong_credentials() {
        let outcome = caller.send_with(call, good.to_vec(), &metadata).await;
        assert!(outcome.is_err(), "{call}: {metadata:?}");
    }
}

/// Failed preconditions are named by ids, never by texts.
async fn refused_for_their_state(caller: &Caller) {
    use crate::kit::prelude::*;
    let resources = Resources::of(caller).await;
    let guid = resources.task.guid.clone();
    let with_steps = DeleteTaskRequest {
        guid: guid.clone(),
        ..DeleteTaskRequest::default()
    };
    let changed_since = UpdateTaskRequest {
        task: Some(Task {
            guid,
            name: TEXT.to_owned(),
            etag: TEXT.to_owned(),
            ..Task::default()
        }),
        ..UpdateTaskRequest::default()
    };
    let twice = |name: &str| CreateTaskRequest {
        task: Some(task(name)),
        request_id: "01a1fdaf-d221-7557-a852-5dd7d6531c2e".to_owned(),
        ..CreateTaskRequest::default()
    };
    let _: CreateTaskResponse = caller.call("TaskService/CreateTask", &twice("once")).await;
    for (call, request, code) in [
        (
            "TaskService/DeleteTask",
            with_steps.encode_to_vec(),
            Code::FailedPrecondition,
        ),
        (
            "TaskService/UpdateTask",
            changed_since.encode_to_vec(),
            Code::Aborted,
        ),
        (
            "TaskService/CreateTask",
            twice(TEXT).encode_to_vec(),
            Code::FailedPrecondition,
        ),
    ] {
        let status = caller.send(call, request).await.expect_err(call);
        assert_eq!(status.code(), code, "{call}: {status:?}");
    }
}

/// The error names the path and nothing of the message.
async fn refused_as_unknown(client: &Client) {
    let message = bytes::Bytes::from_static(TEXT.as_bytes());
    let outcome = client.send_bytes("TaskService/MoveTask", message).await;
    let status = outcome.expect_err("it is not there");
    assert_eq!(status.code(), Code::Unimplemented);
}
