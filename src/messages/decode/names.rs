//! Names and values of variables.

use super::{REQUIRED, field::Field};
use crate::domain::{
    analysis::{
        KnownVariables, VariableValue,
        preview::{MAX_ANSWER_CHARS, MAX_FULL_NAME_CHARS, MAX_VARIABLE_NAMES},
    },
    text::check,
    violation::Reason,
};

/// The variables that a list `known_variables` declares.
pub fn known_variables(names: Vec<String>, mut list: Field<'_>) -> KnownVariables {
    let checked = list.elements(names, MAX_VARIABLE_NAMES, |name, field| {
        check_name(&name, field);
        Some(name)
    });
    checked.map(KnownVariables::new).unwrap_or_default()
}

/// Refuses invalid names of variables.
pub fn check_name(name: &str, mut field: Field<'_>) {
    if name.is_empty() {
        field.refuse(Reason::FieldRequired, REQUIRED);
    }
    field.accept(check(name, MAX_FULL_NAME_CHARS));
}

pub fn variable_value(message: prost_types::Value, mut field: Field<'_>) -> Option<VariableValue> {
    use prost_types::value::Kind;

    let prost_types::Value { kind } = message;
    match kind {
        Some(Kind::NullValue(_)) => return Some(VariableValue::Unanswered),
        Some(Kind::BoolValue(value)) => return Some(VariableValue::Bool(value)),
        Some(Kind::NumberValue(number)) if number.is_finite() => {
            return Some(VariableValue::Number(number));
        }
        Some(Kind::StringValue(text)) => {
            let checked = field.accept(check(&text, MAX_ANSWER_CHARS));
            return checked.map(|()| VariableValue::Text(text));
        }
        Some(Kind::NumberValue(_) | Kind::StructValue(_) | Kind::ListValue(_)) | None => {}
    }
    let description = "is not a string, a finite number, a boolean or null";
    field.refuse(Reason::FieldInvalid, description);
    None
}
