//! JSON values.

use std::collections::BTreeMap;

use prost_types::{ListValue, Struct, Value as Message, value::Kind};
use serde_json::{Map, Value};

use super::field::{Field, refuse_nul};
use crate::domain::{
    json::{Instruction, Json, MAX_JSON_DEPTH, number},
    text::MAX_LIST_ITEMS,
    violation::Reason,
};

/// Instructions; the nesting of each is counted on its own.
pub fn instructions(list: Vec<Struct>, mut field: Field<'_>) -> Vec<Instruction> {
    let instruction = |message, field: Field<'_>| object(message, 0, field).map(Instruction);
    field
        .elements(list, MAX_LIST_ITEMS, instruction)
        .unwrap_or_default()
}

pub fn json(message: Message, field: Field<'_>) -> Option<Json> {
    value(message, 0, field).map(Json)
}

/// A value within `depth` objects and arrays.
fn value(message: Message, depth: usize, mut field: Field<'_>) -> Option<Value> {
    match message.kind {
        None => {
            field.refuse(
                Reason::FieldInvalid,
                "is an empty Value: set one of its fields, such as null_value or string_value",
            );
            None
        }
        Some(Kind::NullValue(_)) => Some(Value::Null),
        Some(Kind::BoolValue(value)) => Some(Value::Bool(value)),
        Some(Kind::NumberValue(value)) => {
            let number = number(value);
            if number.is_none() {
                field.refuse(Reason::FieldInvalid, "is not a finite number");
            }
            number
        }
        Some(Kind::StringValue(text)) => refuse_nul(&text, field).then_some(Value::String(text)),
        Some(Kind::ListValue(list)) => array(list, depth, field).map(Value::Array),
        Some(Kind::StructValue(members)) => object(members, depth, field).map(Value::Object),
    }
}

fn array(message: ListValue, depth: usize, mut field: Field<'_>) -> Option<Vec<Value>> {
    let depth = deeper(depth, &mut field)?;
    field.elements(message.values, usize::MAX, |element, field| {
        value(element, depth, field)
    })
}

pub fn members(fields: BTreeMap<String, Message>, field: Field<'_>) -> Option<Map<String, Value>> {
    object(Struct { fields }, 0, field)
}

fn object(message: Struct, depth: usize, mut field: Field<'_>) -> Option<Map<String, Value>> {
    let depth = deeper(depth, &mut field)?;
    let member = |(key, member): (String, Message)| {
        let valid = refuse_nul(&key, field.member(&key));
        let value = value(member, depth, field.member(&key))?;
        valid.then_some((key, value))
    };
    Some(message.fields.into_iter().filter_map(member).collect())
}

/// The depth within one more object or array.
fn deeper(depth: usize, field: &mut Field<'_>) -> Option<usize> {
    if depth < MAX_JSON_DEPTH {
        return Some(depth + 1);
    }
    let description = format!("is nested more than {MAX_JSON_DEPTH} levels deep");
    field.refuse(Reason::NestingTooDeep, description);
    None
}
