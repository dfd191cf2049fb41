//! What holds for each rpc with pages: sizes, order, and which tokens are valid.

use std::collections::BTreeSet;

use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use tonic::Status;

use crate::kit::{
    contract::{self, message_of, methods},
    prelude::*,
};

const READ: &str = "components.7.first";

/// An rpc with pages, a request for its first page in JSON, and the field of its response
/// that holds the items.
struct Listing {
    call: &'static str,
    request: Value,
    items: &'static str,
}

/// Each rpc with pages, for a guide and for a task with revisions; ListReferences twice, as it
/// lists what refers to a task or to a variable.
fn listings(guide: &str, kept: &str) -> Vec<Listing> {
    let listing = |call, request, items| Listing {
        call,
        request,
        items,
    };
    let referring = |to| listing("AnalysisService/ListReferences", to, "references");
    let guid = json!({ "guid": guide });
    vec![
        listing("TaskService/ListTasks", json!({}), "tasks"),
        listing("StepService/ListSteps", json!({ "task": guide }), "steps"),
        listing(
            "StepService/ListDeletedSteps",
            json!({ "task": kept }),
            "steps",
        ),
        listing("RoleService/ListRoles", json!({}), "roles"),
        listing(
            "TranslationService/ListTranslationWork",
            json!({ "languages": ["de"] }),
            "work",
        ),
        listing("AnalysisService/PreviewTask", guid.clone(), "steps"),
        listing("AnalysisService/ValidateTask", guid, "findings"),
        listing("AnalysisService/ListFindings", json!({}), "findings"),
        referring(json!({ "variable": READ })),
        referring(json!({ "task": guide })),
        listing(
            "RevisionService/ListRevisions",
            json!({ "task": kept }),
            "revisions",
        ),
        listing(
            "RevisionService/CompareRevisions",
            json!({ "task": kept, "base": "1" }),
            "steps",
        ),
        listing("RevisionService/ListDeletedTasks", json!({}), "tasks"),
        listing("IndexService/ListIndexWork", json!({}), "work"),
    ]
}

/// A value that no listing has in this field of its request; `None` where the field says
/// nothing of what is listed. A field that is missing here fails by name.
fn other_value(field: &str, other: &Task) -> Option<Value> {
    Some(match field {
        "page_size" | "page_token" | "known_fingerprint" => return None,
        // It is refused but for a document.
        "replaces_stored" => return None,
        "task" | "guid" => json!(other.guid),
        "document" => json!({"task": {"name": "Other", "product_id": 7}}),
        "product_id" => json!(7),
        "external_id" | "name" => json!("Other"),
        "published" | "role" | "level" | "subtask_depth" => json!(1),
        "type" => json!("TASK_TYPE_STANDARD"),
        "expand" => json!(["body"]),
        "languages" => json!(["fr"]),
        "language" => json!("de"),
        "fallback_languages" => json!(["fr"]),
        "answers" => json!({ READ: "on" }),
        "include_unpublished" | "explain" => json!(true),
        "known_variables" => json!(["known"]),
        "options" => json!({"include_unpublished": true}),
        "base" | "target" => json!("2"),
        "variable" => json!("components.7.second"),
        "answer" => json!("on"),
        field => panic!("no other value for {field}"),
    })
}

