//! Versions as callers see them.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::time::Timestamp;

/// The state of one resource as an opaque text.
///
/// It is made from the row's version and the moment of its last change, so that
/// an etag shown by a dry run, whose change never came to be, matches nothing
/// that is written later under the same version number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etag(String);

impl Etag {
    /// The etag of a resource in a version.
    pub fn of(guid: Uuid, version: i64, modified: Timestamp) -> Self {
        let hash = Sha256::new()
            .chain_update(guid)
            .chain_update(version.to_be_bytes())
            .chain_update(modified.0.to_be_bytes())
            .finalize();
        Self(URL_SAFE_NO_PAD.encode(hash.split_at(12).0))
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state that a caller expects a resource to be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any: the caller sent no etag.
    Any,
    /// The one with this etag.
    Is(String),
}

impl Expected {
    /// Reads an etag; empty is any.
    pub fn parse(etag: &str) -> Self {
        if etag.is_empty() {
            Self::Any
        } else {
            Self::Is(etag.to_owned())
        }
    }

    /// Whether a state is the expected one.
    pub fn matches(&self, etag: &Etag) -> bool {
        match self {
            Self::Any => true,
            Self::Is(expected) => *expected == etag.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_its_own_state_only() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let etag = Etag::of(one, 7, Timestamp(1));
        let expected = Expected::parse(&etag.to_string());
        assert!(expected.matches(&Etag::of(one, 7, Timestamp(1))));
        assert!(!expected.matches(&Etag::of(one, 8, Timestamp(1))));
        assert!(!expected.matches(&Etag::of(one, 7, Timestamp(2))));
        assert!(!expected.matches(&Etag::of(other, 7, Timestamp(1))));
        assert!(Expected::parse("").matches(&etag));
        assert!(!Expected::parse("v7").matches(&etag));
    }
}
