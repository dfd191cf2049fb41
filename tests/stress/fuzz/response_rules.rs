//! The rules of the contract for every response. Limits are those that its comments say.

use std::collections::BTreeSet;

use expertise::proto::v1::ErrorReason;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value};
use tonic::{Code, Status};

use crate::kit::{
    catalogue::{catalogue, entry},
    failure::{Failure, code_of},
};

/// The most bytes of trailers that clients take. They hold the details in base64 and the
/// message percent-encoded.
const MAX_TRAILER_BYTES: usize = 8 * 1024;
/// The most characters of texts in lists.
const LISTED_TEXTS: [(&str, usize); 3] = [
    ("Step.parts", 1_000),
    ("Step.skills", 1_000),
    ("Step.tags", 1_000),
];
/// The most characters of texts that are not empty.
const TEXTS: [(&str, usize); 7] = [
    ("Task.name", 200),
    ("Task.external_id", 200),
    ("TaskTranslation.name", 200),
    ("Step.title", 400),
    ("Step.external_id", 200),
    ("StepTranslation.title", 400),
    ("Condition.variable", 1_000),
];
/// The most items of lists.
const LISTS: [(&str, usize); 7] = [
    ("Step.parts", 1_000),
    ("Step.skills", 1_000),
    ("Step.tags", 1_000),
    ("Step.instructions", 1_000),
    ("Step.feedback_config", 1),
    ("StepTranslation.feedback_config", 1),
    ("FeedbackConfig.values", 1_000),
];
/// Fields that responses always have.
const PRESENT: [&str; 12] = [
    "Task.name",
    "Task.product_id",
    "Task.published",
    "Task.roles",
    "TaskTranslation.locked",
    "Step.title",
    "Step.product_id",
    "Step.cost",
    "StepTranslation.locked",
    "Condition.variable",
    "Condition.targets",
    "DependencyGroup.nodes",
];
const MAX_LANGUAGES: usize = 100;
const MAX_CONDITIONS: usize = 1_000;
const MAX_LEVELS_OF_CONDITIONS: usize = 16;
const MAX_LEVELS_OF_JSON: usize = 32;

/// Asserts that an error of a call follows the contract, has reasons of its entry, fits into the
/// trailers and holds no text of a driver.
pub fn is_of_the_contract(call: &str, status: &Status) {
    let failure = Failure::from(status.clone());
    let reason = failure.reason();
    failure.is(code_of(reason), reason);
    let violations = failure.violations();
    if failure.code == Code::InvalidArgument {
        assert!((1..=50).contains(&violations.len()), "{failure:?}");
    }
    let listed = entry(call).reasons.iter();
    let listed: Vec<_> = listed.chain(&catalogue().reasons_of_every_call).collect();
    for reason in violations.iter().map(|(_, reason)| *reason).chain([reason]) {
        let name = format!("ERROR_REASON_{reason}");
        assert!(ErrorReason::from_str_name(&name).is_some(), "{failure:?}");
        assert!(
            listed.iter().any(|listed| *listed == reason),
            "{call} fails with {reason}, which is not in its `reasons` of tests/calls.json"
        );
    }
    let message = status.message();
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'%';
    let encoded: usize = message.bytes().map(|b| if plain(&b) { 1 } else { 3 }).sum();
    let size = status.details().len().div_ceil(3) * 4 + encoded;
    assert!(size < MAX_TRAILER_BYTES, "{size} bytes: {failure:?}");
    let lower = message.to_lowercase();
    for foreign in ["sql", "constraint", "panicked", "prost", "serde"] {
        assert!(!lower.contains(foreign), "{message}");
    }
}

