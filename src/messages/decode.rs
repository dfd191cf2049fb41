//! Converts messages to domain values. A conversion notes every violation and goes on; its result
//! counts only when there is none.

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

/// What `decode` returns, or all violations that it noted.
pub fn all<T>(decode: impl FnOnce(&mut Violations) -> Option<T>) -> Result<T, Violations> {
    let mut violations = Violations::new();
    match decode(&mut violations) {
        Some(value) if violations.is_empty() => Ok(value),
        Some(_) | None => Err(violations),
    }
}

/// The id in this field of a request that has no other field.
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
