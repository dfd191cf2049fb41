//! Random writes of one account.

use std::iter::repeat_n;

use proptest::prelude::{Strategy, any};
use prost::Message;
use prost_reflect::{DynamicMessage, Value as Field};
use serde_json::{Value, json};
use tonic::Status;

use super::{
    calls::response,
    client::{Client, unknown_guid},
    contract::{self, message_of},
    rng::Rng,
    sample::PRODUCT,
    snapshot,
};

/// Names of observations. The last one looks like an account-wide name.
const OWN: [&str; 3] = ["a", "b", "components.7.a"];
/// The path and the variable of a condition.
const READ: [(&str, &str); 6] = [
    ("", "a"),
    ("", "b"),
    ("components.7", "a"),
    ("", "components.7.a"),
    ("components", "7.b"),
    ("", "outside"),
];
/// Keys and texts of answers.
const KEYS: [&str; 4] = ["5", "true", "a", "b"];
const TEXTS: [&str; 3] = ["Five", "Green", "Blinks"];
/// Few, so that some are taken.
const EXTERNAL_IDS: [Option<&str>; 3] = [None, Some("id 1"), Some("id 2")];
const OBSERVATION: &str = "STEP_TYPE_OBSERVATION";
/// Masks of updates. The other fields that an update sends are ignored.
const TASK_MASKS: &str = "published name published,name translations.fr dependencies external_id";
const STEP_MASKS: &str = "title body dependencies feedback_config external_id translations.fr \
                          translations subtask_id subtask_external_id";

/// One write of a history, whose choices follow from the seed and from what there is.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    kind: Kind,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    CreateTask,
    UpdateTask,
    DeleteTask,
    /// A guide with a linked question.
    ImportGuide,
    /// An exported guide with edits.
    ImportEdited,
    /// An information step.
    AppendStep,
    /// Any step, behind another one or an unknown one.
    InsertStep,
    UpdateStep,
    /// A question with edits.
    UpdateQuestion,
    DeleteStep,
    /// A step that was deleted comes back.
    RestoreStep,
    TranslateAutomatically,
    CreateRole,
    DeleteRole,
}

/// How often each kind is made.
const WEIGHTS: [(Kind, usize); 14] = [
    (Kind::CreateTask, 2),
    (Kind::UpdateTask, 9),
    (Kind::DeleteTask, 1),
    (Kind::ImportGuide, 2),
    (Kind::ImportEdited, 11),
    (Kind::AppendStep, 4),
    (Kind::InsertStep, 9),
    (Kind::UpdateStep, 15),
    (Kind::UpdateQuestion, 6),
    (Kind::DeleteStep, 3),
    (Kind::RestoreStep, 2),
    (Kind::TranslateAutomatically, 1),
    (Kind::CreateRole, 1),
    (Kind::DeleteRole, 1),
];

pub fn write() -> impl Strategy<Value = Write> {
    any::<u64>().prop_map(|seed| Write::random(&mut Rng::new(seed)))
}

/// The call of a write, which may be sent repeatedly.
#[derive(Clone, Debug)]
pub struct Call {
    /// Such as `TaskService/CreateTask`.
    rpc: &'static str,
    request: DynamicMessage,
}

impl Call {
    fn new(rpc: &'static str, request: Value) -> Self {
        let request = contract::message(rpc, request);
        Self { rpc, request }
    }

    /// A write that is the same whatever there is.
    pub fn blind(number: usize) -> Self {
        let role = json!({"role": {"name": text_of(number)}});
        Self::new("RoleService/CreateRole", role)
    }

    /// Its response as JSON without times and etags.
    pub async fn send(&self, client: &Client) -> Result<String, Status> {
        let response = self.response(client).await?;
        Ok(snapshot::shown(&response).to_string())
    }

    pub async fn response(&self, client: &Client) -> Result<DynamicMessage, Status> {
        let request = self.request.encode_to_vec().into();
        let response = client.send_bytes(self.rpc, request).await?;
        let response = DynamicMessage::decode(message_of(self.rpc, "Response"), response);
        Ok(response.expect("its response"))
    }

    /// The same as a dry run, if it has one.
    pub fn dry_run(mut self) -> Option<Self> {
        let dry = Field::Bool(true);
        let dry = self.request.try_set_field_by_name("validate_only", dry);
        dry.is_ok().then_some(self)
    }

    /// Such as `CreateTask`.
    pub fn rpc(&self) -> &'static str {
        let (_, rpc) = self.rpc.split_once('/').expect("a call");
        rpc
    }

    /// Whether a repeated call gets the response of the first one.
    pub fn has_request_id(&self) -> bool {
        let id = self.request.get_field_by_name("request_id");
        id.is_some_and(|id| id.as_str() != Some(""))
    }
}

