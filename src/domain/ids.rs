//! Identifiers.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The account of a call. It comes from credentials, never from a message. A call has no access to
/// other accounts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(String);

impl AccountId {
    pub const MAX: usize = 64;
    /// Stands for the server itself; no caller has it.
    pub const NONE: Self = Self(String::new());

    /// Accepts 1 to 64 of `A-Z a-z 0-9 . _ : -`.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=Self::MAX).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
        valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses a hyphenated UUID of either case. Other spellings of a UUID are refused.
fn parse_guid(text: &str) -> Option<Uuid> {
    (text.len() == uuid::fmt::Hyphenated::LENGTH)
        .then(|| Uuid::try_parse(text).ok())
        .flatten()
}

macro_rules! guid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub struct $name(pub Uuid);

        impl $name {
            pub fn parse(text: &str) -> Option<Self> {
                parse_guid(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }
    };
}

guid!(TaskId);
guid!(StepId);
guid!(
    /// Identifies a request, so that a retry is recognized.
    RequestId
);

/// A product of the caller's catalog: greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProductId(i64);

impl ProductId {
    pub const FIRST: Self = Self(1);

    pub fn new(id: i64) -> Option<Self> {
        (id > 0).then_some(Self(id))
    }

    pub fn get(self) -> i64 {
        self.0
    }
}

/// A role of an account: greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoleId(pub i64);
