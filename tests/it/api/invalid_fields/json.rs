//! JSON that every field refuses: too deep, without a kind, not finite, or with U+0000.

use prost_reflect::{Kind, Value};
use serde_json::json;

use super::every_text::{Requests, reasons_at};
use crate::{
    fixture::each_call,
    kit::contract::field_value,
    laws::field_paths::{FieldPath, field_paths},
    prelude::*,
};

/// Deeper than JSON may be.
const TOO_DEEP: usize = 40;

/// Invalid values for a field that takes JSON, each with what is wrong; none for others.
fn invalid(place: &FieldPath) -> Vec<(&'static str, Value)> {
    let Kind::Message(message) = place.kind() else {
        return Vec::new();
    };
    let is_object = match message.full_name() {
        "google.protobuf.Value" => false,
        "google.protobuf.Struct" => true,
        _ => return Vec::new(),
    };
    let nothing = prost_types::Value::default;
    let values = [
        ("a text with U+0000", text("\0")),
        ("U+0000 in a list", array(vec![text("y\0")])),
        ("U+0000 in a key", value(json!({"a\0": "b"}))),
        ("a value without a kind", nothing()),
        ("such a value in a list", array(vec![nothing()])),
        ("no number", number(f64::NAN)),
        ("infinity", number(f64::INFINITY)),
        ("minus infinity", number(f64::NEG_INFINITY)),
        ("too deep lists", arrays_deep(TOO_DEEP, "end")),
    ];
    let in_place = |(what, inner)| match is_object {
        false => (what, field_value(&message, &inner)),
        true => (what, field_value(&message, &member("a", inner))),
    };
    values.map(in_place).into()
}

#[apply(on_one_database)]
async fn every_field_of_every_call_refuses_invalid_json(client: Client) {
    each_call(async |call, entry| {
        let mut calls = Requests::of(&client, call, entry);
        for place in field_paths(call) {
            for (what, value) in invalid(&place) {
                let outcome = calls.send(&place, value).await;
                check(&format!("{call} {}: {what}", place.path()), &place, outcome);
            }
        }
    })
    .await;
}

fn check(at: &str, place: &FieldPath, outcome: Result<serde_json::Value, tonic::Status>) {
    let failure = match outcome {
        // What the system sets is ignored.
        Ok(_) if place.field().starts_with("Step.r_data") => return,
        Ok(_) => panic!("{at} is accepted"),
        Err(status) => Failure::from(status),
    };
    let is_deep = at.ends_with("too deep lists");
    // So deep that decoding may fail before the fields are checked.
    if is_deep && failure.reason() == "NESTING_TOO_DEEP" {
        return;
    }
    for reason in reasons_at(at, &place.path(), &failure) {
        assert_eq!(reason, "FIELD_INVALID", "{at}: {failure:?}");
    }
}

#[apply(on_one_database)]
async fn a_key_that_is_no_identifier_is_in_brackets(client: Client) {
    let task = client.given_task(task("Guide")).await;
    for (key, path) in [
        ("_a1", "step.instructions[0]._a1[1]"),
        ("a.b", r#"step.instructions[0]["a.b"][1]"#),
        (r#"c"d\"#, r#"step.instructions[0]["c\"d\\"][1]"#),
        ("1a", r#"step.instructions[0]["1a"][1]"#),
        ("", r#"step.instructions[0][""][1]"#),
    ] {
        let instruction = member(key, array(vec![text("fine"), number(f64::NAN)]));
        let sent = information_step(&task, "odd").with_instructions(vec![instruction]);
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[(path, "FIELD_INVALID")]);
    }
}
