#![allow(clippy::expect_used)]

use super::*;
use prost::Message;

const IMPORT: &str = "/expertise.v1.TaskService/ImportTask";

fn import_of(steps: Vec<v1::Step>) -> Vec<u8> {
    let request = v1::ImportTaskRequest {
        document: Some(v1::TaskDocument { task: None, steps }),
        ..Default::default()
    };
    request.encode_to_vec()
}

fn decoded(message: &[u8]) -> usize {
    request_bytes(IMPORT, message, usize::MAX)
}

fn step_with_answers(count: usize) -> v1::Step {
    v1::Step {
        title: "Pump".repeat(100),
        feedback_config: vec![v1::FeedbackConfig {
            values: vec![v1::FeedbackValue::default(); count],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn elements_count_at_every_level_and_texts_do_not() {
    let one = decoded(&import_of(vec![step_with_answers(0)]));
    assert!(one >= size_of::<v1::Step>() + size_of::<v1::FeedbackConfig>());
    // Each list has room for four.
    let structs = size_of::<v1::Step>() + size_of::<v1::FeedbackConfig>();
    assert!(one < 5 * structs, "{one}");
    let mut untitled = step_with_answers(0);
    untitled.title.clear();
    assert_eq!(decoded(&import_of(vec![untitled])), one);
    let answers = decoded(&import_of(vec![step_with_answers(1_000)])) - one;
    assert!(
        answers >= 1_000 * size_of::<v1::FeedbackValue>(),
        "{answers}"
    );
    let steps = decoded(&import_of(vec![v1::Step::default(); 1_000]));
    assert!(steps >= 1_000 * size_of::<v1::Step>(), "{steps}");
}

#[test]
fn maps_texts_in_lists_and_packed_numbers_count() {
    let translations = (0..100).map(|n| (n.to_string(), v1::StepTranslation::default()));
    let step = v1::Step {
        translations: translations.collect(),
        tags: vec![String::new(); 1_000],
        ..Default::default()
    };
    let texts = 1_000 * size_of::<String>();
    let map = 100 * size_of::<(String, v1::StepTranslation)>();
    let counted = decoded(&import_of(vec![step]));
    assert!(counted >= texts + map, "{counted} of {texts} and {map}");
    let rpc = "/expertise.v1.TaskService/CreateTask";
    let packed = [&[0x0a, 102, 0x3a, 100][..], &[1; 100]].concat();
    let counted = request_bytes(rpc, &packed[..], usize::MAX);
    let task = v1::CreateTaskRequest::decode(&packed[..])
        .expect("a request")
        .task;
    assert_eq!(task.expect("a task").roles.len(), 100);
    assert!(counted >= 100 * size_of::<i32>(), "{counted}");
}

/// A node of a `BTreeMap` has room for eleven entries, and a `Vec` begins with four.
#[test]
fn lists_and_maps_of_one_element_count_their_room() {
    let object = |value: Value| Struct {
        fields: [(String::new(), value)].into(),
    };
    let step = |instructions| v1::Step {
        instructions,
        ..Default::default()
    };
    let of = |instruction: Struct| {
        let many = step(vec![instruction; 1_000]);
        (decoded(&import_of(vec![many])) - decoded(&import_of(vec![step(Vec::new())]))) / 1_000
    };
    let node = 11 * size_of::<(String, Value)>();
    let null = of(object(Value::default()));
    assert!(null >= node && null < 2 * node, "{null} {node}");
    let list = Value {
        kind: Some(prost_types::value::Kind::ListValue(
            prost_types::ListValue {
                values: vec![Value::default()],
            },
        )),
    };
    let room = of(object(list)) - null;
    assert!(room >= 4 * size_of::<Value>(), "{room}");
}

/// What prost skips or rejects is not counted, and hides nothing after it.
#[test]
fn unknown_fields_are_skipped_and_a_broken_message_ends_the_count() {
    let steps = import_of(vec![v1::Step::default(); 10]);
    let counted = decoded(&steps);
    // Field 99: a number, and a group around a text.
    let unknown = [0x98, 0x06, 0x01, 0x9b, 0x06, 0x0a, 0x01, b'a', 0x9c, 0x06];
    assert_eq!(decoded(&[&unknown[..], &steps].concat()), counted);
    assert_eq!(decoded(&[&steps[..], &[0x0a]].concat()), counted);
    // A document of 100 bytes that has two.
    assert_eq!(decoded(&[0x0a, 100, 0x12, 0x00]), 0);
    assert_eq!(request_bytes("/x.Y/Z", &steps[..], usize::MAX), 0);
}

#[test]
fn counting_ends_above_the_limit() {
    let steps = import_of(vec![v1::Step::default(); 1_000]);
    let counted = request_bytes(IMPORT, &steps[..], 10_000);
    assert!((10_001..20_000).contains(&counted), "{counted}");
}

/// Messages that are not listed count as a step.
#[test]
fn a_step_is_the_largest_message_that_requests_repeat() {
    let others = [
        size_of::<v1::AutomaticTranslation>(),
        size_of::<v1::IndexedItem>(),
        size_of::<v1::RuleSetting>(),
        size_of::<v1::Suppression>(),
        size_of::<v1::Task>(),
    ];
    assert!(others.into_iter().all(|it| it <= size_of::<v1::Step>()));
}
