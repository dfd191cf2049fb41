//! Calls of the [catalogue] over the wire: what their requests need in an account, and marks in
//! their texts.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::ready, stream};
use prost::Message;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value as Field};
use serde_json::Value;
use tonic::Status;

use super::{
    catalogue::{Entry, Values, catalogue, changed, entry},
    client::Client,
    contract::{self, message_of, proto_json},
};

/// How many calls are tested concurrently, each in its own accounts.
const CONCURRENT: usize = 6;

/// The names of requests that read less than another of the same call.
const PARTIAL: [&str; 7] = [
    "both",
    "filtered",
    "first",
    "full",
    "next",
    "suppressed",
    "two",
];

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
        let values = prepare(request, mark, send).await;
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

    /// What the account, which has every resource, can read, except the end of its changes.
    pub async fn contents(&self) -> Contents {
        let mut contents = Contents::new();
        for (call, entry) in catalogue().calls.iter().filter(|(_, it)| !it.writes) {
            // What a document has is not in the account.
            let requests = entry.requests.iter().filter(|(name, it)| {
                let is_partial = match name.as_str() {
                    "example" => entry.requests.contains_key("all"),
                    name => PARTIAL.contains(&name),
                };
                !is_partial && it.get("document").is_none()
            });
            for (name, base) in requests {
                let read = format!("{call} @{name}");
                let response = self.send(call, &self.request(base)).await;
                let mut response = response.unwrap_or_else(|status| panic!("{read}: {status:?}"));
                for name in ["next_cursor", "caught_up"] {
                    response.as_object_mut().expect("a message").remove(name);
                }
                contents.insert(read, response);
            }
        }
        contents
    }
}

/// What an account can read, by call and request.
pub type Contents = BTreeMap<String, Value>;

/// The response of a call as JSON, whose fields have their names in the proto files.
pub fn response(call: &str, answer: &[u8]) -> Value {
    let message = DynamicMessage::decode(message_of(call, "Response"), answer);
    proto_json(&message.expect("a response"))
}

/// Makes what the request needs, or else every resource; what the placeholders stand for.
pub async fn prepare(
    request: Option<&Value>,
    mark: &Mark,
    send: impl AsyncFn(&str, Bytes) -> Result<Bytes, Status>,
) -> Values {
    let mut values = Values::new();
    let calls = match request {
        Some(request) => catalogue().setup_of(request),
        None => catalogue().setup.iter().collect(),
    };
    for setup in calls {
        let call = &setup.call;
        let request = catalogue().expand(&setup.request, &values);
        let message = mark.message(call, request).encode_to_vec();
        let answer = send(call, message.into()).await;
        let answer = answer.unwrap_or_else(|status| panic!("setup {call}: {status:?}"));
        setup.keep(&response(call, &answer), &mut values);
    }
    values
}

/// The prefix of every free text of a request.
#[derive(Clone, Copy)]
pub struct Mark {
    pub text: &'static str,
    /// The mark of keys in JSON and of languages.
    pub key: &'static str,
    /// Whether bodies take more than one HTTP/2 frame.
    pub long_bodies: bool,
}

impl Mark {
    pub const NONE: Self = Self {
        text: "",
        key: "",
        long_bodies: false,
    };

    /// The request of a call with marks.
    pub fn message(&self, call: &str, request: Value) -> DynamicMessage {
        let request = contract::request(call, request);
        let request = DynamicMessage::decode(message_of(call, "Request"), &*request);
        let mut request = request.expect("a request");
        if !self.text.is_empty() {
            self.mark(&mut request, "");
        }
        request
    }

    /// Marks a message, or JSON within one.
    fn mark(&self, message: &mut DynamicMessage, of: &str) {
        let name = message.descriptor().name().to_owned();
        let is_json = message.descriptor().package_name() == "google.protobuf";
        let fields: Vec<_> = message.fields().map(|(field, _)| field).collect();
        for field in fields {
            let path = format!("{name}.{}", field.name());
            let kind_of = |path: &str| catalogue().kind_of(path).unwrap_or_default();
            let (kind, key_kind) = match is_json {
                true => (of, of),
                false => (kind_of(&path), kind_of(&format!("{path}[key]"))),
            };
            // Timestamps, masks and the like hold no free text.
            if is_json && of != "json" {
                continue;
            }
            match message.get_field_mut(&field) {
                Field::Map(entries) => {
                    let marked = entries.drain().map(|(key, mut value)| {
                        self.mark_value(&mut value, kind, &path);
                        (self.marked_key(key, key_kind), value)
                    });
                    let marked: Vec<_> = marked.collect();
                    entries.extend(marked);
                }
                Field::List(items) => {
                    items
                        .iter_mut()
                        .for_each(|item| self.mark_value(item, kind, &path));
                }
                value => self.mark_value(value, kind, &path),
            }
        }
    }

    fn mark_value(&self, value: &mut Field, kind: &str, path: &str) {
        match value {
            Field::Message(inner) => self.mark(inner, kind),
            Field::String(text) if kind == "language" => *text = self.language(text),
            Field::String(text) if matches!(kind, "text" | "json") => {
                text.insert_str(0, self.text);
                if self.long_bodies && path == "Step.body" {
                    *text = text.repeat(1_200);
                }
            }
            _ => {}
        }
    }

    fn marked_key(&self, key: MapKey, kind: &str) -> MapKey {
        match key {
            MapKey::String(key) if kind == "language" => MapKey::String(self.language(&key)),
            MapKey::String(key) if !kind.is_empty() => MapKey::String(format!("{}{key}", self.key)),
            other => other,
        }
    }

    fn language(&self, tag: &str) -> String {
        match self.key {
            "" => tag.to_owned(),
            key => format!("{tag}-x-{key}"),
        }
    }
}
