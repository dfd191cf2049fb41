//! Translates the texts in an instruction.
//!
//! Authors choose the shape of instructions, and much in them is for machines: kinds,
//! command lines, addresses. So a string is translated only under a member whose name
//! says that people read it.

use prost_types::{ListValue, Struct, Value, value::Kind};

use super::{chunking::TranslateFn, html::translate_html};

/// The names of members, in lower case, that hold text. A string is text when
/// the nearest member name above it, through arrays, is one of these.
pub const TEXT_MEMBERS: [&str; 22] = [
    "alt",
    "body",
    "caption",
    "description",
    "heading",
    "help",
    "hint",
    "html",
    "items",
    "label",
    "message",
    "note",
    "placeholder",
    "prompt",
    "question",
    "subtitle",
    "summary",
    "text",
    "title",
    "tooltip",
    "warning",
    "warnings",
];

/// Translates the texts of an instruction and keeps everything else.
pub(super) fn translate_instruction(
    instruction: &Struct,
    translate: &mut TranslateFn<'_>,
) -> Struct {
    let fields = instruction.fields.iter().map(|(name, value)| {
        let is_text = TEXT_MEMBERS
            .iter()
            .any(|text| name.eq_ignore_ascii_case(text));
        let value = if is_text {
            translate_text(value, translate)
        } else {
            translate_nested(value, translate)
        };
        (name.clone(), value)
    });
    Struct {
        fields: fields.collect(),
    }
}

/// Translates a value under a member that holds text.
fn translate_text(value: &Value, translate: &mut TranslateFn<'_>) -> Value {
    let kind = match &value.kind {
        Some(Kind::StringValue(string)) if !is_address(string) => {
            Kind::StringValue(translate_html(string, translate))
        }
        Some(Kind::ListValue(list)) => map_list(list, |value| translate_text(value, translate)),
        _ => return translate_nested(value, translate),
    };
    Value { kind: Some(kind) }
}

/// Translates the texts that lie deeper in a value that is no text itself.
fn translate_nested(value: &Value, translate: &mut TranslateFn<'_>) -> Value {
    let kind = match &value.kind {
        Some(Kind::StructValue(inner)) => {
            Some(Kind::StructValue(translate_instruction(inner, translate)))
        }
        Some(Kind::ListValue(list)) => {
            Some(map_list(list, |value| translate_nested(value, translate)))
        }
        kind => kind.clone(),
    };
    Value { kind }
}

fn map_list(list: &ListValue, map: impl FnMut(&Value) -> Value) -> Kind {
    let values = list.values.iter().map(map).collect();
    Kind::ListValue(ListValue { values })
}

fn is_address(string: &str) -> bool {
    string.contains("://") && !string.trim().contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Value {
        let kind = Some(Kind::StringValue(text.to_owned()));
        Value { kind }
    }

    fn list(values: Vec<Value>) -> Value {
        let kind = Some(Kind::ListValue(prost_types::ListValue { values }));
        Value { kind }
    }

    fn object(fields: &[(&str, Value)]) -> Struct {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        Struct {
            fields: fields.collect(),
        }
    }

    fn nested(inner: Struct) -> Value {
        let kind = Some(Kind::StructValue(inner));
        Value { kind }
    }

    fn in_upper_case(instruction: &Struct) -> Struct {
        translate_instruction(instruction, &mut |text| text.to_uppercase())
    }

    #[test]
    fn members_that_people_read_are_translated() {
        let seconds = Value {
            kind: Some(Kind::NumberValue(30.0)),
        };
        let source = object(&[
            ("kind", string("timer")),
            ("Label", string("Hold <b>the</b> button")),
            ("title", string("Wait")),
            ("seconds", seconds.clone()),
        ]);
        let expected = object(&[
            ("kind", string("timer")),
            ("Label", string("HOLD <b>THE</b> BUTTON")),
            ("title", string("WAIT")),
            ("seconds", seconds),
        ]);
        assert_eq!(in_upper_case(&source), expected);
    }

    #[test]
    fn lists_and_objects_are_followed() {
        let inner = |text: &str| nested(object(&[("id", string("a b")), ("text", string(text))]));
        let source = |one: &str, two: &str| {
            object(&[
                ("items", list(vec![string(one), inner(two)])),
                ("media", list(vec![inner(two), string("a b")])),
            ])
        };
        assert_eq!(in_upper_case(&source("one", "two")), source("ONE", "TWO"));
    }

    #[test]
    fn commands_and_addresses_stay() {
        let source = object(&[
            (
                "line",
                string("nmcli networking off && nmcli networking on"),
            ),
            ("text", string("https://example.com/a")),
        ]);
        assert_eq!(in_upper_case(&source), source);
    }
}