/// Fills the account so that each listing has more than `count` items. Returns the ids of the
/// guide and of the task with revisions.
async fn fill(client: &Client, count: usize) -> [String; 2] {
    let reads = vec![when(READ, "=", "on"); count];
    let answers = (0..count).map(|n| answer(&format!("key {n}"), &format!("Text {n}")));
    let steps = vec![
        observation_asking(linked_question(answers.collect())),
        document_step(StepType::Information, "Reads").depending_on(any_of(reads)),
    ];
    let guide = client.imported(document("Guide", steps)).await;
    let referring = vec![subtask(&Task::default(), &guide); count + 1];
    client.imported(document("Referring", referring)).await;
    for n in 0..=count {
        client.given_role(&format!("role {n}")).await;
    }
    let kept = client.given_task(task("Kept")).await;
    for n in 0..=count {
        let renamed = task_of(&kept.guid).named(format!("Kept {n}"));
        client.updated_task(renamed, &["name"]).await;
        client.kept_revision(&kept.guid).await;
        let deleted = client.given_task(task("Deleted")).await;
        client.delete_task(&deleted.guid).await.accepted();
    }
    let steps = vec![document_step(StepType::Information, "Step"); count + 1];
    client
        .import(document_of(&kept.guid, steps))
        .await
        .accepted();
    for n in 0..=count {
        let step = information_step(&kept, &format!("Deleted {n}"));
        let step = client.given_step(step).await;
        client.delete_step(&step.guid).await.accepted();
    }
    [guide.guid, kept.guid]
}

/// Tokens that nobody gave out, made of one that somebody did.
fn altered(token: &str) -> Vec<String> {
    let altered = token.char_indices().map(|(at, character)| {
        let other = if character == 'A' { 'B' } else { 'A' };
        let rest = &token[at + character.len_utf8()..];
        format!("{}{other}{rest}", &token[..at])
    });
    let mut tokens: Vec<String> = altered.collect();
    tokens.extend([
        format!("{token}A"),
        token[1..].to_owned(),
        token[..token.len() / 2].to_owned(),
        " ".to_owned(),
        "1".to_owned(),
        "ü🔧".to_owned(),
        "\0".to_owned(),
        "A".repeat(100_000),
    ]);
    tokens
}

impl Listing {
    /// The items of a page, and the token of the next one.
    async fn page(
        &self,
        client: &Client,
        size: i32,
        token: &str,
    ) -> Result<(Vec<Value>, String), Status> {
        let mut request = self.request.clone();
        request["page_size"] = json!(size);
        request["page_token"] = json!(token);
        let request = contract::request(self.call, request);
        let response = client.send_bytes(self.call, request.into()).await?;
        let response = DynamicMessage::decode(message_of(self.call, "Response"), response);
        let response = contract::json(&response.expect("a response"));
        let items = response.get(self.items).and_then(Value::as_array);
        let token = response.get("nextPageToken").and_then(Value::as_str);
        Ok((
            items.cloned().unwrap_or_default(),
            token.unwrap_or_default().to_owned(),
        ))
    }

    /// All items in pages of this size, which are full but for the last.
    async fn all(&self, client: &Client, size: i32) -> Vec<Value> {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let (items, next) = self.page(client, size, &token).await.accepted();
            assert!(items.len() <= size as usize, "{}", self.call);
            assert!(
                next.is_empty() || items.len() == size as usize,
                "{}",
                self.call
            );
            found.extend(items);
            token = next;
            if token.is_empty() {
                return found;
            }
        }
    }

    /// The token after the first item.
    async fn token(&self, client: &Client) -> String {
        let (_, token) = self.page(client, 1, "").await.accepted();
        assert_ne!(token, "", "{}", self.call);
        token
    }

    async fn refuses(&self, client: &Client, token: &str) {
        let refused = self.page(client, 1, token).await.refused();
        refused.violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    }

    fn with(&self, field: &str, value: Value) -> Self {
        let mut request = self.request.clone();
        match field {
            // A request has one source.
            "document" => drop(
                request
                    .as_object_mut()
                    .map(|request| request.remove("guid")),
            ),
            "answer" => request["variable"] = json!(READ),
            _ => {}
        }
        request[field] = value;
        Self { request, ..*self }
    }
}

#[apply(on_one_database)]
async fn every_rpc_with_pages_is_listed_here(_: Client) {
    let paged = |call: &String| {
        let request = message_of(call, "Request");
        request.get_field_by_name("page_token").is_some()
    };
    let paged: BTreeSet<_> = methods().into_iter().filter(paged).collect();
    let listed = listings("", "")
        .into_iter()
        .map(|listing| listing.call.to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), paged);
}

