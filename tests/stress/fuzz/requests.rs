//! Requests of every rpc, end to end: every response follows the contract. What is
//! accepted keeps the limits, is as it was sent, and is read as it was written.

use std::fmt::Debug;

use bytes::Bytes;
use expertise::proto::v1::*;
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use prost_types::{ListValue, Struct, Value, value::Kind};
use tonic::Status;

use super::{
    corpus,
    executions::{Input, execute},
    local_service::LocalService,
    messages::{Mutator, requests},
    mutations::mutate_bytes,
    response_rules::{is_listed_for, is_of_the_contract, keeps_the_limits},
};
use crate::kit::{contract, rng::Rng, sample::With};

// An account and a database are replaced after a while, as large ones are slow.
const EXECUTIONS_PER_ACCOUNT: usize = 200;
const ACCOUNTS_PER_DATABASE: usize = 50;

struct Target {
    service: LocalService,
    requests: Vec<(String, DynamicMessage)>,
    words: Vec<String>,
    /// Executions so far.
    count: usize,
    /// Accounts so far.
    accounts: usize,
    accepted: usize,
}

#[test]
fn every_response_follows_the_contract() {
    let mut target = Target::new();
    target.accepts_the_catalogue();
    execute("requests", 750, |rng| target.execute(rng));
    let (accepted, count) = (target.accepted, target.count);
    assert!(
        accepted * 20 >= count,
        "only {accepted} of {count} requests were accepted"
    );
    target.nothing_failed();
}

impl Target {
    fn new() -> Self {
        let mut target = Self {
            service: LocalService::new(),
            requests: Vec::new(),
            words: Vec::new(),
            count: 0,
            accounts: 0,
            accepted: 0,
        };
        target.use_new_account();
        target
    }

    /// Fills a new account, and puts its ids into the requests.
    fn use_new_account(&mut self) {
        let account = self.count / EXECUTIONS_PER_ACCOUNT;
        if account > 0 && account.is_multiple_of(ACCOUNTS_PER_DATABASE) {
            self.nothing_failed();
            self.service = LocalService::new();
        }
        self.service.call_as(&format!("fuzz-{}", self.accounts));
        self.accounts += 1;
        let values = self.service.fill();
        self.requests = requests(&values);
        let words = values.values().filter_map(serde_json::Value::as_str);
        self.words = words.map(str::to_owned).collect();
    }

    /// Asserts that the server has not panicked, and has met no other error of its own.
    fn nothing_failed(&self) {
        assert_eq!(self.service.log(), "");
    }

    /// Asserts that each request of the catalogue is accepted. Sends the inputs that failed once.
    fn accepts_the_catalogue(&mut self) {
        for index in 0..self.requests.len() {
            let (call, message) = self.requests[index].clone();
            let answer = self.send(&call, message.encode_to_vec().into());
            answer.unwrap_or_else(|status| panic!("{call} {message:?}: {status:?}"));
            self.use_new_account();
        }
        for (name, bytes) in corpus::files("requests") {
            let (call, _) = name.rsplit_once('/').expect("the folder of a call");
            let _ = self.send(&call.replacen('.', "/", 1), bytes.into());
            self.use_new_account();
        }
    }

    fn execute(&mut self, rng: &mut Rng) {
        self.count += 1;
        if self.count.is_multiple_of(EXECUTIONS_PER_ACCOUNT) {
            self.use_new_account();
        }
        let (method, message) = rng.pick(&self.requests);
        let (method, mut message) = (method.clone(), message.clone());
        let mut mutator = Mutator {
            rng,
            words: &self.words,
            donors: &self.requests,
        };
        mutator.mutate(&mut message);
        // Most are validated alone.
        if let Some(field) = message.descriptor().get_field_by_name("validate_only")
            && !rng.one_in(4)
        {
            message.set_field(&field, prost_reflect::Value::Bool(true));
        }
        let mut bytes = message.encode_to_vec();
        if rng.one_in(5) {
            mutate_bytes(rng, &mut bytes);
        }
        if self.send(&method, bytes.into()).is_ok() {
            self.accepted += 1;
        }
    }

    fn send(&self, method: &str, bytes: Bytes) -> Result<(), Status> {
        let _input = Input {
            target: method,
            bytes: &bytes,
        };
        let answer = self.service.send(method, bytes.clone());
        match &answer {
            Ok(answer) => {
                let response = contract::message_of(method, "Response");
                let response = DynamicMessage::decode(response, &answer[..]);
                keeps_the_limits(&response.expect("an encoded message"));
                self.is_as_it_was_sent(method, bytes.clone(), answer.clone());
            }
            Err(status) => {
                is_of_the_contract(status);
                is_listed_for(method, status);
            }
        }
        answer.map(drop)
    }

