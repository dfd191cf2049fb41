//! JSON values of the caller's own shape.

use serde_json::{Map, Value};

/// Deepest JSON value: every object and array counts one.
pub const DEPTH_MAX: usize = 32;

/// A JSON value of at most [`DEPTH_MAX`] levels, with finite numbers and
/// without U+0000. Made by the wire and the store from values that they have
/// checked while converting.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(pub Value);

/// An instruction: a JSON object of the caller's own shape.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Instruction(pub Map<String, Value>);

/// Bytes that a field's tag, length and nesting take on the wire at most.
pub const WIRE_OVERHEAD: usize = 16;

/// Bytes that a value takes on the wire at most; its stored text may be far
/// shorter, as a number takes nine bytes and more.
pub fn wire_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(wire_bytes).sum(),
        Value::Object(members) => object_wire_bytes(members),
    };
    WIRE_OVERHEAD + inside
}

/// Bytes that the members of an object take on the wire at most.
pub fn object_wire_bytes(members: &Map<String, Value>) -> usize {
    let member = |(key, value): (&String, &Value)| key.len() + WIRE_OVERHEAD + wire_bytes(value);
    members.iter().map(member).sum()
}

/// A JSON number from a double: whole numbers that a double holds exactly are
/// written without a fraction. `None` unless finite.
pub fn number(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = number.fract() == 0.0 && number.abs() < EXACT;
    if whole && !(number == 0.0 && number.is_sign_negative()) {
        #[allow(clippy::cast_possible_truncation)]
        return Some(Value::from(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}
