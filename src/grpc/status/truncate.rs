//! Shortens errors to fit into the trailers. Clients accept about 8 KB after base64 and
//! percent-encoding.

use prost::Message;
use tonic_types::{FieldViolation, pb};

use crate::domain::violation::{Violation, Violations};

/// The maximum size of an encoded `BadRequest`, in bytes.
pub const MAX_BAD_REQUEST_BYTES: usize = 4 * 1024;
/// The maximum size of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 1024;
/// The maximum size of a description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 512;
/// The maximum size of a path or description in a status message, in bytes. Percent-encoding may
/// triple it.
const MAX_MESSAGE_PART_BYTES: usize = 160;

/// The first violations, as many as fit. At least one if there are any.
pub fn violations(all: &[Violation]) -> Vec<FieldViolation> {
    let mut size = 0;
    all.iter()
        .take(Violations::MAX_VIOLATIONS)
        .map(field_violation)
        .take_while(|violation| {
            size += encoded_len(violation);
            size <= MAX_BAD_REQUEST_BYTES
        })
        .collect()
}

fn field_violation(violation: &Violation) -> FieldViolation {
    let path = text(&violation.path, MAX_PATH_BYTES);
    let mut shown = FieldViolation::new(path, text(&violation.description, MAX_DESCRIPTION_BYTES));
    shown.reason = <&str>::from(violation.reason).to_owned();
    shown
}

/// The bytes that a violation takes in a `BadRequest`.
fn encoded_len(violation: &FieldViolation) -> usize {
    let bytes = pb::bad_request::FieldViolation::from(violation.clone()).encoded_len();
    1 + prost::length_delimiter_len(bytes) + bytes
}

/// The first violation and the number of others, such as `step.title: is required (and 2 more)`.
pub fn message(first: &Violation, total: usize, shown: usize) -> String {
    let path = text(&first.path, MAX_MESSAGE_PART_BYTES);
    let description = text(&first.description, MAX_MESSAGE_PART_BYTES);
    let colon = if path.is_empty() { "" } else { ": " };
    let more = match total {
        0 | 1 => String::new(),
        total if shown < total => {
            format!(" (and {} more; the first {shown} are shown)", total - 1)
        }
        total => format!(" (and {} more)", total - 1),
    };
    format!("{path}{colon}{description}{more}")
}

/// Shortens a text to at most `max` bytes, and marks this with `…`.
pub fn text(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(ELLIPSIS.len()));
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}{ELLIPSIS}")
}
