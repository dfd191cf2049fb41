//! What holds for each rpc with a request id or a dry run.

use std::collections::BTreeSet;

use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use tonic::Status;

use crate::kit::{
    contract::{self, message_of, methods, shown},
    prelude::*,
    snapshot::number_ids,
};

/// A write with requests in JSON.
struct Write {
    call: &'static str,
    request: Value,
    /// Another request, which is accepted, too.
    other: Value,
    refused: Vec<Value>,
}

/// How many writes [`nth_write`] makes.
const WRITES: usize = 9;

/// The writes, for a guide of its own that is made for each.
async fn writes(client: &Client) -> Vec<Write> {
    let mut writes = Vec::new();
    for number in 0..WRITES {
        writes.push(nth_write(client, number).await);
    }
    writes
}

/// Makes a guide with a managed task, a subtask step elsewhere and a revision, and the write.
async fn nth_write(client: &Client, number: usize) -> Write {
    let inner = document("A", document_steps(&["inner"]));
    let question = linked_question(vec![answer("b", "B"), answer_with("a", "A", inner)]);
    let steps = vec![
        observation_asking(question),
        document_step(StepType::End, "end"),
    ];
    let guide = client.imported(document("Before", steps)).await;
    let elsewhere = client.given_task(task("Elsewhere")).await;
    client.given_step(subtask(&elsewhere, &guide)).await;
    client.kept_revision(&guide.guid).await;
    // A new name outdates the translation, and publishing keeps a revision.
    let unlocked = TaskTranslation {
        locked: Some(false),
        ..task_translation("Anleitung")
    };
    let renamed = task_of(&guide.guid).named("Guide").with_published(0);
    let renamed = renamed.translated("de", unlocked);
    let guide = client.updated_task(renamed, &[]).await;
    let lost = task("Lost").with_guid(unknown_guid());
    let absent = lost.guid.as_str();
    let (guid, end) = (guide.guid.as_str(), guide.steps[3].as_str());
    let exported = client.exported(guid).await;
    let without_end = {
        let mut document = exported.clone();
        document.steps.pop();
        document.task = document.task.map(|task| task.named("Again"));
        shown("TaskDocument", &document)
    };
    let import = |document: &TaskDocument| json!({"document": shown("TaskDocument", document)});
    let copy = document("Copy", exported.steps.clone());
    let write = |call, request, other, refused| Write {
        call,
        request,
        other,
        refused,
    };
    match number {
        0 => {
            let new = Task {
                parent_guid: unknown_guid(),
                ..full_task().with_external_id("task")
            };
            write(
                "TaskService/CreateTask",
                json!({"task": shown("Task", &new)}),
                json!({"task": {"name": "Other", "product_id": PRODUCT}}),
                vec![json!({"task": {"name": "", "product_id": PRODUCT}})],
            )
        }
        1 => {
            let new =
                |step: &Step| json!({"step": shown("Step", step), "prevstep": guide.steps[0]});
            write(
                "StepService/CreateStep",
                new(&full_step(&guide).with_external_id("step")),
                new(&full_step(&guide).titled("Other")),
                vec![new(&full_step(&lost)), new(&subtask(&guide, &lost))],
            )
        }
        2 => {
            let named = |guid, name| json!({"task": {"guid": guid, "name": name, "idx": 7, "published": 1}});
            write(
                "TaskService/UpdateTask",
                named(guid, "After"),
                named(guid, "Other"),
                vec![
                    named(absent, "After"),
                    json!({"task": {"guid": guid, "name": "After", "etag": "old"}}),
                ],
            )
        }
        3 => {
            // One answer goes with its task, and the task of the other one gets another name.
            let answered = |text| {
                let config = linked_question(vec![answer("a", text)]);
                json!({"step": shown("Step", &step_of(&guide.steps[0]).with_question(config))})
            };
            write(
                "StepService/UpdateStep",
                answered("After"),
                answered("Other"),
                vec![
                    json!({"step": {"guid": absent, "title": "After"}}),
                    json!({"step": {"guid": end, "title": "After", "etag": "old"}}),
                ],
            )
        }
        4 => write(
            "TaskService/ImportTask",
            import(&copy),
            import(&document("Other", Vec::new())),
            vec![
                import(&document("", Vec::new())),
                import(&document("Lost", vec![subtask(&Task::default(), &lost)])),
            ],
        ),
        5 => {
            let absent = |what: &str| json!({"document": without_end, "absent_steps": what});
            let mut old = absent("ABSENT_STEPS_DELETE");
            let mut old_guide = old.clone();
            old["etag"] = json!("old");
            old_guide["guide_etag"] = json!("old");
            write(
                "TaskService/ImportTask",
                absent("ABSENT_STEPS_DELETE"),
                absent("ABSENT_STEPS_KEEP"),
                vec![absent("ABSENT_STEPS_UNSPECIFIED"), old, old_guide],
            )
        }
        6 => write(
            "TaskService/ImportTask",
            import(&exported),
            import(&document("Other", Vec::new())),
            Vec::new(),
        ),
        7 => {
            let noted = |task, note| json!({"task": task, "note": note});
            write(
                "RevisionService/CreateRevision",
                noted(guid, "one"),
                noted(guid, "other"),
                vec![
                    noted(absent, "one"),
                    json!({"task": guid, "note": "one", "guide_etag": "old"}),
                ],
            )
        }
        _ => {
            let restored = |revision, skip| json!({"task": guid, "revision": revision, "skip_missing_subtasks": skip});
            write(
                "RevisionService/RestoreRevision",
                restored("1", false),
                restored("1", true),
                vec![
                    restored("9", false),
                    json!({"task": guid, "revision": "1", "guide_etag": "old"}),
                ],
            )
        }
    }
}

