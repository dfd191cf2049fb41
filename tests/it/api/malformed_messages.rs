//! Bytes that no client library would send. `stress::fuzz` sends many more.

use crate::prelude::*;
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use serde_json::json;

use crate::{
    fixture::each_call,
    kit::server::{TestServer, in_memory},
};

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(number << 3 | 2);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.put_slice(content);
    bytes.freeze()
}

async fn refusal(client: &Client, method: &str, message: Bytes) -> Failure {
    client.send_bytes(method, message).await.refused()
}

#[apply(on_one_database)]
async fn invalid_utf_8_is_refused_in_every_field(client: Client) {
    let broken = b"\xff";
    let translation = [&field(1, b"de")[..], &field(2, &field(1, broken))].concat();
    let key = [&field(1, broken)[..], &field(2, b"")].concat();
    for task in [field(2, broken), field(8, &translation), field(8, &key)] {
        let message = field(1, &task);
        let failure = refusal(&client, "TaskService/CreateTask", message).await;
        failure.is(Code::InvalidArgument, "FIELD_INVALID");
    }
}

#[apply(on_one_database)]
async fn groups_nested_200_deep_are_nested_too_deep(client: Client) {
    let mut group = Bytes::new();
    for _ in 0..200 {
        group = field(2, &field(2, &group));
    }
    let message = field(1, &field(4, &group));
    let failure = refusal(&client, "TaskService/CreateTask", message).await;
    failure.is(Code::InvalidArgument, "NESTING_TOO_DEEP");
    let path = format!("task.dependencies{}.nodes", ".nodes.group".repeat(49));
    assert_eq!(failure.violations(), [(path.as_str(), "NESTING_TOO_DEEP")]);
}

/// Field 2 of both requests is the document.
#[apply(on_one_database)]
async fn the_path_of_a_document_nested_200_deep_names_it(client: Client) {
    let mut document = Bytes::new();
    for _ in 0..200 {
        document = field(2, &field(10, &field(4, &field(4, &document))));
    }
    for rpc in ["ValidateTask", "PreviewTask"] {
        let rpc = format!("AnalysisService/{rpc}");
        let failure = refusal(&client, &rpc, field(2, &document)).await;
        failure.is(Code::InvalidArgument, "NESTING_TOO_DEEP");
        let violations = failure.violations();
        let (path, _) = violations[0];
        assert!(path.starts_with("document.steps.feedback_config"), "{path}");
        let broken = refusal(&client, &rpc, field(1, b"\xff")).await;
        assert_eq!(broken.violations(), [("source", "FIELD_INVALID")]);
    }
}

#[apply(on_one_database)]
async fn json_nested_200_deep_is_nested_too_deep(client: Client) {
    // ListValue.values = 1, Value.list_value = 6.
    let mut json = Bytes::new();
    for _ in 0..200 {
        json = field(6, &field(1, &json));
    }
    let message = field(1, &field(12, &field(2, &json)));
    let failure = refusal(&client, "StepService/CreateStep", message).await;
    failure.is(Code::InvalidArgument, "NESTING_TOO_DEEP");
}

#[apply(on_one_database)]
async fn a_truncated_message_is_invalid(client: Client) {
    let request = create_task_request(full_task());
    let whole = Bytes::from(request.encode_to_vec());
    for length in 1..whole.len() {
        let failure = refusal(&client, "TaskService/CreateTask", whole.slice(..length)).await;
        failure.is(Code::InvalidArgument, "FIELD_INVALID");
    }
}

/// An empty element is two bytes of the message.
#[apply(on_one_database)]
async fn a_message_whose_elements_take_too_much_memory_is_refused(client: Client) {
    let steps = [0x12, 0].repeat(500_000);
    let answers = field(2, &field(10, &[0x22, 0].repeat(4_000_000)));
    let json = field(1, &field(2, &field(6, &[0x0a, 0].repeat(8_000_000))));
    let instructions = field(2, &field(11, &json));
    // Objects with one member, and lists with one element.
    let object = field(1, &field(5, &field(1, &field(2, &[8, 0]))));
    let list = field(1, &field(6, &field(1, &[8, 0])));
    let [objects, lists] = [object.repeat(400_000), list.repeat(1_500_000)]
        .map(|values| field(2, &field(11, &field(1, &field(2, &field(6, &values))))));
    for document in [&steps[..], &answers, &instructions, &objects, &lists] {
        let failure = refusal(&client, "TaskService/ImportTask", field(1, document)).await;
        failure.is(Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
        let start = "the request has so many elements that they take more than ";
        assert!(failure.message.starts_with(start), "{}", failure.message);
    }
    let steps = [0x12, 0].repeat(20_000);
    let failure = refusal(&client, "TaskService/ImportTask", field(1, &steps)).await;
    failure.is(Code::InvalidArgument, "FIELD_REQUIRED");
    let violations = failure.violations();
    assert!(
        violations.contains(&("document.steps", "TOO_MANY_ELEMENTS")),
        "{violations:?}"
    );
}

/// It takes more memory than large messages may take together.
#[tokio::test]
async fn a_large_message_whose_elements_take_much_memory_is_handled_alone() {
    let server = TestServer::start(in_memory()).await;
    let large = Step::default().with_body("x".repeat(1_100_000));
    let mut steps = field(2, &large.encode_to_vec()).to_vec();
    steps.extend([0x12, 0].repeat(200_000));
    let request = field(1, &steps);
    let failure = refusal(&server.client(), "TaskService/ImportTask", request).await;
    failure.is(Code::InvalidArgument, "FIELD_REQUIRED");
}

/// It is accepted where `tests/calls.json` has an empty request.
#[apply(on_both_databases)]
async fn an_empty_message_is_checked_like_any_other(client: Client) {
    each_call(async |call, entry| {
        let may_be_empty = entry.requests.values().any(|request| *request == json!({}));
        match client.send_bytes(call, Bytes::new()).await {
            Ok(_) => assert!(may_be_empty, "{call} accepts an empty request"),
            Err(status) => {
                assert!(!may_be_empty, "{call}: {status:?}");
                assert_eq!(status.code(), Code::InvalidArgument, "{call}: {status:?}");
            }
        }
    })
    .await;
}

/// The first field of a message that ends within the field or has another wire type.
#[apply(on_one_database)]
async fn every_call_refuses_bytes_that_are_no_message(client: Client) {
    each_call(async |call, _| {
        for bytes in [&b"\x0a"[..], b"\x0a\x7fshort", b"\x0c", b"\x0f", b"\x00"] {
            let failure = refusal(&client, call, Bytes::from_static(bytes)).await;
            assert_eq!(failure.reason(), "FIELD_INVALID", "{call}: {failure:?}");
        }
    })
    .await;
}

#[apply(on_one_database)]
async fn unknown_fields_are_ignored(client: Client) {
    let request = create_task_request(task("From the future"));
    // Field 15, which no request has.
    let message = [&request.encode_to_vec()[..], &field(15, b"new")].concat();
    let answer = client
        .send_bytes("TaskService/CreateTask", message.into())
        .await;
    let answer = CreateTaskResponse::decode(answer.accepted()).unwrap();
    assert_eq!(answer.task.unwrap().name, "From the future");
    assert_eq!(answer.ignored_paths, [""; 0]);
}

#[apply(on_one_database)]
async fn a_bad_message_does_not_end_the_connection(client: Client) {
    let good = client.given_task(task("Good")).await;
    refusal(&client, "TaskService/GetTask", Bytes::from_static(b"\xff")).await;
    assert_eq!(client.get_task(&good.guid).await.accepted(), good);
}
