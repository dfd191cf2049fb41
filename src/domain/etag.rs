//! Versions as callers see them.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    error::{Error, Result},
    revision::Revision,
};

/// The state of one resource as an opaque text.
///
/// It is made from the row's version and the moment of its last change, so that
/// an etag shown by a dry run, whose change never came to be, matches nothing
/// that is written later under the same version number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etag(String);

impl Etag {
    /// The etag of a resource in a state.
    pub fn of(guid: Uuid, revision: &Revision) -> Self {
        let Revision {
            version, modified, ..
        } = revision;
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
pub enum ExpectedEtag {
    /// Any: the caller sent no etag.
    Any,
    /// The one with this etag.
    Is(String),
}

impl ExpectedEtag {
    /// Reads an etag; empty is any.
    pub fn parse(etag: &str) -> Self {
        if etag.is_empty() {
            Self::Any
        } else {
            Self::Is(etag.to_owned())
        }
    }

    /// Fails when the resource is in another state than the expected one.
    pub fn check(&self, etag: &Etag) -> Result<()> {
        match self {
            Self::Is(expected) if *expected != etag.0 => Err(Error::EtagMismatch),
            Self::Is(_) | Self::Any => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn an_etag_matches_its_own_state_only() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let revision = |version, modified| Revision {
            version,
            modified: Timestamp(modified),
            ..Revision::first(Timestamp(0))
        };
        let etag = Etag::of(one, &revision(7, 1));
        let expected = ExpectedEtag::parse(&etag.to_string());
        assert!(expected.check(&Etag::of(one, &revision(7, 1))).is_ok());
        assert!(expected.check(&Etag::of(one, &revision(8, 1))).is_err());
        assert!(expected.check(&Etag::of(one, &revision(7, 2))).is_err());
        assert!(expected.check(&Etag::of(other, &revision(7, 1))).is_err());
        assert!(ExpectedEtag::parse("").check(&etag).is_ok());
        assert!(ExpectedEtag::parse("v7").check(&etag).is_err());
    }
}