/// Asserts that a response keeps the limits of stored resources.
pub fn keeps_the_limits(message: &DynamicMessage) {
    let descriptor = message.descriptor();
    for path in PRESENT {
        if let Some(field) = path.strip_prefix(&format!("{}.", descriptor.name())) {
            assert!(message.has_field_by_name(field), "no {path}: {message:?}");
        }
    }
    for (field, value) in message.fields() {
        let path = format!("{}.{}", descriptor.name(), field.name());
        let limit = |limits: &[(&str, usize)]| {
            let limit = limits.iter().find(|(limited, _)| *limited == path);
            limit.map_or(usize::MAX, |(_, limit)| *limit)
        };
        match value {
            Value::String(text) => {
                let limit = limit(&TEXTS);
                assert!(text.chars().count() <= limit, "{path}: {text}");
                let is_blank = text.trim().is_empty();
                assert!(limit == usize::MAX || !is_blank, "{path} is empty");
                assert!(!text.contains('\0'), "U+0000 in {path}");
            }
            Value::I64(id) if field.name() == "product_id" => assert!(*id > 0, "{path}: {id}"),
            Value::I32(number) if field.name() == "published" => {
                assert!(*number >= 0, "{path}: {number}");
            }
            Value::F64(number) => assert!(number.is_finite(), "{path}: {number}"),
            Value::List(items) => {
                assert!(items.len() <= limit(&LISTS), "{path}: {}", items.len());
                for text in items.iter().filter_map(Value::as_str) {
                    let letters = text.chars().count();
                    assert!(letters <= limit(&LISTED_TEXTS), "{path}: {text}");
                    assert!(!text.contains('\0'), "U+0000 in {path}");
                }
            }
            Value::Map(members) => {
                let keys = members.keys().filter_map(MapKey::as_str);
                let keys: Vec<&str> = keys.collect();
                assert!(!keys.concat().contains('\0'), "U+0000 in {path}");
                if field.name() == "translations" {
                    assert!(keys.len() <= MAX_LANGUAGES, "{path}: {}", keys.len());
                    keys.into_iter().for_each(is_canonical);
                }
            }
            _ => {}
        }
    }
    match descriptor.name() {
        "Task" => roles_differ(message),
        "Step" => step_is_consistent(message),
        "FeedbackConfig" => keys_differ(message),
        "DependencyGroup" => {
            assert!(levels(message, &["DependencyGroup"]) <= MAX_LEVELS_OF_CONDITIONS);
            assert!(count(message, "Condition") <= MAX_CONDITIONS);
        }
        "DependencyNode" => assert!(message.fields().next().is_some(), "an empty node"),
        "Struct" | "ListValue" => {
            let levels = levels(message, &["Struct", "ListValue"]);
            assert!(levels <= MAX_LEVELS_OF_JSON, "{levels} levels of JSON");
        }
        _ => {}
    }
    messages_in(message).for_each(keeps_the_limits);
}

fn roles_differ(task: &DynamicMessage) {
    let task: expertise::proto::v1::Task = task.transcode_to().expect("a task");
    let different: BTreeSet<&i32> = task.roles.iter().collect();
    assert_eq!(different.len(), task.roles.len(), "{:?}", task.roles);
}

fn step_is_consistent(step: &DynamicMessage) {
    let step: expertise::proto::v1::Step = step.transcode_to().expect("a step");
    use expertise::proto::v1::StepType::*;
    let cost = step.cost.unwrap_or_default();
    let solves = matches!(step.r#type(), Solution | Idp);
    assert!(cost == 0 || (solves && cost >= 2), "{step:?}");
    assert_eq!(step.r#type() == Subtask, !step.subtask_id.is_empty());
    if step.r#type() == Observation {
        assert_eq!(step.feedback_config.len(), 1, "{step:?}");
    }
}

fn keys_differ(question: &DynamicMessage) {
    let question: expertise::proto::v1::FeedbackConfig = question.transcode_to().expect("one");
    assert_eq!(question.r#type, "enum");
    let mut keys: Vec<&str> = question.values.iter().map(|it| it.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(!keys.is_empty() && keys.len() == question.values.len());
}

/// How deep messages of some types contain each other.
fn levels(message: &DynamicMessage, names: &[&str]) -> usize {
    let below = messages_in(message).map(|inner| levels(inner, names)).max();
    below.unwrap_or(0) + usize::from(names.contains(&message.descriptor().name()))
}

fn count(message: &DynamicMessage, name: &str) -> usize {
    let below: usize = messages_in(message).map(|inner| count(inner, name)).sum();
    below + usize::from(message.descriptor().name() == name)
}

/// The messages that are the values of a message's fields.
fn messages_in(message: &DynamicMessage) -> impl Iterator<Item = &DynamicMessage> {
    let values = message.fields().flat_map(|(_, value)| match value {
        Value::List(items) => items.iter().collect(),
        Value::Map(members) => members.values().collect(),
        other => vec![other],
    });
    values.filter_map(Value::as_message)
}

/// Asserts that a language tag is written as RFC 5646 recommends: `de`, `zh-Hant-TW`, `x-private`.
fn is_canonical(tag: &str) {
    let mut after_singleton = false;
    for (at, part) in tag.split('-').enumerate() {
        let lower = part.to_ascii_lowercase();
        let is_letters = part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let written = match part.len() {
            2 if at > 0 && !after_singleton => part.to_ascii_uppercase(),
            4 if at > 0 && !after_singleton && is_letters => {
                lower[..1].to_ascii_uppercase() + &lower[1..]
            }
            _ => lower,
        };
        after_singleton |= part.len() == 1;
        assert!(!part.is_empty() && part == written, "{tag}");
    }
}
