//! JSON is decoded and encoded without change.

use proptest::prelude::*;
use prost_types::{ListValue, Struct, Value, value::Kind};

use super::{decode::json::json, encode::json as encoded};
use crate::domain::violation::Violations;

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

proptest! {
    #[test]
    fn json_is_decoded_and_encoded_without_change(sent in any_value()) {
        let mut violations = Violations::new();
        let stored = json(sent.clone(), violations.at("x"));
        prop_assert!(violations.is_empty());
        let text = stored.map(|json| json.0.to_string()).unwrap_or_default();
        let read = serde_json::from_str(&text).map(encoded::value);
        prop_assert_eq!(read.ok(), Some(sent));
    }
}
