//! Accounts with what the requests of the [catalogue] need, and what can be read in them.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use futures_util::{FutureExt, StreamExt, future::ready, stream};
use serde_json::Value;
use tonic::Status;

use crate::kit::{
    calls::{prepare, response},
    catalogue::{Entry, Values, catalogue, changed, entry},
    client::Client,
    contract,
};
use crate::marks::Mark;

/// How many calls are tested concurrently, each in its own accounts.
const CONCURRENT: usize = 6;

/// Runs a check for every call of the catalog. A failure does not stop the others.
pub async fn each_call(check: impl AsyncFn(&'static str, &'static Entry)) {
    let checks = stream::iter(&catalogue().calls).map(|(call, entry)| {
        let check = AssertUnwindSafe(check(call, entry)).catch_unwind();
        async move { check.await.is_err().then_some(call.as_str()) }
    });
    let failed = checks.buffer_unordered(CONCURRENT).filter_map(ready);
    let failed: Vec<&str> = failed.collect().await;
    assert!(failed.is_empty(), "failed, as said above: {failed:?}");
}

/// An account with what requests need.
pub struct Fixture {
    pub client: Client,
    pub values: Values,
}

impl Fixture {
    /// Makes in a new account what this request needs.
    pub async fn of(client: &Client, request: &Value) -> Self {
        Self::marked(&client.other_account(), Some(request), &Mark::NONE).await
    }

    /// Makes in the account what this request needs, or else every resource.
    pub async fn marked(client: &Client, request: Option<&Value>, mark: &Mark) -> Self {
        let send = async |call: &str, message| client.send_bytes(call, message).await;
        let values = prepare(request, |call, it| mark.message(call, it), send).await;
        let client = client.clone();
        Self { client, values }
    }

    /// Makes what a request of an entry needs, and the request.
    pub async fn with_request(client: &Client, call: &str, name: &str) -> (Self, Value) {
        let base = entry(call).base(name);
        let fixture = Self::of(client, base).await;
        let request = fixture.request(base);
        (fixture, request)
    }

    /// The request with what its placeholders stand for.
    pub fn request(&self, base: &Value) -> Value {
        catalogue().expand(base, &self.values)
    }

    /// The request after a merge patch.
    pub fn changed(&self, request: &Value, change: &Value) -> Value {
        changed(request.clone(), &self.request(change))
    }

    pub async fn send(&self, call: &str, request: &Value) -> Result<Value, Status> {
        let message = contract::request(call, request.clone()).into();
        let answer = self.client.send_bytes(call, message).await?;
        Ok(response(call, &answer))
    }

    /// What the account, which has every resource, can read, except the end of its changes. Lists are
    /// read whole.
    pub async fn contents(&self) -> Contents {
        let mut contents = Contents::new();
        for (call, entry) in catalogue().calls.iter().filter(|(_, it)| !it.writes) {
            let mut read = Vec::new();
            for (name, base) in &entry.requests {
                let mut request = self.request(base);
                for part in ["page_size", "page_token"] {
                    request.as_object_mut().expect("a message").remove(part);
                }
                // What a document has is not in the account.
                if request.get("document").is_some() || read.contains(&request) {
                    continue;
                }
                read.push(request.clone());
                let read = format!("{call} @{name}");
                let response = self.whole_list(call, request).await;
                let mut response = response.unwrap_or_else(|status| panic!("{read}: {status:?}"));
                for name in ["next_cursor", "caught_up"] {
                    response.as_object_mut().expect("a message").remove(name);
                }
                contents.insert(read, response);
            }
        }
        contents
    }

    /// The response to a request, with the items of all pages.
    async fn whole_list(&self, call: &str, mut request: Value) -> Result<Value, Status> {
        let mut whole = self.send(call, &request).await?;
        loop {
            let response = whole.as_object_mut().expect("a message");
            let token = response.remove("next_page_token");
            let Some(token) = token.filter(|it| it != "") else {
                return Ok(whole);
            };
            request["page_token"] = token;
            let next = self.send(call, &request).await?;
            for (name, value) in next.as_object().expect("a message") {
                match (whole[name].as_array_mut(), value.as_array()) {
                    (Some(items), Some(more)) => items.extend(more.iter().cloned()),
                    _ => whole[name] = value.clone(),
                }
            }
        }
    }
}

/// What an account can read, by call and request.
pub type Contents = BTreeMap<String, Value>;
