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
    if !field.at_most(list.len(), MAX_LIST_ITEMS) {
        return Vec::new();
    }
    let instructions = list.into_iter().enumerate();
    let instruction = |(index, message)| object(message, 0, field.index(index)).map(Instruction);
    instructions.filter_map(instruction).collect()
}

pub fn json(message: Message, field: Field<'_>) -> Option<Json> {
    value(message, 0, field).map(Json)
}

/// A value that stands within `depth` objects and arrays.
fn value(message: Message, depth: usize, mut field: Field<'_>) -> Option<Value> {
    let Message { kind } = message;
    match kind {
        None => {
            field.refuse(Reason::FieldInvalid, "is a value of no kind");
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
    let ListValue { values } = message;
    let elements = values.into_iter().enumerate();
    let element = |(index, element)| value(element, depth, field.index(index));
    Some(elements.filter_map(element).collect())
}

pub fn members(fields: BTreeMap<String, Message>, field: Field<'_>) -> Option<Map<String, Value>> {
    object(Struct { fields }, 0, field)
}

fn object(message: Struct, depth: usize, mut field: Field<'_>) -> Option<Map<String, Value>> {
    let depth = deeper(depth, &mut field)?;
    let Struct { fields } = message;
    let member = |(key, member): (String, Message)| {
        let valid = refuse_nul(&key, field.member(&key));
        let value = value(member, depth, field.member(&key))?;
        valid.then_some((key, value))
    };
    Some(fields.into_iter().filter_map(member).collect())
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
