//! Converts messages to domain values. A conversion notes every violation and continues. Its result
//! only counts without violations.

use crate::domain::{Result, etag::ExpectedEtag, violation::Violations};

pub mod dependencies;
pub mod feedback;
pub mod field;
pub mod json;
pub mod names;
pub mod options;
pub mod step;
pub mod task;
pub mod translations;

pub use field::{Field, REQUIRED};

/// The result of `decode`, or all violations that it noted.
pub fn all<T>(decode: impl FnOnce(&mut Violations) -> Option<T>) -> Result<T, Violations> {
    let mut violations = Violations::new();
    match decode(&mut violations) {
        Some(value) if violations.is_empty() => Ok(value),
        Some(_) | None => Err(violations),
    }
}

/// The id in the only field of a request.
pub fn only_guid<Id>(name: &str, guid: &str, parse: fn(&str) -> Option<Id>) -> Result<Id> {
    let id = all(|violations| field::guid(guid, parse, violations.at(name)))?;
    Ok(id)
}

/// The `guid` and `etag` of a delete.
pub fn guid_and_etag<Id>(
    guid: &str,
    parse: fn(&str) -> Option<Id>,
    etag: &str,
) -> Result<(Id, ExpectedEtag)> {
    let decoded = all(|violations| {
        let id = field::guid(guid, parse, violations.at("guid"));
        let expected = field::expected_etag(etag, violations.at("etag"));
        Some((id?, expected))
    })?;
    Ok(decoded)
}
