//! Answers that are compared but for what must differ.

use bytes::Bytes;
use serde_json::Value;
use tonic::Status;

use crate::kit::{
    contract::{Contract, json},
    prelude::*,
};

/// What a call came to.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// The response, as JSON.
    Done(Value),
    /// The code, the message and the details as they went over the wire, and the
    /// reason in them.
    Refused(Code, String, Vec<u8>, String),
}

/// What differs between answers that are alike: the id that was sent, and whose
/// call it was.
pub struct Swap<'a> {
    pub id: &'a str,
    pub account: &'a str,
}

impl Answer {
    pub fn of(contract: &Contract, call: &str, outcome: Result<Bytes, Status>) -> Self {
        match outcome {
            Ok(response) => Self::Done(json(&contract.response(call, &response))),
            Err(status) => {
                let (message, details) = (status.message().to_owned(), status.details().to_vec());
                let failure = Failure::from(status);
                Self::Refused(failure.code, message, details, failure.reason().to_owned())
            }
        }
    }

    /// The reason of a refusal; `OK` of a response.
    pub fn reason(&self) -> &str {
        match self {
            Self::Done(_) => "OK",
            Self::Refused(_, _, _, reason) => reason,
        }
    }

    /// Everything that it says, as one text.
    pub fn text(&self) -> String {
        match self {
            Self::Done(response) => response.to_string(),
            Self::Refused(_, message, details, _) => {
                format!("{message} {}", String::from_utf8_lossy(details))
            }
        }
    }

    /// The answer with the sent id blotted out, byte for byte; and in a response
    /// also what the service made up: its own ids are numbered as they come,
    /// etags and times are left out.
    pub fn without(self, swap: &Swap<'_>) -> Self {
        let mut made = Vec::new();
        match self {
            Self::Done(mut response) => {
                blot_out(&mut response, swap, &mut made);
                Self::Done(response)
            }
            Self::Refused(code, message, details, reason) => {
                let message = message.replace(swap.id, &"#".repeat(swap.id.len()));
                Self::Refused(code, message, without_bytes(details, swap.id), reason)
            }
        }
    }
}

fn without_bytes(mut bytes: Vec<u8>, id: &str) -> Vec<u8> {
    let id = id.as_bytes();
    let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(id));
    for start in starts.collect::<Vec<_>>() {
        bytes[start..start + id.len()].fill(b'#');
    }
    bytes
}

fn blot_out(value: &mut Value, swap: &Swap<'_>, made: &mut Vec<String>) {
    match value {
        Value::String(text) if text.to_lowercase() == swap.id => *text = "the id".to_owned(),
        Value::String(text) if text == swap.account => *text = "the caller".to_owned(),
        Value::String(text) if uuid::Uuid::try_parse(text).is_ok() => {
            let known = made.iter().position(|id| id == text);
            let number = known.unwrap_or_else(|| {
                made.push(text.clone());
                made.len() - 1
            });
            *text = format!("made {number}");
        }
        Value::Array(list) => list.iter_mut().for_each(|item| blot_out(item, swap, made)),
        Value::Object(members) => {
            for (name, member) in members {
                if name == "etag" || name.ends_with("Ts") {
                    *member = Value::Null;
                } else {
                    blot_out(member, swap, made);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
