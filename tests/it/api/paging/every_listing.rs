//! What holds for each rpc with pages: sizes, order, and which tokens are valid. `pages` of
//! `tests/calls.json` has a request for the first page of each listing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tonic::Status;

use crate::{
    kit::{
        calls::response,
        catalogue::{Entry, Values, catalogue, changed},
        contract::{self, message_of, methods},
    },
    prelude::*,
};

const READ: &str = "components.7.first";

/// A listing of an account.
struct Listing {
    call: &'static str,
    request: Value,
    /// The field of its response that holds the items.
    items: &'static str,
}

/// Each listing of the account.
fn listings(account: &Values) -> Vec<Listing> {
    let of_call = |(call, entry): (&'static String, &'static Entry)| {
        let pages = entry.pages.iter();
        pages.flat_map(|pages| {
            pages.of.iter().map(|request| Listing {
                call,
                request: catalogue().expand(request, account),
                items: &pages.items,
            })
        })
    };
    catalogue().calls.iter().flat_map(of_call).collect()
}

/// What stands for the guides of listings: one with items, one with revisions, and another.
fn values(guide: &str, kept: &str, other: &str) -> Values {
    let values = [("guide", guide), ("kept", kept), ("other", other)];
    values
        .map(|(name, guid)| (name.to_owned(), json!(guid)))
        .into()
}

/// Fills the account so that each listing has more than `count` items.
async fn fill(client: &Client, count: usize) -> Values {
    fill_unequally(client, count, count).await
}

/// The same, but listings that take a call for each item have more than `slow` items.
async fn fill_unequally(client: &Client, count: usize, slow: usize) -> Values {
    let reads = vec![when(READ, "=", "on"); count];
    let answers = (0..count).map(|n| answer(&format!("key {n}"), &format!("Text {n}")));
    let steps = vec![
        observation_asking(linked_question(answers.collect())),
        document_step(StepType::Information, "Reads").depending_on(any_of(reads)),
    ];
    let guide = client.given_guide(steps).await;
    let referring = vec![subtask(&Task::default(), &guide); count + 1];
    client.imported(document("Referring", referring)).await;
    for n in 0..=slow {
        client.given_role(&format!("role {n}")).await;
    }
    let kept = client.given_task(task("Kept")).await;
    let keep = async |n| {
        client.rename(&kept.guid, format!("Kept {n}")).await;
        client.kept_revision(&kept.guid).await;
    };
    let delete = async || {
        let deleted = client.given_task(task("Deleted")).await;
        client.delete_task(&deleted.guid).await.accepted();
    };
    for n in 0..=slow {
        tokio::join!(keep(n), delete());
    }
    let steps = vec![document_step(StepType::Information, "Step"); count + slow + 2];
    let steps = client.imported(document_of(&kept.guid, steps)).await.steps;
    for step in &steps[..=slow] {
        client.delete_step(step).await.accepted();
    }
    let other = client.given_task(task("Other")).await;
    values(&guide.guid, &kept.guid, &other.guid)
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
        let page = json!({ "page_size": size, "page_token": token });
        let request = contract::request(self.call, changed(self.request.clone(), &page));
        self.send(client, request).await
    }

    async fn send(
        &self,
        client: &Client,
        request: Vec<u8>,
    ) -> Result<(Vec<Value>, String), Status> {
        let answer = client.send_bytes(self.call, request.into()).await?;
        let mut response = response(self.call, &answer);
        let items = response[self.items].take();
        let token = response["next_page_token"].as_str();
        Ok((
            items.as_array().cloned().unwrap_or_default(),
            token.unwrap_or_default().to_owned(),
        ))
    }

    /// All items in pages of this size, which are full but for the last.
    async fn all(&self, client: &Client, size: i32) -> Vec<Value> {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let (items, next) = self.page(client, size, &token).await.accepted();
            let is_full = items.len() == size as usize;
            let fits = is_full || (next.is_empty() && items.len() < size as usize);
            assert!(fits, "{}: {} items of {size}", self.call, items.len());
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

    async fn refuses(&self, client: &Client, token: &str, why: &str) {
        let refused = self.page(client, 1, token).await;
        self.is_refused(refused, why);
    }

    /// With a value of its own for this field; `None` where the field does not say what is listed.
    fn with_another(&self, field: &str, token: &str, account: &Values) -> Option<Vec<u8>> {
        let other = catalogue().other_listing.get(field);
        let other = other.unwrap_or_else(|| {
            panic!(
                "{}: add {field} to `other_listing` of tests/calls.json",
                self.call
            )
        });
        let other = catalogue().expand(other, account);
        let page = json!({ "page_size": 1, "page_token": token });
        let page = contract::request(self.call, changed(self.request.clone(), &page));
        // Two messages behind each other are one message, in which the later values win.
        (!other.is_null()).then(|| [page, contract::request(self.call, other)].concat())
    }

    fn is_refused<T>(&self, outcome: Result<T, Status>, why: &str) {
        let Err(status) = outcome else {
            panic!("{} accepts the token {why}", self.call);
        };
        let failure = Failure::from(status);
        let violations = failure.violations();
        let expected = [("page_token", "PAGE_TOKEN_INVALID")];
        assert_eq!(violations, expected, "{} {why}: {failure:?}", self.call);
        failure.violates(&expected);
    }
}