/// Makes the write, and returns its answer; `None` if it needs a task or step and there is none.
/// A write with a request id is made twice.
pub async fn apply(client: &Client, write: &Write, number: usize) -> Option<String> {
    let call = write.call(client, number).await.expect("what there is")?;
    let mut answer = call.send(client).await;
    if call.has_request_id() {
        answer = call.send(client).await;
    }
    Some(answer.unwrap_or_else(|status| format!("{:?} {}", status.code(), status.message())))
}

/// A field of the response to a call.
async fn read(client: &Client, rpc: &str, request: Value, field: &str) -> Result<Value, Status> {
    let request = contract::request(rpc, request).into();
    let answer = client.send_bytes(rpc, request).await?;
    Ok(response(rpc, &answer)[field].take())
}

/// The steps that a call lists, of all tasks.
async fn steps(client: &Client, tasks: &[Value], rpc: &str) -> Result<Vec<Value>, Status> {
    let mut steps = Vec::new();
    for task in tasks {
        let request = json!({"task": task["guid"], "page_size": 500});
        let listed = read(client, rpc, request, "steps").await?;
        steps.extend(listed.as_array().cloned().unwrap_or_default());
    }
    Ok(steps)
}

impl Write {
    pub fn random(rng: &mut Rng) -> Self {
        let kinds = WEIGHTS.map(|(kind, weight)| repeat_n(kind, weight));
        let kinds: Vec<Kind> = kinds.into_iter().flatten().collect();
        Self {
            kind: *rng.pick(&kinds),
            seed: rng.next(),
        }
    }

    /// The same choices for another kind of write.
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The call for what there is now; `None` if it needs a task or step and there is none.
    pub async fn call(&self, client: &Client, number: usize) -> Result<Option<Call>, Status> {
        let rng = &mut Rng::new(self.seed);
        let all = json!({"page_size": 500});
        let tasks = read(client, "TaskService/ListTasks", all, "tasks").await?;
        let tasks = tasks.as_array().cloned().unwrap_or_default();
        let task = rng.try_pick(&tasks).cloned();
        let rpc = match self.kind {
            Kind::RestoreStep => "StepService/ListDeletedSteps",
            _ => "StepService/ListSteps",
        };
        let step = rng.try_pick(&steps(client, &tasks, rpc).await?).cloned();
        let more = match (self.kind, &task) {
            (Kind::ImportEdited, Some(task)) => {
                let request = json!({"guid": task["guid"]});
                read(client, "TaskService/ExportTask", request, "document").await?
            }
            (Kind::TranslateAutomatically, _) => {
                let rpc = "TranslationService/ListTranslationWork";
                let request = json!({"languages": ["fr", "nl"]});
                read(client, rpc, request, "work").await?
            }
            _ => Value::Null,
        };
        let other = rng.try_pick(&tasks).cloned();
        let request = self.request(&text_of(number), [task, other, step], more, rng);
        Ok(request.map(|(rpc, request)| Call::new(rpc, request)))
    }

