//! JSON of the caller's own shape.

use prost_types::{ListValue, Struct, Value as Message, value::Kind};
use serde_json::{Map, Value};

use super::at_most;
use crate::domain::{
    json::{DEPTH_MAX, Instruction, Json, number},
    text::{LIST_MAX, TextFault, check},
    violation::{Path, Reason, Violations},
};

/// Instructions, each the outermost level of its own JSON.
pub fn instructions(
    list: Vec<Struct>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Vec<Instruction> {
    if !at_most(list.len(), LIST_MAX, path, faults) {
        return Vec::new();
    }
    let instructions = list.into_iter().enumerate();
    let instruction = |(index, message)| {
        let members = object(message, 0, &path.index(index), faults)?;
        Some(Instruction(members))
    };
    instructions.filter_map(instruction).collect()
}

/// A JSON value.
pub fn json(message: Message, path: &Path<'_>, faults: &mut Violations) -> Option<Json> {
    value(message, 0, path, faults).map(Json)
}

/// A value within as many objects and arrays as `depth` says.
fn value(
    message: Message,
    depth: usize,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Value> {
    let Message { kind } = message;
    match kind {
        None => {
            faults.add(path, Reason::FieldInvalid, "is a value of no kind");
            None
        }
        Some(Kind::NullValue(_)) => Some(Value::Null),
        Some(Kind::BoolValue(value)) => Some(Value::Bool(value)),
        Some(Kind::NumberValue(value)) => {
            let number = number(value);
            if number.is_none() {
                faults.add(path, Reason::FieldInvalid, "is not a finite number");
            }
            number
        }
        Some(Kind::StringValue(text)) => {
            without_nul(&text, path, faults).then_some(Value::String(text))
        }
        Some(Kind::ListValue(list)) => array(list, depth, path, faults).map(Value::Array),
        Some(Kind::StructValue(members)) => object(members, depth, path, faults).map(Value::Object),
    }
}

fn array(
    message: ListValue,
    depth: usize,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Vec<Value>> {
    let depth = deeper(depth, path, faults)?;
    let ListValue { values } = message;
    let elements = values.into_iter().enumerate();
    let element = |(index, element)| value(element, depth, &path.index(index), faults);
    Some(elements.filter_map(element).collect())
}

fn object(
    message: Struct,
    depth: usize,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Map<String, Value>> {
    let depth = deeper(depth, path, faults)?;
    let Struct { fields } = message;
    let member = |(key, member): (String, Message)| {
        let path = path.field(&key);
        let valid = without_nul(&key, &path, faults);
        let value = value(member, depth, &path, faults)?;
        valid.then_some((key, value))
    };
    Some(fields.into_iter().filter_map(member).collect())
}

/// The depth within one more object or array.
fn deeper(depth: usize, path: &Path<'_>, faults: &mut Violations) -> Option<usize> {
    if depth < DEPTH_MAX {
        return Some(depth + 1);
    }
    let description = format!("is nested more than {DEPTH_MAX} levels deep");
    faults.add(path, Reason::NestingTooDeep, description);
    None
}

fn without_nul(text: &str, path: &Path<'_>, faults: &mut Violations) -> bool {
    let valid = check(text, usize::MAX).is_ok();
    if !valid {
        let fault = TextFault::Nul;
        faults.add(path, fault.reason(), fault.to_string());
    }
    valid
}
