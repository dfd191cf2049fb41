//! JSON that every field refuses: too deep, without a kind, or not finite.

use crate::kit::prelude::*;
use prost_types::{ListValue, Struct, Value, value::Kind};

/// The three places of a step that take any JSON.
async fn refused(client: &Client, json: Value, reason: &str) {
    let task = client.given_task(task("Guide")).await;
    let instruction = Struct {
        fields: [("a".to_owned(), json.clone())].into(),
    };
    let sent =
        information_step(&task, "odd").with_instructions(vec![Struct::default(), instruction]);
    let failure = client.create_step(sent).await.refused();
    failure.violates_below("step.instructions[1]", reason);

    let sent = Step {
        looping: Some(Looping {
            array: Some(json.clone()),
            ..Looping::default()
        }),
        ..information_step(&task, "odd")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates_below("step.looping.array", reason);

    let sent = Step {
        looping: Some(Looping {
            iterations: Some(json),
            ..Looping::default()
        }),
        ..information_step(&task, "odd")
    };
    let failure = client.create_step(sent).await.refused();
    failure.violates_below("step.looping.iterations", reason);
}

#[apply(on_both_databases)]
async fn thirty_two_levels_are_accepted_and_one_more_is_not(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let deep = |depth| information_step(&task, "deep").with_instructions(vec![objects_deep(depth)]);
    let created = client.given_step(deep(32)).await;
    let read = client.get_step(&created.guid).await.accepted();
    assert_eq!(read.instructions, deep(32).instructions);
    let failure = client.create_step(deep(33)).await.refused();
    failure.violates_below("step.instructions[0]", "NESTING_TOO_DEEP");
}

#[apply(on_both_databases)]
async fn arrays_count_as_levels(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let deep = |depth| Step {
        looping: Some(Looping {
            array: Some(arrays_deep(depth)),
            ..Looping::default()
        }),
        ..information_step(&task, "deep")
    };
    let created = client.given_step(deep(32)).await;
    let read = client.get_step(&created.guid).await.accepted();
    assert_eq!(read.looping, deep(32).looping);
    let failure = client.create_step(deep(33)).await.refused();
    failure.violates_below("step.looping.array", "NESTING_TOO_DEEP");
    let mut iterated = deep(32);
    if let Some(looping) = &mut iterated.looping {
        looping.iterations = Some(arrays_deep(33));
    }
    let failure = client.create_step(iterated).await.refused();
    failure.violates_below("step.looping.iterations", "NESTING_TOO_DEEP");
}

#[apply(on_both_databases)]
async fn a_translations_instructions_have_the_same_depth(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let deep = |depth| {
        let row = StepTranslation {
            instructions: vec![objects_deep(depth)],
            ..StepTranslation::default()
        };
        information_step(&task, "deep").translated("de", row)
    };
    let created = client.given_step(deep(32)).await;
    let kept = &created.translations["de"].instructions;
    assert_eq!(*kept, [objects_deep(32)]);
    // So deep that decoding may fail before the fields are checked.
    let failure = client.create_step(deep(33)).await.refused();
    failure.is(Code::InvalidArgument, "NESTING_TOO_DEEP");
}

#[apply(on_one_database)]
async fn a_value_without_a_kind_is_refused(client: Client) {
    let nothing = Value { kind: None };
    refused(&client, nothing.clone(), "FIELD_INVALID").await;
    let inside = Value {
        kind: Some(Kind::ListValue(ListValue {
            values: vec![text("fine"), nothing],
        })),
    };
    refused(&client, inside, "FIELD_INVALID").await;
}

#[apply(on_one_database)]
async fn a_number_must_be_finite(client: Client) {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(&client, number(odd), "FIELD_INVALID").await;
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
        let list = Value {
            kind: Some(Kind::ListValue(ListValue {
                values: vec![text("fine"), number(f64::NAN)],
            })),
        };
        let instruction = Struct {
            fields: [(key.to_owned(), list)].into(),
        };
        let sent = information_step(&task, "odd").with_instructions(vec![instruction]);
        let failure = client.create_step(sent).await.refused();
        failure.violates(&[(path, "FIELD_INVALID")]);
    }
}