    fn request(
        &self,
        text: &str,
        [task, other, step]: [Option<Value>; 3],
        more: Value,
        rng: &mut Rng,
    ) -> Option<(&'static str, Value)> {
        let request_id = rng.one_in(2).then(unknown_guid);
        Some(match self.kind {
            Kind::CreateTask => {
                let translations = json!({"de": {"name": "Aufgabe"}});
                let task = json!({
                    "name": text, "product_id": PRODUCT, "dependencies": conditions(rng),
                    "translations": rng.pick(&[translations, json!({})]),
                });
                let request = json!({"task": task, "request_id": request_id});
                ("TaskService/CreateTask", request)
            }
            Kind::UpdateTask => {
                let row = json!({"name": text, "locked": rng.one_in(2)});
                let task = json!({
                    "guid": task?["guid"], "name": text, "published": rng.below(2),
                    "external_id": rng.pick(&EXTERNAL_IDS), "dependencies": conditions(rng),
                    "translations": {"fr": row},
                });
                let request = json!({"task": task, "update_mask": mask(rng, TASK_MASKS)});
                ("TaskService/UpdateTask", request)
            }
            Kind::DeleteTask => {
                let request = json!({"guid": task?["guid"], "force": rng.one_in(2)});
                ("TaskService/DeleteTask", request)
            }
            Kind::ImportGuide => {
                let steps = [3, 0].map(|kind| new_step(rng, kind, &Value::Null));
                let task = json!({"name": text, "product_id": PRODUCT});
                let request = json!({"document": {"task": task, "steps": steps}});
                ("TaskService/ImportTask", request)
            }
            Kind::ImportEdited => {
                task?;
                let mut document = more;
                for _ in 0..=rng.below(4) {
                    edit(rng, &mut document, "");
                }
                let absent = ["UNSPECIFIED", "KEEP", "DELETE"];
                let absent = format!("ABSENT_STEPS_{}", rng.pick(&absent));
                let request = json!({"document": document, "absent_steps": absent});
                ("TaskService/ImportTask", request)
            }
            Kind::AppendStep => {
                let mut step = new_step(rng, 0, &Value::Null);
                step["task"] = task?["guid"].take();
                step["body"] = json!(text);
                let request = json!({"step": step, "request_id": request_id});
                ("StepService/CreateStep", request)
            }
            Kind::InsertStep => {
                let (kind, step) = (rng.below(3), step?);
                let mut new = new_step(rng, kind, &other?);
                new["task"] = step["task"].clone();
                let prevstep = match rng.one_in(8) {
                    true => json!(unknown_guid()),
                    false => step["guid"].clone(),
                };
                let request = json!({"step": new, "prevstep": prevstep});
                ("StepService/CreateStep", request)
            }
            Kind::UpdateStep => {
                let other = other?;
                let rows = json!({"fr": {"title": text, "locked": rng.one_in(2)}});
                let step = json!({
                    "guid": step?["guid"], "title": text, "body": rng.pick(&[None, Some(text)]),
                    "external_id": rng.pick(&EXTERNAL_IDS), "dependencies": conditions(rng),
                    "feedback_config": new_step(rng, 2, &other)["feedback_config"],
                    "translations": rng.pick(&[rows, json!({})]), "subtask_id": other["guid"],
                    "subtask_external_id": other["external_id"],
                });
                let request = json!({"step": step, "update_mask": mask(rng, STEP_MASKS)});
                ("StepService/UpdateStep", request)
            }
            Kind::UpdateQuestion => {
                let at = "/steps/0/feedback_config/0";
                let mut guide = json!({ "steps": [step?] });
                guide.pointer(at)?;
                for _ in 0..=rng.below(4) {
                    edit(rng, &mut guide, at);
                }
                // Documents are for imports.
                for value in guide.pointer_mut(at)?["values"].as_array_mut()? {
                    value["task_json"].take();
                }
                let step = guide["steps"][0].take();
                let request = json!({"step": step, "update_mask": ["feedback_config"]});
                ("StepService/UpdateStep", request)
            }
            Kind::DeleteStep => ("StepService/DeleteStep", json!({"guid": step?["guid"]})),
            Kind::RestoreStep => {
                let request = json!({"guid": step?["step"]["guid"]});
                ("StepService/RestoreStep", request)
            }
            Kind::TranslateAutomatically => {
                let translations = more.as_array()?.iter().map(|work| {
                    let is_task = work["kind"] == "TRANSLATION_KIND_TASK";
                    let field = if is_task { "name" } else { "title" };
                    json!({
                        "guid": work["guid"], "language": work["language"],
                        "source_digest": work["source_digest"], (field): text,
                    })
                });
                let request = json!({"translations": translations.collect::<Value>()});
                ("TranslationService/WriteTranslations", request)
            }
            Kind::CreateRole => ("RoleService/CreateRole", json!({"role": {"name": text}})),
            Kind::DeleteRole => ("RoleService/DeleteRole", json!({"id": 1 + rng.below(3)})),
        })
    }
}

fn mask(rng: &mut Rng, masks: &str) -> Value {
    let masks: Vec<&str> = masks.split(' ').collect();
    rng.pick(&masks).split(',').collect()
}

/// Each text has a length of its own, which sizes depend on.
fn text_of(number: usize) -> String {
    format!("text {}", "x".repeat(number))
}

/// None, or up to three conditions, some of them in a group with another one.
fn conditions(rng: &mut Rng) -> Value {
    let mut nodes = Vec::new();
    for _ in 0..rng.below(4) {
        let (path, variable) = *rng.pick(&READ);
        let targets = json!([["5"], [5.0], ["yes"], [true], ["true"]]);
        let targets = &targets[rng.below(5)];
        let operator = rng.pick(&["=", "!=", ">", "<"]);
        let condition = json!({
            "path": path, "variable": variable, "operator": operator, "targets": targets,
        });
        let node = json!({ "condition": condition });
        let other = json!({"condition": {"variable": "other", "operator": "=", "targets": ["1"]}});
        nodes.push(match rng.one_in(2) {
            true => json!({"group": {"operator": "LOGICAL_OPERATOR_OR", "nodes": [other, node]}}),
            false => node,
        });
    }
    match nodes.is_empty() {
        true => Value::Null,
        false => json!({"operator": "LOGICAL_OPERATOR_AND", "nodes": nodes}),
    }
}

