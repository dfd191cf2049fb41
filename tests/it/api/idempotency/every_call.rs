//! What holds for each rpc with a request id or a dry run, for the requests that `repeat` of
//! `tests/calls.json` names.

use serde_json::{Value, json};

use crate::{
    fixture::{Contents, Fixture, each_call},
    kit::{
        catalogue::{Entry, Refusal, Repeat},
        contract::message_of,
        snapshot::number_ids,
    },
    marks::Mark,
    prelude::*,
};

const REQUEST_ID: &str = "request_id";
const DRY_RUN: &str = "validate_only";

/// A write in its own account.
struct Write {
    call: &'static str,
    entry: &'static Entry,
    repeat: &'static Repeat,
    fixture: Fixture,
    /// Without a request id.
    request: Value,
}

/// Runs a check for each write with this field, in an account with every resource.
async fn each_write(client: &Client, field: &str, check: impl AsyncFn(Write)) {
    each_call(async |call, entry| {
        for repeat in &entry.repeat {
            if has(call, field) {
                check(Write::in_new_account(client, call, entry, repeat).await).await;
            }
        }
    })
    .await;
}

fn has(call: &str, field: &str) -> bool {
    let request = message_of(call, "Request");
    request.get_field_by_name(field).is_some()
}

impl Write {
    async fn in_new_account(
        client: &Client,
        call: &'static str,
        entry: &'static Entry,
        repeat: &'static Repeat,
    ) -> Self {
        let fixture = Fixture::marked(&client.other_account(), None, &Mark::NONE).await;
        let mut request = fixture.request(entry.base(&repeat.request));
        if let Some(members) = request.as_object_mut() {
            members.remove(REQUEST_ID);
        }
        Self {
            call,
            entry,
            repeat,
            fixture,
            request,
        }
    }

    async fn send(&self, request: &Value) -> Result<Value, tonic::Status> {
        self.fixture.send(self.call, request).await
    }

    async fn accepts(&self, request: &Value) -> Value {
        let answer = self.send(request).await;
        answer.unwrap_or_else(|status| panic!("{} {request}: {status:?}", self.call))
    }

    async fn reuses(&self, call: &str, request: &Value) {
        let Err(status) = self.fixture.send(call, request).await else {
            panic!("{call} accepts the request id of another payload: {request}");
        };
        let failure = Failure::from(status);
        assert_eq!(
            failure.reason(),
            "REQUEST_ID_REUSED",
            "{call} {request}: {failure:?}"
        );
        failure.is_precondition("REQUEST_ID_REUSED");
    }

    /// The same with other values.
    fn others(&self) -> impl Iterator<Item = Value> {
        let others = self.repeat.other.iter();
        others.map(|other| self.fixture.changed(&self.request, other))
    }

    /// The requests that are refused instead of this one.
    fn refused(&self) -> impl Iterator<Item = Value> {
        let refused = self.entry.refused.iter();
        let of_this = |refusal: &&Refusal| refusal.request == self.repeat.request;
        let refused = refused.filter(of_this);
        refused.map(|refusal| self.fixture.changed(&self.request, &refusal.change))
    }

    async fn assert_contents(&self, expected: &Contents, what: &str) {
        for (read, after) in self.fixture.contents().await {
            assert_eq!(after, expected[&read], "{} {what}: {read}", self.call);
        }
    }
}

fn with_id(request: &Value, id: &str) -> Value {
    let mut request = request.clone();
    request[REQUEST_ID] = json!(id);
    request
}

fn dry(request: &Value) -> Value {
    let mut request = request.clone();
    request[DRY_RUN] = json!(true);
    request
}

/// Changes what the writes have returned.
async fn rename_all(client: &Client) {
    for task in client.all_tasks().await {
        if task.r#type() == TaskType::Standard {
            client.rename(&task.guid, "Renamed since").await;
        }
    }
}

