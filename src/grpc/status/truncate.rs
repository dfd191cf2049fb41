//! Shortens errors to fit the trailers, of which clients accept about 8 KB after base64
//! and percent-encoding.

use prost::Message;
use tonic_types::{FieldViolation, pb};

use crate::domain::violation::{Violation, Violations};

/// Most bytes of an encoded `BadRequest`.
pub const MAX_BAD_REQUEST_BYTES: usize = 4 * 1024;
/// Most bytes of a path.
pub const MAX_PATH_BYTES: usize = 1024;
/// Most bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 512;
/// Most bytes of a path or description in a status message, where percent-encoding
/// makes up to three bytes of one.
const MAX_MESSAGE_PART_BYTES: usize = 160;

/// As many of the first violations as fit: at least one if there is any.
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

/// Bytes that a violation takes in its `BadRequest`.
fn encoded_len(violation: &FieldViolation) -> usize {
    let bytes = pb::bad_request::FieldViolation::from(violation.clone()).encoded_len();
    1 + prost::length_delimiter_len(bytes) + bytes
}

/// The first violation and how many more there are, such as
/// `step.title: is required (and 2 more)`.
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

/// A text of at most `max` bytes; `…` marks that it was shortened.
pub fn text(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(ELLIPSIS.len()));
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}{ELLIPSIS}")
}
