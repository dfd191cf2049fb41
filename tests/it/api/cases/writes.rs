//! Writes of a case, and what they change in its account.

use std::collections::BTreeSet;

use prost::Message;
use prost_reflect::{DynamicMessage, Kind};
use serde_json::{Map, Value, json};

use super::{
    account::{Account, GUIDE, mask_path},
    answers::{self, Names},
    notation::{Action, NEW, content, named},
};
use crate::{
    kit::{
        contract::{descriptor, message_of, proto_json},
        failure::{Failure, code_of},
    },
    prelude::{ListDeletedTasksRequest, PRODUCT},
};

/// The fields by id of each task, followed by those of its steps.
pub type Contents = Vec<(String, Map<String, Value>)>;

/// Fields that the system sets with every change.
const VERSION: [&str; 2] = ["etag", "modified_ts"];

impl Account {
    /// The lines of the answer to a write. They say what it has changed if the case expects any.
    pub async fn write(&mut self, action: &Action) -> Vec<String> {
        let before = match self.seen.take() {
            Some(contents) => contents,
            None => self.contents().await,
        };
        let (call, request) = self.request(action).await;
        let answer = self.send(&call, request.clone()).await;
        let after = self.contents().await;
        for (id, _) in &after {
            if !self.ids.values().any(|known| known == id) {
                let new = self.ids.keys().filter(|name| name.starts_with(NEW));
                let name = format!("{NEW}{}", new.count() + 1);
                let sent = request.to_string();
                assert!(!sent.contains(id), "{name} has an id of the caller: {sent}");
                self.ids.insert(name, id.clone());
            }
        }
        let names = Names {
            ids: &self.ids,
            document: None,
        };
        let changes = changes(&names, &before, &after, &request);
        for (id, _) in gone(&before, &after) {
            self.assert_gone(id).await;
        }
        let deleted = self.client.list(ListDeletedTasksRequest::default()).await;
        for latest in deleted.iter().filter_map(|deleted| deleted.latest.as_ref()) {
            let is_there = after.iter().any(|(id, _)| *id == latest.task);
            assert!(!is_there, "listed as deleted: {latest:?}");
        }
        self.seen = Some(after);
        let response = match answer {
            Ok(response) => proto_json(&response),
            Err(failure) => {
                failure.is(code_of(failure.reason()), failure.reason());
                self.assert_fits(&failure);
                let mut lines = answers::refused(&names, &failure);
                if action.asks_for("hints") {
                    let violations = failure.violations().into_iter();
                    let mut said: Vec<&str> = violations
                        .map(|(path, _)| failure.description_of(path))
                        .collect();
                    if said.is_empty() {
                        said.push(&failure.message);
                    }
                    lines.extend(
                        said.iter()
                            .map(|said| format!("says {}", names.within(said))),
                    );
                }
                lines.extend(changes);
                return lines;
            }
        };
        for name in ["task", "step"] {
            self.assert_is_stored(&response[name], request.get("validate_only").is_some());
        }
        let of_task = request.get("task").or(request.get("guid"));
        let revision = &response["revision"]["revision"];
        let revision = revision.as_str().or(response["previous_revision"].as_str());
        if let ("keep" | "delete", Some(id), Some(revision)) =
            (&*action.verb, of_task.and_then(Value::as_str), revision)
        {
            self.kept.insert(id.to_owned(), revision.to_owned());
        }
        let mut lines = answers::ignored(&response);
        if !action.expected.is_empty() {
            lines.splice(..0, answers::outcome(&names, &response));
            lines.extend(answers::differences(&names, &response));
            lines.extend(changes);
            if lines.is_empty() {
                lines.push("nothing".to_owned());
            }
        }
        lines
    }