#[apply(on_one_database)]
async fn every_field_of_a_safe_call_is_repeated_with_another_value(_: Client) {
    each_call(async |call, entry| {
        let is_safe = has(call, REQUEST_ID) || has(call, DRY_RUN);
        assert_eq!(
            !entry.repeat.is_empty(),
            is_safe,
            "{call}: `repeat` of tests/calls.json"
        );
        if has(call, REQUEST_ID) {
            let others = entry.repeat.iter().flat_map(|repeat| &repeat.other);
            let changed: Vec<_> = others.filter_map(Value::as_object).collect();
            for field in message_of(call, "Request").fields() {
                let name = field.name();
                let is_changed = changed.iter().any(|other| other.contains_key(name));
                let is_safe = [REQUEST_ID, DRY_RUN].contains(&name) || is_changed;
                assert!(
                    is_safe,
                    "{call}: no `other` of tests/calls.json changes {name}"
                );
            }
        }
    })
    .await;
}

#[apply(on_both_databases)]
async fn a_request_id_is_done_once_and_not_used_up_by_refused_calls(client: Client) {
    each_write(&client, REQUEST_ID, async |write| {
        let (call, id) = (write.call, unknown_guid());
        for refused in write.refused() {
            let refused = write.send(&with_id(&refused, &id)).await;
            assert!(refused.is_err(), "{call}: {refused:?}");
        }
        let first = write.accepts(&with_id(&write.request, &id)).await;
        rename_all(&write.fixture.client).await;
        let once = write.fixture.contents().await;
        let again = with_id(&write.request, &id.to_uppercase());
        assert_eq!(write.accepts(&again).await, first, "{call}: a retry");
        for other in write.others() {
            write.reuses(call, &with_id(&other, &id)).await;
        }
        let task = json!({"task": {"name": "Task", "product_id": PRODUCT}});
        write
            .reuses("TaskService/CreateTask", &with_id(&task, &id))
            .await;
        if has(call, DRY_RUN) {
            assert_eq!(
                write.accepts(&dry(&again)).await,
                first,
                "{call}: a dry run"
            );
            for other in write.others() {
                write.reuses(call, &dry(&with_id(&other, &id))).await;
            }
        }
        write.assert_contents(&once, "is done again").await;
        let other = write.others().next().expect("another request");
        write.accepts(&with_id(&other, &unknown_guid())).await;
    })
    .await;
}

/// The response without etags, times, and what a dry run has and a call has not, or the other way
/// round.
fn comparable(mut response: Value) -> String {
    fn remove(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(remove),
            Value::Object(members) => {
                let differ = [
                    "etag",
                    "guide_etag",
                    "created_ts",
                    "modified_ts",
                    "document",
                ];
                members.retain(|name, _| !differ.contains(&name.as_str()));
                members.remove("previous_revision");
                members.values_mut().for_each(remove);
            }
            _ => {}
        }
    }
    remove(&mut response);
    number_ids(&response.to_string())
}

#[apply(on_both_databases)]
async fn a_dry_run_shows_or_refuses_what_the_call_does_and_stores_nothing(client: Client) {
    each_write(&client, DRY_RUN, async |write| {
        for refused in write.refused() {
            let shown = write.send(&dry(&refused)).await.refused();
            let done = write.send(&refused).await.refused();
            let (shown, done) = (format!("{shown:?}"), format!("{done:?}"));
            assert_eq!(shown, done, "{} {refused}", write.call);
        }
        let request = match has(write.call, REQUEST_ID) {
            true => with_id(&write.request, &unknown_guid()),
            false => write.request.clone(),
        };
        let before = write.fixture.contents().await;
        let shown = write.accepts(&dry(&request)).await;
        assert_eq!(shown.get("previous_revision"), None, "{}", write.call);
        write.assert_contents(&before, "stores in a dry run").await;
        let done = write.accepts(&request).await;
        let changes = done["outcome"] != "IMPORT_OUTCOME_UNCHANGED";
        let changed = write.fixture.contents().await != before;
        assert_eq!(changed, changes, "{}", write.call);
        assert_eq!(comparable(shown), comparable(done), "{}", write.call);
    })
    .await;
}
