//! Every text of every call: U+0000, and more than any text may hold, is refused at its place, or
//! ignored and left out of the response.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, Kind, Value};

use super::contract::message_of;
use crate::{
    fixture::{Fixture, each_call},
    kit::{calls::response, catalogue::Entry, contract},
    laws::field_paths::{FieldPath, field_paths},
    prelude::*,
};

/// More code points than any text but a body may have.
const TOO_LONG: usize = 70_000;

#[apply(on_one_database)]
async fn every_text_of_every_call_is_checked(client: Client) {
    each_call(async |call, entry| {
        let mut calls = Requests::of(&client, call, entry);
        let texts = field_paths(call).into_iter();
        for place in texts.filter(|place| matches!(place.kind(), Kind::String)) {
            for text in ["a\0b".to_owned(), "y".repeat(TOO_LONG)] {
                let is_body = place.path().ends_with(".body");
                if !is_body || text.len() < TOO_LONG {
                    let outcome = calls.send(&place, Value::String(text.clone())).await;
                    check_text(call, &place.path(), &text, outcome);
                }
            }
        }
    })
    .await;
}

/// Sends the fullest request of an entry with another value in one place.
pub struct Requests<'a> {
    client: &'a Client,
    call: &'static str,
    entry: &'static Entry,
    name: &'static str,
    /// An account that no call has changed, and the request.
    prepared: Option<(Fixture, DynamicMessage)>,
}

impl<'a> Requests<'a> {
    pub fn of(client: &'a Client, call: &'static str, entry: &'static Entry) -> Self {
        let names = ["full_guide", "full", "example"].into_iter();
        let mut names = names.filter(|name| entry.requests.contains_key(*name));
        Self {
            client,
            call,
            entry,
            name: names.next().expect("an example"),
            prepared: None,
        }
    }

    pub async fn send(
        &mut self,
        place: &FieldPath,
        value: Value,
    ) -> Result<serde_json::Value, tonic::Status> {
        let (fixture, request) = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.prepare().await,
        };
        let mut message = request.clone();
        place.set(&mut message, value);
        let message = Bytes::from(message.encode_to_vec());
        let answer = fixture.client.send_bytes(self.call, message).await;
        let stays = answer.is_err() || !self.entry.writes;
        if stays || request.get_field_by_name("validate_only").is_some() {
            self.prepared = Some((fixture, request));
        }
        answer.map(|answer| response(self.call, &answer))
    }

    async fn prepare(&self) -> (Fixture, DynamicMessage) {
        let (fixture, mut request) = Fixture::with_request(self.client, self.call, self.name).await;
        let descriptor = message_of(self.call, "Request");
        if descriptor.get_field_by_name("validate_only").is_some() {
            request["validate_only"] = true.into();
        }
        let request = contract::request(self.call, request);
        let request = DynamicMessage::decode(descriptor, &*request);
        (fixture, request.expect("a request"))
    }
}

fn check_text(
    call: &str,
    path: &str,
    text: &str,
    outcome: Result<serde_json::Value, tonic::Status>,
) {
    let at = format!("{call} {path}");
    match outcome {
        // A well-formed version may be outdated.
        Err(refused) if path.ends_with("etag") && refused.code() == Code::Aborted => {}
        Err(refused) => refuses_at(&at, path, &Failure::from(refused)),
        Ok(response) => {
            let shown = serde_json::json!(text).to_string();
            let is_returned = response.to_string().contains(shown.trim_matches('"'));
            assert!(!is_returned, "{at} is not checked");
        }
    }
}

/// Asserts that the text at the path is refused. The only other violations are missing fields of
/// its message.
fn refuses_at(at: &str, path: &str, failure: &Failure) {
    let faults = [
        "FIELD_INVALID",
        "FIELD_TOO_LONG",
        "SHORTHAND_INVALID",
        "PAGE_TOKEN_INVALID",
        "CURSOR_INVALID",
    ];
    for reason in reasons_at(at, path, failure) {
        assert!(faults.contains(&reason), "{at}: {failure:?}");
    }
}

/// The reasons of violations at the path, or of a document on the way to it that is not allowed.
/// All other violations report missing fields.
pub fn reasons_at<'a>(at: &str, path: &str, failure: &'a Failure) -> Vec<&'a str> {
    let place = path.trim_end_matches("[key]");
    let is_at_place = |field: &str| {
        let parts = field.split(['[', ']']).step_by(2);
        let field = parts.collect::<String>();
        field.starts_with(place) || (field.ends_with(".task_json") && place.starts_with(&field))
    };
    let violations = failure.violations().into_iter();
    let (at_place, others): (Vec<_>, Vec<_>) =
        violations.partition(|(field, _)| is_at_place(field));
    assert!(!at_place.is_empty(), "{at}: {failure:?}");
    for (_, reason) in others {
        assert_eq!(reason, "FIELD_REQUIRED", "{at}: {failure:?}");
    }
    at_place.into_iter().map(|(_, reason)| reason).collect()
}
