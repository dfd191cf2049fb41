//! The rules of the contract for every response. Limits are those that its comments say.

use expertise::proto::v1::{dependency_node::Node, *};
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::messages::messages_in;
use crate::kit::{
    catalogue::{catalogue, entry},
    failure::code_of,
};

/// The most bytes of trailers that clients take. They hold the details in base64 and the
/// message percent-encoded.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// Asserts that an error follows the contract, fits into the trailers and holds no text
/// of a driver. Its reason.
pub fn is_of_the_contract(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!(info.domain, "expertise.v1", "{status:?}");
    let name = format!("ERROR_REASON_{}", info.reason);
    assert!(ErrorReason::from_str_name(&name).is_some(), "{name}");
    let expected = code_of(&info.reason);
    assert_eq!(status.code(), expected, "{status:?}");
    if expected == Code::InvalidArgument {
        let bad = details.bad_request().expect("a BadRequest");
        assert!((1..=50).contains(&bad.field_violations.len()), "{status:?}");
        for violation in &bad.field_violations {
            assert!(!violation.description.is_empty(), "{status:?}");
            assert!(!violation.reason.is_empty(), "{status:?}");
        }
    }
    let message = status.message();
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'%';
    let encoded: usize = message.bytes().map(|b| if plain(&b) { 1 } else { 3 }).sum();
    let size = status.details().len().div_ceil(3) * 4 + encoded;
    assert!(
        size < MAX_TRAILER_BYTES,
        "{size} bytes of trailers: {status:?}"
    );
    let lower = message.to_lowercase();
    for foreign in ["sql", "constraint", "panicked", "prost", "serde"] {
        assert!(!lower.contains(foreign), "{message}");
    }
    info.reason.clone()
}

/// Asserts that docs/reference.md names all reasons of an error for its call.
pub fn is_listed_for(call: &str, status: &Status) {
    let details = status.get_error_details();
    let info = details.error_info().map(|info| info.reason.clone());
    let violations = details.bad_request().into_iter();
    let violations = violations.flat_map(|bad| bad.field_violations.iter());
    let violations = violations.map(|violation| violation.reason.clone());
    let listed = entry(call).reasons.iter();
    let listed: Vec<_> = listed.chain(&catalogue().reasons_of_every_call).collect();
    for reason in info.into_iter().chain(violations) {
        assert!(
            listed.contains(&&reason),
            "{call} fails with {reason}, which is not in its `reasons` of tests/calls.json"
        );
    }
}

/// Asserts that a response keeps the limits of stored resources.
pub fn keeps_the_limits(answer: &DynamicMessage) {
    texts_are_valid(answer);
    json_is_shallow(answer);
    resources_keep_the_limits(answer);
}

fn resources_keep_the_limits(message: &DynamicMessage) {
    match message.descriptor().full_name() {
        "expertise.v1.Task" => task_keeps_the_limits(&message.transcode_to().expect("a task")),
        "expertise.v1.Step" => step_keeps_the_limits(&message.transcode_to().expect("a step")),
        _ => {}
    }
    for inner in messages_in(message) {
        resources_keep_the_limits(inner);
    }
}

fn texts_are_valid(message: &DynamicMessage) {
    fn valid(value: &Value) {
        match value {
            Value::String(text) => assert!(!text.contains('\0'), "U+0000 in {text:?}"),
            Value::F64(number) => assert!(number.is_finite(), "{number}"),
            Value::Message(message) => texts_are_valid(message),
            Value::List(list) => list.iter().for_each(valid),
            Value::Map(map) => {
                for (key, value) in map {
                    if let MapKey::String(key) = key {
                        assert!(!key.contains('\0'), "U+0000 in {key:?}");
                    }
                    valid(value);
                }
            }
            _ => {}
        }
    }
    message.fields().for_each(|(_, value)| valid(value));
}

/// Asserts that JSON is not nested too deeply. The levels of this message, 0 where it is
/// no JSON.
fn json_is_shallow(message: &DynamicMessage) -> usize {
    let below = messages_in(message).into_iter().map(json_is_shallow);
    let below = below.max().unwrap_or(0);
    let level = match message.descriptor().full_name() {
        "google.protobuf.Struct" | "google.protobuf.ListValue" => below + 1,
        "google.protobuf.Value" => below,
        _ => 0,
    };
    assert!(level <= 32, "{level} levels of JSON");
    level
}

