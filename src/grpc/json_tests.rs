//! JSON is decoded and encoded without change.

use std::collections::BTreeMap;

use proptest::prelude::*;
use prost_types::{ListValue, Struct, Value, value::Kind};

use super::{
    decode::{Field, json::json},
    encode,
};
use crate::domain::violation::{Reason, Violations};

fn of(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Kind::NullValue(0)),
        any::<bool>().prop_map(Kind::BoolValue),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Kind::NumberValue),
        any::<i32>().prop_map(|number| Kind::NumberValue(number.into())),
        "[^\0]{0,8}".prop_map(Kind::StringValue),
    ]
    .prop_map(of);
    leaf.prop_recursive(8, 64, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| of(Kind::ListValue(ListValue { values }))),
            prop::collection::btree_map("[^\0]{0,4}", inner, 0..4)
                .prop_map(|fields| of(Kind::StructValue(Struct { fields }))),
        ]
    })
}

fn arrays(depth: usize) -> Value {
    (0..depth).fold(of(Kind::BoolValue(true)), |inner, _| {
        let values = vec![inner];
        of(Kind::ListValue(ListValue { values }))
    })
}

fn refusals(value: Value) -> Vec<(String, Reason)> {
    let mut violations = Violations::new();
    json(value, Field::root("x", &mut violations));
    let kept = violations.kept().iter();
    kept.map(|violation| (violation.path.clone(), violation.reason))
        .collect()
}

proptest! {
    #[test]
    fn json_is_decoded_and_encoded_without_change(sent in any_value()) {
        let mut violations = Violations::new();
        let stored = json(sent.clone(), Field::root("x", &mut violations));
        prop_assert!(violations.is_empty());
        let text = stored.map(|json| json.0.to_string()).unwrap_or_default();
        let read = serde_json::from_str(&text).map(encode::value);
        prop_assert_eq!(read.ok(), Some(sent));
    }
}

#[test]
fn thirty_two_levels_are_accepted_and_one_more_is_not() {
    assert_eq!(refusals(arrays(32)), []);
    let path = format!("x{}", "[0]".repeat(32));
    assert_eq!(refusals(arrays(33)), [(path, Reason::NestingTooDeep)]);
}

#[test]
fn values_that_json_lacks_are_refused_with_their_path() {
    let nul = of(Kind::StringValue("\0".to_owned()));
    let infinite = of(Kind::NumberValue(f64::INFINITY));
    let values = vec![nul, infinite, Value { kind: None }];
    let list = of(Kind::ListValue(ListValue { values }));
    let fields = BTreeMap::from([
        ("a".to_owned(), list),
        ("\0".to_owned(), of(Kind::BoolValue(true))),
    ]);
    assert_eq!(
        refusals(of(Kind::StructValue(Struct { fields }))),
        [
            ("x.\\u{0}".to_owned(), Reason::FieldInvalid),
            ("x.a[0]".to_owned(), Reason::FieldInvalid),
            ("x.a[1]".to_owned(), Reason::FieldInvalid),
            ("x.a[2]".to_owned(), Reason::FieldInvalid),
        ]
    );
}