    /// Asserts that a task or step of a response is as it is stored, unless nothing was.
    fn assert_is_stored(&self, shown: &Value, is_dry_run: bool) {
        let mut stored = self.seen.iter().flatten();
        let stored = stored.find(|(id, _)| shown["guid"] == **id);
        if let (Value::Object(shown), Some((_, stored)), false) = (shown, stored, is_dry_run) {
            assert_eq!(shown, stored, "the response differs from what is stored");
        }
    }

    /// Asserts that an id that is taken is said to be that of a task or of a step.
    fn assert_fits(&self, failure: &Failure) {
        let resource = failure.details.resource_info();
        let known = resource.filter(|it| self.ids.values().any(|id| *id == it.resource_name));
        if let (Some(resource), "EXTERNAL_ID_TAKEN") = (known, failure.reason()) {
            let is_step = self.steps.contains(&resource.resource_name);
            let kind = if is_step { "Step" } else { "Task" };
            assert_eq!(resource.resource_type, format!("expertise.v1.{kind}"));
        }
    }

    /// Asserts that no task or step has this id.
    async fn assert_gone(&self, id: &str) {
        let (call, reason) = match self.steps.contains(id) {
            true => ("StepService/GetStep", "STEP_NOT_FOUND"),
            false => ("TaskService/GetTask", "TASK_NOT_FOUND"),
        };
        match self.send(call, json!({"guid": id})).await {
            Ok(found) => panic!("still there: {found:?}"),
            Err(failure) => failure.is(code_of(reason), reason),
        };
    }

    /// The call of a write, and its request.
    async fn request(&self, action: &Action) -> (String, Value) {
        let subject = action.subject();
        let id = match subject.is_empty() {
            true => Some(&self.ids[GUIDE]),
            false => self.ids.get(&subject),
        };
        let is_step = id.is_some_and(|id| self.steps.contains(id));
        let kind = if is_step { "Step" } else { "Task" };
        let kept = id.and_then(|id| self.kept.get(id));
        let resource = kind.to_lowercase();
        let (call, mut request) = match (action.verb.as_str(), kind) {
            ("import", _) => (
                "TaskService/ImportTask".to_owned(),
                json!({"document": self.document(action, id).await}),
            ),
            ("create", _) if action.steps.is_empty() => {
                let name = action.words[1..].join(" ");
                let task = named(content(action.fields.clone()), &name);
                return ("TaskService/CreateTask".to_owned(), json!({"task": task}));
            }
            ("create", _) => ("StepService/CreateStep".to_owned(), json!({"step": {}})),
            ("edit", _) => (
                format!("{kind}Service/Update{kind}"),
                json!({&resource: {"guid": id}}),
            ),
            ("delete", _) => (format!("{kind}Service/Delete{kind}"), json!({"guid": id})),
            ("restore", "Step") => ("StepService/RestoreStep".to_owned(), json!({"guid": id})),
            ("restore", _) => (
                "RevisionService/RestoreRevision".to_owned(),
                json!({"task": id, "revision": kept}),
            ),
            ("keep", _) => (
                "RevisionService/CreateRevision".to_owned(),
                json!({"task": id}),
            ),
            _ => (
                "RevisionService/CompareRevisions".to_owned(),
                json!({"task": id, "base": kept, "page_size": 500}),
            ),
        };
        let descriptor = message_of(&call, "Request");
        request
            .as_object_mut()
            .expect("a request")
            .retain(|name, _| descriptor.get_field_by_name(name).is_some());
        let step = action.steps.first().filter(|_| action.verb == "create");
        let step = step.and_then(Value::as_object);
        let mut own = Map::new();
        for (name, value) in step.unwrap_or(&action.fields) {
            match descriptor.get_field_by_name(name).map(|it| it.kind()) {
                Some(Kind::Enum(values)) if value.is_string() => {
                    let end = format!("_{}", value.as_str().unwrap_or_default());
                    let mut values = values.values();
                    let value = values.find(|value| value.name().ends_with(&end));
                    request[name] = json!(value.expect("a value of the field").name());
                }
                // The number of a revision.
                Some(Kind::String) if value.is_number() => request[name] = json!(value.to_string()),
                Some(_) => request[name] = value.clone(),
                None => drop(own.insert(name.clone(), value.clone())),
            }
        }
        if action.verb == "create" {
            own.entry("task").or_insert(json!(self.ids[GUIDE]));
            request["step"] = own.into();
        } else if action.verb == "edit" {
            if request.get("update_mask").is_none() {
                let paths = own.keys().filter(|name| *name != "etag");
                let paths = paths.map(|name| mask_path(kind, name));
                request["update_mask"] = json!(paths.collect::<Vec<String>>().join(","));
            }
            let guid = request[&resource].take();
            request[&resource] = content(own);
            request[&resource]["guid"] = guid["guid"].clone();
        }
        (call, request)
    }