/// An information step, a reference to the other task, a question, or a linked one.
fn new_step(rng: &mut Rng, kind: usize, other: &Value) -> Value {
    let mut step = match kind {
        0 => json!({"type": "STEP_TYPE_INFORMATION", "title": "note"}),
        1 => json!({
            "type": "STEP_TYPE_SUBTASK", "subtask_id": other["guid"],
            "subtask_pid": other["product_id"],
        }),
        _ => {
            let key = rng.pick(&["true", "no"]);
            let mut question = json!({
                "name": rng.pick(&OWN), "type": "enum",
                "values": [{"key": "5", "value": "Five"}, {"key": key, "value": key}],
            });
            if kind == 3 {
                question["linked"] = json!(true);
                let steps = [new_step(rng, 0, other)];
                question["values"][0]["task_json"] = json!({ "steps": steps });
            }
            let title = "What is it?";
            json!({"type": OBSERVATION, "title": title, "feedback_config": [question]})
        }
    };
    step["product_id"] = json!(PRODUCT);
    step["dependencies"] = conditions(rng);
    step
}

/// Pointers to a document, its task, its lists of steps, questions and answers, and their items.
fn collect_places(value: &Value, at: &str, places: &mut Vec<String>) {
    const NAMES: [&str; 5] = ["task", "steps", "feedback_config", "values", "task_json"];
    match value {
        Value::Array(items) => {
            places.push(at.to_owned());
            for (index, item) in items.iter().enumerate() {
                collect_places(item, &format!("{at}/{index}"), places);
            }
        }
        // The steps of a task are ids.
        Value::Object(_) if at.ends_with("/task") => places.push(at.to_owned()),
        Value::Object(members) => {
            places.push(at.to_owned());
            for (name, value) in members.iter().filter(|(name, _)| NAMES.contains(&&***name)) {
                collect_places(value, &format!("{at}/{name}"), places);
            }
        }
        _ => {}
    }
}

/// Edits the guide at a place at or below this pointer.
fn edit(rng: &mut Rng, guide: &mut Value, root: &str) {
    let mut places = Vec::new();
    collect_places(guide.pointer(root).expect("a place"), root, &mut places);
    let at = rng.pick(&places);
    let mut names = at.rsplit('/');
    let name = names.find(|name| name.parse::<usize>().is_err());
    // What is around the list of an item.
    let outer = at.rsplitn(3, '/').nth(2).unwrap_or_default();
    let outer = guide.pointer(outer).cloned().unwrap_or_default();
    let mut one = |end: &str| {
        let found: Vec<&String> = places.iter().filter(|it| it.ends_with(end)).collect();
        let found = rng.try_pick(&found).and_then(|at| guide.pointer(at));
        found.cloned().unwrap_or_default()
    };
    let (task, document) = (one("/task"), one("/task_json"));
    let kind = rng.below(4);
    let new_step = new_step(rng, kind, &guide["task"]);
    let (key, text) = (*rng.pick(&KEYS), *rng.pick(&TEXTS));
    let is_new = |values: &[Value]| values.iter().all(|value| value["key"] != key);
    let is_new_in = |question: &Value| is_new(question["values"].as_array().unwrap_or(&vec![]));
    let change = rng.below(4);
    let place = guide.pointer_mut(at).expect("a place");
    match (name.unwrap_or_default(), place) {
        ("feedback_config", Value::Array(questions)) => questions.clear(),
        (_, Value::Array(items)) if items.is_empty() => {}
        (name, Value::Array(items)) => {
            let (index, other) = (rng.below(items.len()), rng.below(items.len()));
            match change {
                0 if name == "steps" || items.len() > 1 => drop(items.remove(index)),
                1 => items.swap(index, other),
                2 => items.reverse(),
                _ if name == "steps" => items.insert(index, new_step),
                _ if is_new(items) => items.insert(index, json!({"key": key, "value": text})),
                _ => {}
            }
        }
        ("" | "task_json", document) => match document["steps"].as_array_mut() {
            Some(steps) => steps.push(new_step),
            None => document["steps"] = json!([new_step]),
        },
        ("task", task) if change == 0 => task["guid"] = json!(""),
        ("task", task) => task["name"] = json!(text),
        ("steps", step) if step["type"] == "STEP_TYPE_SUBTASK" && change > 0 => {
            step["subtask_id"] = task["guid"].clone();
            step["subtask_pid"] = task["product_id"].clone();
            step["subtask_external_id"].take();
        }
        ("steps", step) => step["guid"] = json!(""),
        // No other step can be linked.
        ("feedback_config", question) if outer["type"] == OBSERVATION => {
            question["linked"] = json!(question["linked"] != true);
        }
        ("values", value) => match change {
            0 if is_new_in(&outer) => value["key"] = json!(key),
            1 => value["value"] = json!(text),
            2 if outer["linked"] == true && document.is_null() => {
                value["task_json"] = json!({ "steps": [new_step] });
            }
            2 if outer["linked"] == true => value["task_json"] = document,
            _ => drop(value["task_json"].take()),
        },
        _ => {}
    }
}