#[test]
fn every_rpc_with_pages_is_listed() {
    let paged = |call: &String| {
        let request = message_of(call, "Request");
        request.get_field_by_name("page_token").is_some()
    };
    let paged: BTreeSet<_> = methods().into_iter().filter(paged).collect();
    let listed = listings(&values("", "", "")).into_iter();
    let listed = listed.map(|listing| listing.call.to_owned());
    let listed: BTreeSet<_> = listed.collect();
    assert_eq!(listed, paged, "calls with `pages` in tests/calls.json");
}

#[apply(on_one_database)]
async fn pages_have_50_items_if_not_asked_and_500_at_most(client: Client) {
    let account = fill_unequally(&client, 501, 51).await;
    expect_default_and_largest_pages(&client, account, 51).await;
}

#[apply(slow_on_both_databases)]
async fn pages_of_every_listing_have_500_items_at_most(client: Client) {
    let account = fill(&client, 501).await;
    expect_default_and_largest_pages(&client, account, 500).await;
}

async fn expect_default_and_largest_pages(client: &Client, account: Values, least: usize) {
    for listing in listings(&account) {
        let call = listing.call;
        let page = async |size, token: &str| listing.page(client, size, token).await.accepted();
        assert_eq!(page(0, "").await.0.len(), 50, "{call}");
        let whole = listing.all(client, 500).await;
        assert!(whole.len() >= least, "{call}: {}", whole.len());
        for size in [501, i32::MAX] {
            assert!(
                page(size, "").await.0 == whole[..whole.len().min(500)],
                "{call}"
            );
        }
        assert!(listing.all(client, 199).await == whole, "{call}");
        // No item is there twice.
        let items: BTreeSet<String> = whole.iter().map(Value::to_string).collect();
        assert_eq!(items.len(), whole.len(), "{call}");
    }
}

#[apply(on_both_databases)]
async fn pages_of_any_size_make_the_same_list(client: Client) {
    let account = fill(&client, 4).await;
    for listing in listings(&account) {
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
    let empty = client.given_task(task("Empty")).await.guid;
    let kept = client.given_task(task("Kept")).await.guid;
    client.kept_revision(&kept).await;
    for mut listing in listings(&values(&empty, &empty, &empty)) {
        let of_guide = ["task", "guid"]
            .iter()
            .any(|it| listing.request.get(it).is_some());
        let client = match listing.call {
            // A task without steps is a finding.
            "AnalysisService/ValidateTask" => continue,
            "RevisionService/CompareRevisions" => {
                listing.request["task"] = json!(kept);
                client.clone()
            }
            _ if of_guide => client.clone(),
            _ => client.other_account(),
        };
        let page = listing.page(&client, 0, "").await.accepted();
        assert_eq!(page, (vec![], String::new()), "{}", listing.call);
    }
}

#[apply(on_one_database)]
async fn a_token_is_valid_for_its_own_listing_alone(client: Client) {
    let stranger = client.other_account();
    let account = fill(&client, 2).await;
    let theirs = fill(&stranger, 2).await;
    let listings = listings(&account);
    for listing in &listings {
        let token = listing.token(&client).await;
        listing.page(&client, 1, &token).await.accepted();
        for altered in altered(&token) {
            listing
                .refuses(&client, &altered, "that nobody gave out")
                .await;
        }
        for (other, theirs) in listings.iter().zip(self::listings(&theirs)) {
            if !std::ptr::eq(listing, other) {
                other.refuses(&client, &token, listing.call).await;
            }
            let of_another = format!("of another account's {}", listing.call);
            theirs.refuses(&stranger, &token, &of_another).await;
        }
        for field in message_of(listing.call, "Request").fields() {
            if let Some(other) = listing.with_another(field.name(), &token, &account) {
                let outcome = listing.send(&client, other).await;
                listing.is_refused(outcome, &format!("of another {}", field.name()));
            }
        }
    }
}

#[apply(on_one_database)]
async fn a_negative_page_size_is_refused_beside_an_invalid_token(client: Client) {
    let unknown = unknown_guid();
    for listing in listings(&values(&unknown, &unknown, &unknown)) {
        for size in [-1, i32::MIN] {
            let refused = listing.page(&client, size, "none").await.refused();
            let violations = refused.violations();
            let expected = [
                ("page_size", "FIELD_OUT_OF_RANGE"),
                ("page_token", "PAGE_TOKEN_INVALID"),
            ];
            assert_eq!(violations, expected, "{}: {refused:?}", listing.call);
        }
    }
}
