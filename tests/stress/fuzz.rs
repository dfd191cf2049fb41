//! Fuzzing: requests of `tests/calls.json`, mutated as JSON and as bytes. Nothing may panic, every
//! response follows the contract, and what is accepted is as it was sent and is read as it was
//! written. What has a grammar of its own, such as shorthands, page tokens and masks, has
//! properties next to its code and in `it`.
//!
//! `EXPERTISE_TEST_FUZZ_EXECUTIONS` is how many requests are sent, and `EXPERTISE_TEST_FUZZ_SEED`
//! the seed of their mutations. A request that fails is printed and saved.

mod mutations;
mod response_rules;

use std::{fs, path::PathBuf, thread};

use bytes::Bytes;
use prost::Message;
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use tonic::Status;

use self::{
    mutations::{Mutator, mutate_bytes},
    response_rules::{is_of_the_contract, keeps_the_limits},
};
use crate::{
    kit::{
        calls::{prepare, response},
        catalogue::{Values, catalogue, changed},
        client::Client,
        contract::{self, message_of, proto_json, request, try_message},
        deadline::in_time,
        rng::Rng,
        server::{TestServer, in_memory},
    },
    machine,
    variables::number_from_env,
};

const EXECUTIONS: u64 = 6_000;
// An account and a database are replaced after a while, as large ones are slow.
const EXECUTIONS_PER_ACCOUNT: u64 = 200;
const EXECUTIONS_PER_DATABASE: u64 = 10_000;
/// The most bytes of a message: mutations exceed it now and then.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Fields that no request of the catalogue sends, with their values.
const MORE_FIELDS: [(&str, &str); 11] = [
    ("TaskService/ImportTask", r#"{"match_external_ids": true}"#),
    ("TaskService/ImportTask", r#"{"guide_etag": "$guide_etag"}"#),
    (
        "TaskService/ImportTask",
        r#"{"reset_fields": "task.roles,steps.tags,steps.dependencies"}"#,
    ),
    (
        "AnalysisService/ValidateTask",
        r#"{"replaces_stored": true}"#,
    ),
    ("ChangeService/ListChanges", r#"{"wait": "0.01s"}"#),
    (
        "StepService/CreateStep",
        r#"{"step": {"subtask_id": null, "subtask_external_id": "$external_id"}}"#,
    ),
    (
        "StepService/UpdateStep",
        r#"{"step": {"subtask_id": null, "subtask_external_id": "$external_id"}}"#,
    ),
    (
        "RevisionService/CreateRevision",
        r#"{"guide_etag": "$guide_etag"}"#,
    ),
    ("RevisionService/CreateRevision", r#"{"guide_etag": "old"}"#),
    (
        "RevisionService/RestoreRevision",
        r#"{"guide_etag": "$guide_etag"}"#,
    ),
    (
        "RevisionService/RestoreRevision",
        r#"{"guide_etag": "old"}"#,
    ),
];

/// Requests that failed once.
const FAILED: [(&str, &[u8]); 1] = [(
    // It waits for the least number of seconds.
    "ChangeService/ListChanges",
    b"\x10\x02\x2a\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
)];

#[tokio::test]
async fn every_response_follows_the_contract() {
    let _machine = machine::shared();
    let executions = number_from_env("EXPERTISE_TEST_FUZZ_EXECUTIONS").unwrap_or(EXECUTIONS);
    let seed = number_from_env("EXPERTISE_TEST_FUZZ_SEED").unwrap_or(1);
    let mut rng = Rng::new(seed);
    let mut target = Target::on_new_database().await;
    for (call, bytes) in FAILED {
        let _ = target.send(call, Bytes::from_static(bytes)).await;
    }
    let mut accepted = 0;
    for count in 1..=executions {
        if count.is_multiple_of(EXECUTIONS_PER_DATABASE) {
            target.nothing_failed();
            target = Target::on_new_database().await;
        } else if count.is_multiple_of(EXECUTIONS_PER_ACCOUNT) {
            target.use_new_account().await;
        }
        let (call, bytes) = target.mutated(&mut rng);
        let sent = in_time("an execution", target.send(&call, bytes)).await;
        accepted += u64::from(sent.is_ok());
    }
    println!("{executions} executions, {accepted} accepted, seed {seed}");
    assert!(accepted * 20 >= executions, "only {accepted} were accepted");
    target.nothing_failed();
}

/// A server, and requests in an account that has every resource of the catalogue.
struct Target {
    server: TestServer,
    client: Client,
    requests: Vec<(String, Value)>,
    values: Values,
}

impl Target {
    async fn on_new_database() -> Self {
        let settings = in_memory()
            .set("EXPERTISE_MAX_MESSAGE_BYTES", MAX_MESSAGE_BYTES)
            .set("EXPERTISE_LOG", "error");
        let server = TestServer::start(settings).await;
        let mut target = Self {
            client: server.client(),
            server,
            requests: Vec::new(),
            values: Values::new(),
        };
        target.use_new_account().await;
        target
    }

    /// Fills a new account, and puts its ids into the requests.
    async fn use_new_account(&mut self) {
        self.client = self.client.other_account();
        let send = async |call: &str, message| self.client.send_bytes(call, message).await;
        self.values = prepare(None, contract::message, send).await;
        let requests = catalogue().calls.iter().flat_map(|(call, entry)| {
            let requests = entry.requests.values();
            requests.map(|it| (call.clone(), catalogue().expand(it, &self.values)))
        });
        self.requests = requests.collect();
    }

    /// Asserts that the server has not panicked, and has met no other error of its own.
    fn nothing_failed(&self) {
        assert_eq!(self.server.log(), "");
    }

    fn mutated(&self, rng: &mut Rng) -> (String, Bytes) {
        loop {
            let (call, mut request) = rng.pick(&self.requests).clone();
            let more = MORE_FIELDS.iter().filter(|(of, _)| *of == call);
            let more: Vec<&str> = more.map(|(_, more)| *more).collect();
            if let Some(more) = rng.try_pick(&more)
                && rng.one_in(4)
            {
                let more = serde_json::from_str(more).expect("JSON");
                request = changed(request, &catalogue().expand(&more, &self.values));
            }
            Mutator::new(rng, &self.requests, &self.values).mutate(&mut request);
            let descriptor = message_of(&call, "Request");
            // Half of the writes are dry runs.
            if descriptor.get_field_by_name("validate_only").is_some() && rng.one_in(2) {
                request["validate_only"] = true.into();
            }
            if let Ok(message) = try_message(&call, request) {
                let mut bytes = message.encode_to_vec();
                if rng.one_in(5) {
                    mutate_bytes(rng, &mut bytes);
                }
                return (call, bytes.into());
            }
        }
    }

    async fn send(&self, call: &str, bytes: Bytes) -> Result<(), Status> {
        let _input = Input {
            call,
            bytes: &bytes,
        };
        let answer = self.client.send_bytes(call, bytes.clone()).await;
        let answer = answer.inspect_err(|status| is_of_the_contract(call, status))?;
        keeps_the_limits(&decode(call, "Response", &answer));
        let sent = proto_json(&decode(call, "Request", &bytes));
        self.is_stored(call, &sent, &response(call, &answer)).await;
        Ok(())
    }

    /// Asserts that the task or step of a response is what was sent, and what is read.
    async fn is_stored(&self, call: &str, sent: &Value, answer: &Value) {
        let (kind, get) = match call.split_once('/') {
            Some(("TaskService", _)) => ("task", "TaskService/GetTask"),
            Some(("StepService", _)) => ("step", "StepService/GetStep"),
            _ => return,
        };
        let is_write = ["/Create", "/Update", "/Import"];
        let Some(made) = answer.get(kind) else { return };
        // A repeated request id gets the first response, of what may be deleted by now.
        let is_repeated = sent.get("request_id").is_some();
        if is_repeated || !is_write.iter().any(|verb| call.contains(verb)) {
            return;
        }
        if call.contains("/Create") {
            is_as_sent(made, &sent[kind]);
        }
        if sent.get("validate_only").is_some() {
            return;
        }
        let guid = json!({ "guid": made["guid"] });
        if call.contains("/Import") {
            let exported = self.call("TaskService/ExportTask", guid.clone()).await;
            let again = json!({ "document": exported["document"] });
            let again = self.call("TaskService/ImportTask", again).await;
            assert_eq!(again.get("ignored_paths"), None);
            assert_eq!(again["task"], *made, "imported onto itself");
        }
        assert_eq!(self.call(get, guid).await[kind], *made);
    }

    async fn call(&self, call: &str, sent: Value) -> Value {
        let answer = self.client.send_bytes(call, request(call, sent).into());
        let answer = answer.await;
        response(call, &answer.unwrap_or_else(|it| panic!("{call}: {it:?}")))
    }
}

fn decode(call: &str, kind: &str, bytes: &Bytes) -> DynamicMessage {
    let message = DynamicMessage::decode(message_of(call, kind), bytes.clone());
    message.expect("an encoded message")
}

/// Asserts that a new task or step has the values that were sent.
fn is_as_sent(made: &Value, sent: &Value) {
    const FIELDS: [&str; 14] = [
        "name",
        "product_id",
        "published",
        "external_id",
        "dependencies",
        "title",
        "type",
        "body",
        "cost",
        "parts",
        "skills",
        "tags",
        "instructions",
        "looping",
    ];
    for field in FIELDS {
        let Some(value) = sent.get(field) else {
            continue;
        };
        // An empty id counts as not sent, a subtask step has the name of its task, and nobody sets
        // the type of a task.
        let is_other = match field {
            "external_id" => *value == "",
            "title" => sent["type"] == "STEP_TYPE_SUBTASK",
            "type" => value.as_str().is_some_and(|it| it.starts_with("TASK")),
            _ => false,
        };
        assert!(is_other || made[field] == *value, "{field}: {made} {sent}");
    }
}

/// The current input, printed and saved when this is dropped by a panic.
struct Input<'a> {
    call: &'a str,
    bytes: &'a [u8],
}

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let name = format!("fuzz-{}.bin", self.call.replace('/', "."));
            let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
            let _ = fs::write(&file, self.bytes);
            let bytes = self.bytes.escape_ascii();
            eprintln!("{}: saved in {}: {bytes:.2000}", self.call, file.display());
        }
    }
}