    fn is_as_it_was_sent(&self, method: &str, request: Bytes, answer: Bytes) {
        match method {
            "TaskService/CreateTask" => {
                let request: CreateTaskRequest = read(request);
                let made = read::<CreateTaskResponse>(answer).task.expect("a task");
                // A repeated request id gets the first response.
                if request.request_id.is_empty() {
                    task_is_as_sent(&made, &request.task.expect("a task"));
                }
                if !request.validate_only {
                    self.task_is_read_again(made);
                }
            }
            "TaskService/UpdateTask" => {
                let request: UpdateTaskRequest = read(request);
                if !request.validate_only {
                    self.task_is_read_again(read::<UpdateTaskResponse>(answer).task.unwrap());
                }
            }
            "TaskService/ImportTask" => {
                let request: ImportTaskRequest = read(request);
                let made = read::<ImportTaskResponse>(answer).task.expect("a task");
                if !request.validate_only {
                    self.is_imported_onto_itself(&made);
                    self.task_is_read_again(made);
                }
            }
            "StepService/CreateStep" => {
                let request: CreateStepRequest = read(request);
                let made = read::<CreateStepResponse>(answer).step.expect("a step");
                if request.request_id.is_empty() {
                    step_is_as_sent(&made, &request.step.expect("a step"));
                }
                if !request.validate_only {
                    self.step_is_read_again(made);
                }
            }
            "StepService/UpdateStep" => {
                let request: UpdateStepRequest = read(request);
                if !request.validate_only {
                    self.step_is_read_again(read::<UpdateStepResponse>(answer).step.unwrap());
                }
            }
            _ => {}
        }
    }

    fn task_is_read_again(&self, task: Task) {
        let guid = task.guid.clone();
        let read = self
            .service
            .call("TaskService/GetTask", &GetTaskRequest { guid });
        let read: GetTaskResponse = read.expect("it is stored");
        assert_eq!(read.task, Some(task));
    }

    fn step_is_read_again(&self, step: Step) {
        let guid = step.guid.clone();
        let read = self
            .service
            .call("StepService/GetStep", &GetStepRequest { guid });
        let read: GetStepResponse = read.expect("it is stored");
        assert_eq!(read.step, Some(step));
    }

    fn is_imported_onto_itself(&self, task: &Task) {
        let guid = task.guid.clone();
        let exported = self
            .service
            .call("TaskService/ExportTask", &ExportTaskRequest { guid });
        let exported: ExportTaskResponse = exported.expect("it is stored");
        let again = ImportTaskRequest::default().with(|it| it.document = exported.document);
        let again = self.service.call("TaskService/ImportTask", &again);
        let again: ImportTaskResponse = again.expect("an export may be imported");
        assert_eq!(again.ignored_paths, [""; 0]);
        assert_eq!(again.task.as_ref(), Some(task));
    }
}

fn read<T: Message + Default>(bytes: Bytes) -> T {
    T::decode(bytes).expect("an encoded message")
}

/// An empty text counts as not sent.
fn not_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn task_is_as_sent(made: &Task, sent: &Task) {
    assert_eq!(made.name, sent.name);
    assert_eq!(made.product_id, sent.product_id);
    same_if_sent(&made.dependencies, &sent.dependencies);
    same_if_sent(&made.published, &sent.published);
    same_if_sent(&made.external_id, &not_empty(sent.external_id.as_ref()));
}

fn step_is_as_sent(made: &Step, sent: &Step) {
    if made.r#type() != StepType::Subtask {
        assert_eq!(made.title, sent.title);
    }
    assert_eq!(made.r#type, sent.r#type);
    same_if_sent(&made.body, &sent.body);
    same_if_sent(&made.cost, &sent.cost);
    same_if_sent(&made.external_id, &not_empty(sent.external_id.as_ref()));
    same_if_sent(&made.dependencies, &sent.dependencies);
    assert_eq!(made.parts, sent.parts);
    assert_eq!(made.skills, sent.skills);
    assert_eq!(made.tags, sent.tags);
    let instructions: Vec<Struct> = sent.instructions.iter().cloned().map(object).collect();
    assert_eq!(made.instructions, instructions);
    let looping = sent.looping.clone().map(|looping| Looping {
        alias: looping.alias,
        array: looping.array.map(value),
        iterations: looping.iterations.map(value),
    });
    assert_eq!(made.looping, looping);
}

/// JSON as it is read: null is null, whatever number its enum has.
fn value(sent: Value) -> Value {
    let kind = sent.kind.map(|kind| match kind {
        Kind::NullValue(_) => Kind::NullValue(0),
        Kind::StructValue(inner) => Kind::StructValue(object(inner)),
        Kind::ListValue(list) => Kind::ListValue(ListValue {
            values: list.values.into_iter().map(value).collect(),
        }),
        other @ (Kind::NumberValue(_) | Kind::StringValue(_) | Kind::BoolValue(_)) => other,
    });
    Value { kind }
}

fn object(sent: Struct) -> Struct {
    let members = sent.fields.into_iter();
    Struct {
        fields: members
            .map(|(name, member)| (name, value(member)))
            .collect(),
    }
}

fn same_if_sent<T: PartialEq + Debug>(made: &Option<T>, sent: &Option<T>) {
    if sent.is_some() {
        assert_eq!(made, sent);
    }
}