#[apply(on_both_databases)]
async fn pages_of_any_size_make_the_same_list(client: Client) {
    let [guide, kept] = fill(&client, 501).await;
    for listing in listings(&guide, &kept) {
        let call = listing.call;
        let page = async |size, token: &str| listing.page(&client, size, token).await.accepted();
        assert_eq!(page(0, "").await.0.len(), 50, "{call}");
        let whole = listing.all(&client, 500).await;
        for size in [501, i32::MAX] {
            assert!(page(size, "").await.0 == whole[..500], "{call}");
        }
        assert!(listing.all(&client, 199).await == whole, "{call}");
        // No item is there twice.
        let items: BTreeSet<String> = whole.iter().map(Value::to_string).collect();
        assert_eq!(items.len(), whole.len(), "{call}");
    }
    let client = client.other_account();
    let [guide, kept] = fill(&client, 4).await;
    for listing in listings(&guide, &kept) {
        let whole = listing.all(&client, 500).await;
        for size in 1..=5 {
            assert_eq!(listing.all(&client, size).await, whole, "{}", listing.call);
        }
        // Sizes may change between pages; a last page that is full has no token either.
        let (first, rest) = whole.split_at(whole.len() / 2);
        let (items, token) = listing
            .page(&client, first.len() as i32, "")
            .await
            .accepted();
        assert_eq!(items, first, "{}", listing.call);
        let last = listing.page(&client, rest.len() as i32, &token).await;
        let expected = (rest.to_vec(), String::new());
        assert_eq!(last.accepted(), expected, "{}", listing.call);
    }
}

#[apply(on_both_databases)]
async fn an_empty_list_has_no_token(client: Client) {
    let empty = client.given_task(task("Empty")).await;
    for listing in listings(&empty.guid, &empty.guid) {
        let client = match listing.call {
            "StepService/ListSteps" | "AnalysisService/PreviewTask" => client.clone(),
            // A task without steps is a finding.
            "AnalysisService/ValidateTask" => continue,
            "RevisionService/CompareRevisions" => {
                client.kept_revision(&empty.guid).await;
                client.clone()
            }
            _ if listing.request.get("task").is_some() => client.clone(),
            _ => client.other_account(),
        };
        let page = listing.page(&client, 0, "").await.accepted();
        assert_eq!(page, (vec![], String::new()), "{}", listing.call);
    }
}

#[apply(on_one_database)]
async fn a_token_is_valid_for_its_own_listing_alone(client: Client) {
    let stranger = client.other_account();
    let [guide, kept] = fill(&client, 2).await;
    let [their_guide, their_kept] = fill(&stranger, 2).await;
    let other = client.given_task(task("Other")).await;
    let listings = listings(&guide, &kept);
    for listing in &listings {
        let token = listing.token(&client).await;
        listing.page(&client, 1, &token).await.accepted();
        for altered in altered(&token) {
            listing.refuses(&client, &altered).await;
        }
        for (other, theirs) in listings
            .iter()
            .zip(self::listings(&their_guide, &their_kept))
        {
            if !std::ptr::eq(listing, other) {
                other.refuses(&client, &token).await;
            }
            theirs.refuses(&stranger, &token).await;
        }
        let request = message_of(listing.call, "Request");
        for field in request.fields() {
            if let Some(value) = other_value(field.name(), &other) {
                listing
                    .with(field.name(), value)
                    .refuses(&client, &token)
                    .await;
            }
        }
    }
}

#[apply(on_one_database)]
async fn a_negative_page_size_is_refused_beside_an_invalid_token(client: Client) {
    for listing in listings(&unknown_guid(), &unknown_guid()) {
        for size in [-1, i32::MIN] {
            listing
                .page(&client, size, "none")
                .await
                .refused()
                .violates(&[
                    ("page_size", "FIELD_OUT_OF_RANGE"),
                    ("page_token", "PAGE_TOKEN_INVALID"),
                ]);
        }
    }
}
