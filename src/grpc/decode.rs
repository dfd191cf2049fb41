//! Messages become domain values.
//!
//! A conversion takes its message apart by name, so that a new field of the
//! contract does not compile until it has a meaning, and moves texts out of it.
//! It notes everything that is wrong and goes on; what it returns counts only
//! while nothing was noted.

use crate::domain::{
    Error,
    etag::Expected,
    ids::{ProductId, RequestId},
    page::PageSize,
    task::Published,
    text::{Body, Line, Text, TextFault},
    violation::{Path, Reason, Violation, Violations},
};

pub mod dependencies;
pub mod document;
pub mod feedback;
pub mod json;
pub mod step;
pub mod step_fields;
pub mod step_patch;
pub mod task;
pub mod translations;

/// Why something that must be there is refused.
pub const REQUIRED: &str = "is required";

/// What was decoded, if nothing is wrong with the request.
pub fn accepted<T>(value: Option<T>, faults: Violations) -> Result<T, Error> {
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        Some(_) | None => Err(Error::Invalid(faults)),
    }
}

/// A part of the request that must be set.
pub fn required<T>(part: Option<T>, path: &Path<'_>, faults: &mut Violations) -> Option<T> {
    if part.is_none() {
        faults.add(path, Reason::FieldRequired, REQUIRED);
    }
    part
}

/// A text that says something.
pub fn line<const MAX: usize>(
    text: String,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Line<MAX>> {
    kept(Line::parse(text), path, faults)
}

/// A text that may be empty.
pub fn text<const MAX: usize>(
    text: String,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<Text<MAX>> {
    kept(Text::parse(text), path, faults)
}

/// The body of a step.
pub fn body(text: String, path: &Path<'_>, faults: &mut Violations) -> Option<Body> {
    kept(Body::parse(text), path, faults)
}

fn kept<T>(parsed: Result<T, TextFault>, path: &Path<'_>, faults: &mut Violations) -> Option<T> {
    parsed
        .map_err(|fault| faults.push(text_violation(fault, path)))
        .ok()
}

/// What is wrong with the text at a path.
pub fn text_violation(fault: TextFault, path: &Path<'_>) -> Violation {
    Violation::new(path, fault.reason(), fault.to_string())
}

/// The state that a caller expects, by its etag.
pub fn expected(etag: &str, path: &Path<'_>, faults: &mut Violations) -> Expected {
    refuse_nul(etag, path, faults);
    Expected::parse(etag)
}

/// Refuses U+0000 in a text that is only compared.
pub fn refuse_nul(text: &str, path: &Path<'_>, faults: &mut Violations) {
    if text.contains('\0') {
        faults.push(text_violation(TextFault::Nul, path));
    }
}

/// A required id; `parse` is that of its type.
pub fn guid<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<T> {
    guid_at(text, parse, path)
        .map_err(|fault| faults.push(fault))
        .ok()
}

/// A required id, or what is wrong with it.
pub fn guid_at<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    path: &Path<'_>,
) -> Result<T, Violation> {
    parse(text).ok_or_else(|| {
        if text.is_empty() {
            Violation::new(path, Reason::FieldRequired, REQUIRED)
        } else {
            Violation::new(path, Reason::FieldInvalid, "is not a hyphenated UUID")
        }
    })
}

/// An id that may be left out.
pub fn optional_guid<T>(
    text: &str,
    parse: fn(&str) -> Option<T>,
    path: &Path<'_>,
    faults: &mut Violations,
) -> Option<T> {
    (!text.is_empty()).then(|| guid(text, parse, path, faults))?
}

/// The id of a retry, if the caller guards against doing things twice.
pub fn request_id(text: &str, faults: &mut Violations) -> Option<RequestId> {
    optional_guid(text, RequestId::parse, &Path::root("request_id"), faults)
}

/// A product that must be set.
pub fn product(id: Option<i64>, path: &Path<'_>, faults: &mut Violations) -> Option<ProductId> {
    let id = required(id, path, faults)?;
    product_at(id, path)
        .map_err(|fault| faults.push(fault))
        .ok()
}

/// A product, or what is wrong with it.
pub fn product_at(id: i64, path: &Path<'_>) -> Result<ProductId, Violation> {
    ProductId::new(id)
        .ok_or_else(|| Violation::new(path, Reason::FieldOutOfRange, "must be greater than 0"))
}

/// Whether something is shown.
pub fn published(number: i32, path: &Path<'_>, faults: &mut Violations) -> Option<Published> {
    let published = Published::new(number);
    if published.is_none() {
        faults.add(path, Reason::FieldOutOfRange, "must not be negative");
    }
    published
}

/// The `page_size` of a listing.
pub fn page_size(size: i32, faults: &mut Violations) -> Option<PageSize> {
    let page_size = PageSize::new(size);
    if page_size.is_none() {
        faults.add(
            &Path::root("page_size"),
            Reason::FieldOutOfRange,
            "must not be negative",
        );
    }
    page_size
}

/// Notes when a list has more elements than allowed.
pub fn at_most(count: usize, max: usize, path: &Path<'_>, faults: &mut Violations) -> bool {
    if count > max {
        faults.add(
            path,
            Reason::TooManyElements,
            format!("has {count} elements; at most {max} are allowed"),
        );
    }
    count <= max
}

/// A text that was sent, where an empty one was not.
pub fn sent_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A list that was sent, where an empty one was not.
pub fn sent_list<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
