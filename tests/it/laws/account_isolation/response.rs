//! Responses without what must differ between two equal calls.

use bytes::Bytes;
use serde_json::Value;
use tonic::Status;

use crate::{kit::calls, prelude::*};

/// The result of a call.
#[derive(Debug, PartialEq)]
pub enum CallResult {
    /// The response, as JSON.
    Response(Value),
    Error {
        code: Code,
        message: String,
        /// As they went over the wire.
        details: Vec<u8>,
        reason: String,
        /// The field that the details name.
        field: String,
    },
}

/// What differs between two equal responses: the id that was sent, and the calling
/// account.
pub struct SentId<'a> {
    pub id: &'a str,
    pub account: &'a str,
}

impl CallResult {
    pub fn of(call: &str, outcome: Result<Bytes, Status>) -> Self {
        let status = match outcome {
            Ok(answer) => return Self::Response(calls::response(call, &answer)),
            Err(status) => status,
        };
        let (message, details) = (status.message().to_owned(), status.details().to_vec());
        let failure = Failure::from(status);
        Self::Error {
            code: failure.code,
            message,
            details,
            reason: failure.reason().to_owned(),
            field: failure.metadata().remove("field").unwrap_or_default(),
        }
    }

    /// The reason of a refusal; `OK` of a response.
    pub fn reason(&self) -> &str {
        match self {
            Self::Response(_) => "OK",
            Self::Error { reason, .. } => reason,
        }
    }

    /// All its values, as one text.
    pub fn text(&self) -> String {
        match self {
            Self::Response(response) => response.to_string(),
            Self::Error {
                message, details, ..
            } => {
                format!("{message} {}", String::from_utf8_lossy(details))
            }
        }
    }

    /// The response with the sent id masked. New ids are numbered in their order, and etags,
    /// fingerprints and times are left out.
    pub fn masked(mut self, sent: &SentId<'_>) -> Self {
        match &mut self {
            Self::Response(response) => mask_ids(response, sent, &mut Vec::new()),
            Self::Error {
                message, details, ..
            } => {
                *message = message.replace(sent.id, &"#".repeat(sent.id.len()));
                *details = mask_bytes(std::mem::take(details), sent.id);
            }
        }
        self
    }
}

/// What differs between equal guides: versions, and the bytes that ids take when compressed.
const MASKED: [&str; 4] = ["etag", "guide_etag", "fingerprint", "size_bytes"];

fn mask_bytes(mut bytes: Vec<u8>, id: &str) -> Vec<u8> {
    let id = id.as_bytes();
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(id));
    for start in starts.collect::<Vec<_>>() {
        bytes[start..start + id.len()].fill(b'#');
    }
    bytes
}

fn mask_ids(value: &mut Value, sent: &SentId<'_>, made: &mut Vec<String>) {
    match value {
        Value::String(text) if text.to_lowercase() == sent.id => *text = "the id".to_owned(),
        Value::String(text) if text == sent.account => *text = "the caller".to_owned(),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => {
            let known = made.iter().position(|id| id == text);
            let number = known.unwrap_or_else(|| {
                made.push(text.clone());
                made.len() - 1
            });
            *text = format!("made {number}");
        }
        Value::Array(list) => list.iter_mut().for_each(|item| mask_ids(item, sent, made)),
        Value::Object(members) => {
            for (name, member) in members {
                if MASKED.contains(&name.as_str()) || name.ends_with("_ts") {
                    *member = Value::Null;
                } else {
                    mask_ids(member, sent, made);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