impl Write {
    fn has(&self, field: &str) -> bool {
        message_of(self.call, "Request")
            .get_field_by_name(field)
            .is_some()
    }

    async fn send(&self, client: &Client, request: &Value) -> Result<Value, Status> {
        let request = contract::request(self.call, request.clone());
        let response = client.send_bytes(self.call, request.into()).await?;
        let response = DynamicMessage::decode(message_of(self.call, "Response"), response);
        Ok(contract::json(&response.expect("a response")))
    }
}

fn with_id(request: &Value, id: &str) -> Value {
    let mut request = request.clone();
    request["request_id"] = json!(id);
    request
}

fn dry(request: &Value) -> Value {
    let mut request = request.clone();
    request["validate_only"] = json!(true);
    request
}

/// Everything that the writes may change.
type Contents = (
    Vec<(Task, Vec<Step>)>,
    Vec<TaskRevision>,
    Vec<TranslationWork>,
);

async fn contents(client: &Client) -> Contents {
    let tasks = client.tasks_with_steps().await;
    let mut revisions = Vec::new();
    for (task, _) in &tasks {
        revisions.extend(client.all_revisions(&task.guid).await);
    }
    (tasks, revisions, client.translation_work(&["de"]).await)
}

/// Changes what the writes have returned.
async fn rename_all(client: &Client) {
    for task in client.all_tasks().await {
        if task.r#type() == TaskType::Standard {
            let renamed = task_of(&task.guid).named("Renamed since");
            client.updated_task(renamed, &["name"]).await;
        }
    }
}

#[apply(on_one_database)]
async fn every_rpc_is_listed_here(client: Client) {
    let writes = writes(&client).await;
    let listed: BTreeSet<String> = writes.iter().map(|write| write.call.to_owned()).collect();
    let safe = methods().into_iter().filter(|call| {
        let request = message_of(call, "Request");
        let fields = ["request_id", "validate_only"];
        fields
            .iter()
            .any(|field| request.get_field_by_name(field).is_some())
    });
    assert_eq!(listed, safe.collect());
}