fn task_keeps_the_limits(task: &Task) {
    text_is(&task.name, 200);
    task.external_id.iter().for_each(|id| text_is(id, 200));
    assert!(
        task.product_id.is_some_and(|product| product > 0),
        "{task:?}"
    );
    assert!(
        task.published.is_some_and(|published| published >= 0),
        "{task:?}"
    );
    assert!(!task.roles.is_empty(), "{task:?}");
    let mut roles = task.roles.clone();
    roles.sort_unstable();
    roles.dedup();
    assert_eq!(roles.len(), task.roles.len(), "{task:?}");
    task.dependencies.iter().for_each(group_keeps_the_limits);
    tags_are_canonical(task.translations.keys());
    for row in task.translations.values() {
        assert!(row.locked.is_some(), "{row:?}");
        row.name.iter().for_each(|name| text_is(name, 200));
    }
}

fn step_keeps_the_limits(step: &Step) {
    text_is(&step.title, 400);
    step.external_id.iter().for_each(|id| text_is(id, 200));
    assert!(
        step.product_id.is_some_and(|product| product > 0),
        "{step:?}"
    );
    let solves = matches!(step.r#type(), StepType::Solution | StepType::Idp);
    let cost = step.cost.expect("a cost");
    assert!(cost == 0 || (solves && cost >= 2), "{step:?}");
    for list in [&step.parts, &step.skills, &step.tags] {
        assert!(list.len() <= 1_000, "{}", list.len());
        for label in list {
            assert!(label.chars().count() <= 1_000, "{label}");
        }
    }
    assert!(step.instructions.len() <= 1_000);
    questions_keep_the_limits(&step.feedback_config);
    if step.r#type() == StepType::Observation {
        assert_eq!(step.feedback_config.len(), 1, "{step:?}");
    }
    assert_eq!(
        step.r#type() == StepType::Subtask,
        !step.subtask_id.is_empty()
    );
    step.dependencies.iter().for_each(group_keeps_the_limits);
    tags_are_canonical(step.translations.keys());
    for row in step.translations.values() {
        assert!(row.locked.is_some(), "{row:?}");
        row.title.iter().for_each(|title| text_is(title, 400));
        questions_keep_the_limits(&row.feedback_config);
    }
}

fn questions_keep_the_limits(questions: &[FeedbackConfig]) {
    assert!(questions.len() <= 1, "{questions:?}");
    for question in questions {
        assert_eq!(question.r#type, "enum");
        assert!((1..=1_000).contains(&question.values.len()));
        let mut keys: Vec<&str> = question.values.iter().map(|v| v.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), question.values.len(), "a key twice");
    }
}

fn group_keeps_the_limits(group: &DependencyGroup) {
    let (levels, conditions) = measure(group);
    assert!(levels <= 16, "{levels} levels");
    assert!(conditions <= 1_000, "{conditions} conditions");
}

fn measure(group: &DependencyGroup) -> (usize, usize) {
    assert!(!group.nodes.is_empty(), "an empty group");
    let (mut levels, mut conditions) = (0, 0);
    for node in &group.nodes {
        match node.node.as_ref().expect("a node") {
            Node::Condition(condition) => {
                conditions += 1;
                assert!(!condition.targets.is_empty(), "{condition:?}");
                text_is(&condition.variable, 1_000);
            }
            Node::Group(inner) => {
                let (below, more) = measure(inner);
                levels = levels.max(below);
                conditions += more;
            }
        }
    }
    (levels + 1, conditions)
}

fn tags_are_canonical<'a>(tags: impl Iterator<Item = &'a String>) {
    let mut count = 0;
    for tag in tags {
        count += 1;
        assert!(is_canonical(tag), "{tag}");
    }
    assert!(count <= 100, "{count} languages");
}

/// Whether a language tag is written as RFC 5646 recommends: `de`, `zh-Hant-TW`, `x-private`.
fn is_canonical(tag: &str) -> bool {
    let mut after_singleton = false;
    let parts = tag.split('-').enumerate();
    let mut expected = parts.map(|(at, part)| {
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
        !part.is_empty() && part == written
    });
    expected.all(|is_as_expected| is_as_expected)
}

fn text_is(text: &str, max: usize) {
    assert!(!text.trim().is_empty(), "an empty text");
    assert!(text.chars().count() <= max, "more than {max}: {text}");
}
