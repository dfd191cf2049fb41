//! Versions as callers see them.

use std::fmt;

/// The version of a resource as an opaque text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag(pub i64);

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{:x}", self.0)
    }
}

/// The version that a caller expects a resource to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any: the caller sent none.
    Any,
    /// This one.
    Version(i64),
    /// None there is: what the caller sent was never given out.
    Unknown,
}

impl Expected {
    /// Reads an etag; empty is any.
    pub fn parse(etag: &str) -> Self {
        if etag.is_empty() {
            return Self::Any;
        }
        etag.strip_prefix('v')
            .and_then(|hex| i64::from_str_radix(hex, 16).ok())
            .filter(|version| Etag(*version).to_string() == etag)
            .map_or(Self::Unknown, Self::Version)
    }

    /// Whether a version is the expected one.
    pub fn matches(self, version: i64) -> bool {
        match self {
            Self::Any => true,
            Self::Version(expected) => expected == version,
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_its_own_version_only() {
        let etag = Etag(7).to_string();
        assert!(Expected::parse(&etag).matches(7));
        assert!(!Expected::parse(&etag).matches(8));
        assert!(Expected::parse("").matches(8));
        for forged in ["7", "v", "v07", "V7", "v-1", "v+7", "nonsense"] {
            assert!(!Expected::parse(forged).matches(7), "{forged}");
        }
    }
}
