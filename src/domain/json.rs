//! JSON values that the service does not interpret.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum depth of a JSON value. Each object and array counts as one level.
pub const MAX_JSON_DEPTH: usize = 32;

/// A JSON value of at most [`MAX_JSON_DEPTH`] levels, with finite numbers and without U+0000.
/// This is checked when a message is decoded; a stored value is not checked again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Json(pub Value);

/// An instruction: a JSON object that the service does not interpret.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Instruction(pub Map<String, Value>);

/// Upper bound of the encoded tag, length and nesting of a field, in bytes.
pub const WIRE_OVERHEAD: usize = 16;

/// Counted once for a list with elements, because it has room for four elements from the first one
/// on.
const LIST_BYTES: usize = 64;
/// Counted once for an object with members, because it has room for eleven members from the first
/// one on.
const OBJECT_BYTES: usize = 320;

/// Upper bound of a value's encoded size, in bytes, and at least a quarter of the memory that it
/// takes. Its JSON text may be much shorter, because an encoded number has at least nine bytes.
pub fn wire_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) if values.is_empty() => 0,
        Value::Array(values) => LIST_BYTES + values.iter().map(wire_bytes).sum::<usize>(),
        Value::Object(members) => object_wire_bytes(members),
    };
    WIRE_OVERHEAD + inside
}

/// The same for an object's members.
pub fn object_wire_bytes(members: &Map<String, Value>) -> usize {
    if members.is_empty() {
        return 0;
    }
    let member = |(key, value): (&String, &Value)| key.len() + WIRE_OVERHEAD + wire_bytes(value);
    OBJECT_BYTES + members.iter().map(member).sum::<usize>()
}

/// How many messages nest below the `google.protobuf.Value` of a value.
pub fn wire_depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        // A list, and the value of each element.
        Value::Array(values) => {
            let elements = values.iter().map(|value| 1 + wire_depth(value));
            1 + elements.max().unwrap_or_default()
        }
        Value::Object(members) => 1 + object_wire_depth(members),
    }
}

/// How many messages nest below the `google.protobuf.Struct` of an object.
pub fn object_wire_depth(members: &Map<String, Value>) -> usize {
    // The entry of the map, and its value.
    let members = members.values().map(|value| 2 + wire_depth(value));
    members.max().unwrap_or_default()
}

/// A JSON number from a double; `None` unless it is finite. Whole numbers that a double
/// represents exactly become integers.
pub fn number(number: f64) -> Option<Value> {
    const EXACT_INTEGER_LIMIT: f64 = 9_007_199_254_740_992.0;
    let whole = number.fract() == 0.0 && number.abs() < EXACT_INTEGER_LIMIT;
    if whole && !(number == 0.0 && number.is_sign_negative()) {
        #[allow(clippy::cast_possible_truncation)]
        return Some(Value::from(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_integers_unless_they_are_a_negative_zero_or_inexact() {
        for (double, expected) in [
            (0.0, "0"),
            (-0.0, "-0.0"),
            (-5.0, "-5"),
            (0.5, "0.5"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (9_007_199_254_740_992.0, "9007199254740992.0"),
        ] {
            let text = number(double).map(|value| value.to_string());
            assert_eq!(text.as_deref(), Some(expected));
        }
        assert_eq!(number(f64::INFINITY), None);
    }
}
