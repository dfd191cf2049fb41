//! An account in which a case is run: what its ids stand for, and the calls of the case.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::DynamicMessage;
use serde_json::{Value, json};

use super::{
    answers::{self, Names},
    notation::{Action, named},
    writes::Contents,
};
use crate::{
    kit::{
        contract::{self, descriptor, message_of},
        failure::Failure,
    },
    prelude::Client,
};

/// The name of the task that a case is about.
pub const GUIDE: &str = "Guide";

pub struct Account {
    pub client: Client,
    /// The id of each task and step by its name: `Guide`, `0` for the first step of the guide,
    /// `0.a` for the task of its answer `a`, `0.a/wiring` for the step that enters that task, and
    /// `Other/0` for the first step of another task.
    pub ids: BTreeMap<String, String>,
    /// Every step that was there, by id.
    pub steps: BTreeSet<String>,
    /// What it held after the last write.
    pub seen: Option<Contents>,
    /// The newest revision that was asked for or made by a deletion, by the id of its task.
    pub kept: BTreeMap<String, String>,
}

/// A task with this name, and its steps.
pub type NamedTask = (String, Value, Vec<Value>);

impl Account {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            ids: BTreeMap::new(),
            steps: BTreeSet::new(),
            seen: None,
            kept: BTreeMap::new(),
        }
    }

    /// Creates tasks and then their steps, which may refer to each of the tasks.
    pub async fn create(&mut self, tasks: Vec<NamedTask>) {
        self.seen = None;
        for (name, task, _) in &tasks {
            let task = named(task.clone(), name);
            let made = self
                .accepted("TaskService/CreateTask", json!({"task": task}))
                .await;
            self.ids
                .insert(name.clone(), text(&made["task"], "guid").to_owned());
        }
        for (name, _, steps) in tasks {
            let document = json!({"task": {"guid": self.ids[&name]}, "steps": steps});
            self.accepted("TaskService/ImportTask", json!({"document": document}))
                .await;
            let guid = json!({"guid": self.ids[&name]});
            let export = self.accepted("TaskService/ExportTask", guid).await;
            self.name_steps(&export["document"], &name);
        }
    }

    /// Names the steps of a task and the tasks that its answers manage.
    fn name_steps(&mut self, document: &Value, task: &str) {
        let prefix = if task == GUIDE {
            String::new()
        } else {
            format!("{task}/")
        };
        let mut links: BTreeMap<&str, String> = BTreeMap::new();
        let mut index = 0;
        for step in list(&document["steps"]) {
            let name = match links.get(text(step, "link")) {
                Some(managed) => format!("{managed}/wiring"),
                None => {
                    index += 1;
                    format!("{prefix}{}", index - 1)
                }
            };
            for value in list(&step["feedbackConfig"][0]["values"]) {
                let link = text(value, "link");
                if !link.is_empty() {
                    let managed = format!("{name}.{}", text(value, "key"));
                    self.ids.insert(managed.clone(), link.to_owned());
                    self.name_steps(&value["taskJson"], &managed);
                    links.insert(link, managed);
                }
            }
            self.ids.insert(name, text(step, "guid").to_owned());
        }
    }

    /// The lines of the answer to an action: about a stored task, or about this document.
    pub async fn answer(&self, action: &Action, document: Option<&Value>) -> Vec<String> {
        let names = Names {
            ids: &self.ids,
            document,
        };
        let id = match (action.subject(), document) {
            (_, Some(_)) => "",
            (subject, None) if subject.is_empty() => &self.ids[GUIDE],
            (subject, None) => &self.ids[&subject],
        };
        let mut request = json!({});
        if matches!(action.verb.as_str(), "validate" | "preview") {
            request = match document {
                Some(document) => json!({"document": document, "page_size": 500}),
                None => json!({"guid": id, "page_size": 500}),
            };
        }
        let (options, own) = match action.verb.as_str() {
            "preview" => ("answers", "PreviewTaskRequest"),
            "validate" => ("options", "ValidateTaskRequest"),
            "findings" => ("options", "ListFindingsRequest"),
            _ => ("", "ListReferencesRequest"),
        };
        for (name, value) in action.fields.clone() {
            match descriptor(own).get_field_by_name(&name) {
                Some(_) => request[name] = value,
                None => request[options][name] = value,
            }
        }
        let answer = match action.verb.as_str() {
            "validate" => self.call("AnalysisService/ValidateTask", request).await,
            "findings" => self.all_findings(request).await,
            "preview" => self.call("AnalysisService/PreviewTask", request).await,
            _ => self.call("AnalysisService/ListReferences", request).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return answers::refused(&names, &failure),
        };
        match action.verb.as_str() {
            "validate" | "findings" => {
                let rules = self.accepted("AnalysisService/ListRules", json!({})).await;
                answers::findings(&names, &rules, &answer, action.asks_for("hints"))
            }
            "preview" => answers::preview(&names, &answer),
            _ => answers::references(&names, &answer),
        }
    }

    /// The findings of all pages. On a busy machine, a page may end before it is full.
    async fn all_findings(&self, mut request: Value) -> Result<Value, Failure> {
        let mut found = Vec::new();
        loop {
            let call = self.call("AnalysisService/ListFindings", request.clone());
            let page = call.await?;
            found.extend(page["findings"].as_array().into_iter().flatten().cloned());
            request["page_token"] = page["nextPageToken"].clone();
            if request["page_token"].as_str().is_none_or(str::is_empty) {
                return Ok(json!({"findings": found}));
            }
        }
    }

    async fn accepted(&self, call: &str, request: Value) -> Value {
        let answer = self.call(call, request.clone()).await;
        answer.unwrap_or_else(|failure| panic!("{call} {request}: {failure:?}"))
    }

    async fn call(&self, call: &str, request: Value) -> Result<Value, Failure> {
        let response = self.send(call, request).await?;
        Ok(contract::json(&response))
    }

    /// A call with JSON, in which `@NAME` stands for an id.
    pub async fn send(&self, call: &str, mut request: Value) -> Result<DynamicMessage, Failure> {
        self.replace_names(&mut request);
        let bytes = contract::request(call, request).into();
        let answer = self
            .client
            .send_bytes(call, bytes)
            .await
            .map_err(Failure::from)?;
        let answer = DynamicMessage::decode(message_of(call, "Response"), answer);
        Ok(answer.expect("a response"))
    }

    fn replace_names(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(name) = text.strip_prefix('@') {
                    let id = self.ids.get(name);
                    *text = id
                        .unwrap_or_else(|| panic!("nothing is named {name}"))
                        .clone();
                }
            }
            Value::Array(values) => values
                .iter_mut()
                .for_each(|value| self.replace_names(value)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|value| self.replace_names(value)),
            _ => {}
        }
    }
}

/// The path of a field in the JSON of a mask.
pub fn mask_path(kind: &str, name: &str) -> String {
    if let Some((tag, field)) = name.rsplit_once('.') {
        let field = field.replace("answers", "feedbackConfig");
        return format!("translations.{tag}.{field}");
    }
    let name = if name == "answers" {
        "feedback_config"
    } else {
        name
    };
    let field = descriptor(kind).get_field_by_name(name);
    field.expect("a field").json_name().to_owned()
}

/// A text of a message; empty if it is absent.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The elements of a list; none if it is absent.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