    /// The document of an import: the listed steps, or the exported guide with their changes.
    async fn document(&self, action: &Action, id: Option<&String>) -> Value {
        let Some(id) = id else {
            let name = action.task["name"].as_str().unwrap_or(GUIDE).to_owned();
            let mut document =
                json!({"task": named(action.task.clone(), &name), "steps": action.steps});
            name_resources(&mut document);
            return document;
        };
        let mut task = action.task.clone();
        if !action.asks_for("exported") {
            task["guid"] = json!(id);
            let mut document = json!({"task": task, "steps": action.steps});
            name_resources(&mut document);
            return document;
        }
        let exported = self.client.exported(id).await;
        let mut document = fields_of("TaskDocument", &exported).into();
        change(&mut document, id, &task);
        for step in &action.steps {
            match step["@"].as_str() {
                Some(name) => {
                    let mut step = step.clone();
                    step.as_object_mut().expect("a step").remove("@");
                    name_resources(&mut step);
                    assert!(change(&mut document, &self.ids[name], &step), "no {name}");
                }
                None => {
                    let steps = document["steps"].as_array_mut();
                    steps.expect("steps").push(step.clone());
                }
            }
        }
        document
    }

    pub async fn contents(&mut self) -> Contents {
        let mut contents = Vec::new();
        for (task, steps) in self.client.tasks_with_steps().await {
            contents.push((task.guid.clone(), fields_of("Task", &task)));
            for step in &steps {
                self.steps.insert(step.guid.clone());
                contents.push((step.guid.clone(), fields_of("Step", step)));
            }
        }
        contents
    }
}

fn fields_of(name: &str, message: &impl Message) -> Map<String, Value> {
    let message = DynamicMessage::decode(descriptor(name), &*message.encode_to_vec());
    match proto_json(&message.expect("the message")) {
        Value::Object(fields) => fields,
        other => panic!("no message: {other}"),
    }
}

/// Gives the steps that are named by `@NAME` its id, unless they have one.
fn name_resources(value: &mut Value) {
    if let Some(name) = value.get("@").and_then(Value::as_str).map(str::to_owned) {
        let step = value.as_object_mut().expect("a step");
        step.remove("@");
        step.entry("guid").or_insert(json!(format!("@{name}")));
    }
    match value {
        Value::Array(values) => values.iter_mut().for_each(name_resources),
        Value::Object(members) => members.values_mut().for_each(name_resources),
        _ => {}
    }
}

/// Changes the task or step with the id in a document; whether it has one. `null` removes a field,
/// and `gone` the step.
fn change(value: &mut Value, id: &str, changes: &Value) -> bool {
    let is_it = |value: &Value| value["guid"] == *id;
    match value {
        Value::Array(values) => {
            let gone = values.iter().position(is_it);
            if let Some(at) = gone.filter(|_| changes.get("gone").is_some()) {
                values.remove(at);
                return true;
            }
            values.iter_mut().any(|value| change(value, id, changes))
        }
        Value::Object(_) if is_it(value) => {
            for (name, field) in changes.as_object().into_iter().flatten() {
                value[name] = field.clone();
            }
            true
        }
        Value::Object(members) => members.values_mut().any(|value| change(value, id, changes)),
        _ => false,
    }
}

