//! Reads the error of prost for a request that it cannot decode.

use crate::domain::violation::{Reason, Violation};

const PREFIX: &str = "failed to decode Protobuf message: ";
const TOO_DEEP: &str = "recursion limit reached";

/// The violation of an error `Inner.field: Outer.field: cause`, which has the innermost
/// field first and neither list indexes nor map keys.
pub fn violation(error: &str) -> Violation {
    let mut rest = error.strip_prefix(PREFIX).unwrap_or(error);
    let mut fields = Vec::new();
    while let Some((place, cause)) = rest.split_once(": ")
        && let Some(field) = field(place, fields.is_empty())
    {
        fields.push(field);
        rest = cause;
    }
    fields.reverse();
    let reason = if rest.contains(TOO_DEEP) {
        Reason::NestingTooDeep
    } else {
        Reason::FieldInvalid
    };
    Violation {
        path: fields.join("."),
        reason,
        description: format!("cannot be decoded: {rest}"),
    }
}

/// The field in `Message.field`; `None` for other texts.
fn field(place: &str, is_innermost: bool) -> Option<&str> {
    let (message, field) = place.split_once('.')?;
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let field = match (message, field.strip_prefix("r#").unwrap_or(field)) {
        // prost names oneofs. Only these fields of oneofs contain further messages of the API.
        ("DependencyNode", "node") => "group",
        ("PreviewTaskRequest" | "ValidateTaskRequest", "source") if !is_innermost => "document",
        (_, field) => field,
    };
    (word(message) && word(field)).then_some(field)
}