#[apply(on_both_databases)]
async fn a_request_id_is_done_once(client: Client) {
    let id = unknown_guid();
    let other_call = with_id(
        &json!({"task": {"name": "Task", "product_id": PRODUCT}}),
        &id,
    );
    for number in 0..WRITES {
        let client = client.other_account();
        let write = nth_write(&client, number).await;
        if !write.has("request_id") {
            continue;
        }
        let first = write.send(&client, &with_id(&write.request, &id)).await;
        let first = first.accepted();
        rename_all(&client).await;
        let once = contents(&client).await;
        let again = with_id(&write.request, &id.to_uppercase());
        let again = write.send(&client, &again).await.accepted();
        assert_eq!(again, first, "{}", write.call);
        let other = write.send(&client, &with_id(&write.other, &id)).await;
        other.refused().is_precondition("REQUEST_ID_REUSED");
        let call = contract::request("TaskService/CreateTask", other_call.clone());
        let other = client
            .send_bytes("TaskService/CreateTask", call.into())
            .await;
        other.refused().is_precondition("REQUEST_ID_REUSED");
        if write.has("validate_only") {
            let again = dry(&with_id(&write.request, &id));
            let again = write.send(&client, &again).await.accepted();
            assert_eq!(again, first, "{}", write.call);
            let other = dry(&with_id(&write.other, &id));
            let other = write.send(&client, &other).await.refused();
            other.is_precondition("REQUEST_ID_REUSED");
        }
        assert_eq!(contents(&client).await, once, "{}", write.call);
        let fresh = with_id(&write.other, &unknown_guid());
        write.send(&client, &fresh).await.accepted();
    }
}

#[apply(on_both_databases)]
async fn a_refused_call_does_not_use_up_its_request_id(client: Client) {
    for write in writes(&client).await {
        if write.has("request_id") {
            let id = unknown_guid();
            for refused in &write.refused {
                write.send(&client, &with_id(refused, &id)).await.refused();
            }
            let accepted = write.send(&client, &with_id(&write.request, &id)).await;
            accepted.accepted();
        }
    }
}

/// The response without etags, times, and what a dry run has and a call has not, or the other way
/// round.
fn comparable(mut response: Value) -> String {
    fn remove(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(remove),
            Value::Object(members) => {
                let differ = ["etag", "guideEtag", "createdTs", "modifiedTs", "document"];
                members.retain(|name, _| !differ.contains(&name.as_str()));
                members.remove("previousRevision");
                members.values_mut().for_each(remove);
            }
            _ => {}
        }
    }
    remove(&mut response);
    number_ids(&response.to_string())
}

#[apply(on_both_databases)]
async fn a_dry_run_shows_what_the_call_does_and_stores_nothing(client: Client) {
    for write in writes(&client).await {
        if !write.has("validate_only") {
            continue;
        }
        let request = match write.has("request_id") {
            true => with_id(&write.request, &unknown_guid()),
            false => write.request.clone(),
        };
        let before = contents(&client).await;
        let shown = write.send(&client, &dry(&request)).await.accepted();
        assert_eq!(shown.get("previousRevision"), None, "{}", write.call);
        assert_eq!(contents(&client).await, before, "{}", write.call);
        let done = write.send(&client, &request).await.accepted();
        let changes = done["outcome"] != "IMPORT_OUTCOME_UNCHANGED";
        let changed = contents(&client).await != before;
        assert_eq!(changed, changes, "{}", write.call);
        assert_eq!(comparable(shown), comparable(done), "{}", write.call);
    }
}

#[apply(on_both_databases)]
async fn a_dry_run_is_refused_like_the_call(client: Client) {
    for write in writes(&client).await {
        if write.has("validate_only") {
            for refused in &write.refused {
                let shown = write.send(&client, &dry(refused)).await.refused();
                let done = write.send(&client, refused).await.refused();
                assert_eq!(format!("{shown:?}"), format!("{done:?}"), "{refused}");
            }
        }
    }
}