/// A line for each task and step that is new, changed or gone. Asserts that exactly what has
/// changed has a new version.
fn changes(names: &Names<'_>, before: &Contents, after: &Contents, request: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let request = request.to_string();
    for (id, fields) in after {
        let known = before.iter().find(|(known, _)| known == id);
        let usual = usual_fields();
        let old = known.map_or(&usual, |(_, fields)| fields);
        let own: &[&str] = match known {
            Some(_) => &VERSION,
            // A task lists its steps, and ids and times differ.
            None => &[
                "etag",
                "modified_ts",
                "created_ts",
                "guid",
                "account_id",
                "dirty_record",
                "task",
            ],
        };
        let fields_of_both: BTreeSet<&String> = old.keys().chain(fields.keys()).collect();
        let kind = fields["type"].as_str().unwrap_or_default();
        let mut line = String::new();
        for name in fields_of_both {
            let (old, new) = (old.get(name), fields.get(name));
            if old != new
                && !own.contains(&name.as_str())
                && (known.is_some() || new.is_some() || is_on_each(name, kind))
            {
                line += &answers::field(names, name, new.unwrap_or(&Value::Null));
            }
        }
        match known {
            None => {
                assert_is_made_by_the_server(fields, &request);
                lines.push(format!("+ {}{line}", names.of(id)));
            }
            Some((_, old)) => {
                let name = names.of(id);
                for version in VERSION {
                    assert_eq!(
                        old[version] == fields[version],
                        line.is_empty(),
                        "{name}{line}"
                    );
                }
                lines.extend((!line.is_empty()).then(|| format!("{name}{line}")));
            }
        }
    }
    lines.extend(gone(before, after).map(|(id, _)| format!("- {}", names.of(id))));
    lines
}

/// The tasks and steps that are no longer there.
fn gone<'a>(
    before: &'a Contents,
    after: &'a Contents,
) -> impl Iterator<Item = &'a (String, Map<String, Value>)> {
    let is_gone = |(id, _): &&(String, _)| after.iter().all(|(known, _)| known != id);
    before.iter().filter(is_gone)
}

/// Asserts that nothing that the system sets was taken from the request that made the resource.
fn assert_is_made_by_the_server(fields: &Map<String, Value>, request: &str) {
    let etag = fields["etag"].to_string();
    assert!(etag.len() > 2 && !request.contains(&etag), "{fields:?}");
    for time in ["created_ts", "modified_ts"] {
        assert!(fields[time].as_str() > Some("2025"), "{fields:?}");
    }
    assert_eq!(fields["dirty_record"], true, "{fields:?}");
}

/// Whether each new task or step of this type has the usual field.
fn is_on_each(name: &str, kind: &str) -> bool {
    match name {
        "roles" => kind.starts_with("TASK_"),
        "body" => ["SOLUTION", "INFORMATION", "END", "IDP"]
            .iter()
            .any(|it| kind.ends_with(it)),
        "cost" => kind == "STEP_TYPE_SOLUTION",
        name => ["product_id", "published", "type"].contains(&name),
    }
}

/// Fields of new tasks and steps that need no mention.
fn usual_fields() -> Map<String, Value> {
    let product = PRODUCT.to_string();
    let roles = ["USER", "TECH", "TECH2", "TECH3", "EXPERT", "USER2", "USER3"];
    let roles = roles.map(|role| format!("ACCESS_LEVEL_{role}"));
    let usual = json!({
        "body": "text", "cost": 0, "product_id": product, "published": 1, "roles": roles,
        "subtask_pid": product, "type": "TASK_TYPE_STANDARD",
    });
    usual.as_object().cloned().unwrap_or_default()
}
