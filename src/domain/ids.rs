//! Identifiers.

use std::fmt;

use uuid::Uuid;

/// The account that owns everything a call can see. It comes from credentials,
/// never from a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(String);

impl AccountId {
    /// The longest account id, in characters.
    pub const MAX: usize = 64;

    /// Accepts 1 to 64 of `A-Z a-z 0-9 . _ : -`.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=Self::MAX).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
        valid.then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a hyphenated UUID of either case; other spellings of a UUID are not
/// GUIDs of this service.
fn parse_guid(text: &str) -> Option<Uuid> {
    (text.len() == uuid::fmt::Hyphenated::LENGTH)
        .then(|| Uuid::try_parse(text).ok())
        .flatten()
}

macro_rules! guid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Reads a hyphenated UUID of either case.
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

guid!(
    /// Names a task within its account.
    TaskId
);
guid!(
    /// Names a step within its account.
    StepId
);
guid!(
    /// Names one intent of a caller, so that a retry is recognised.
    RequestId
);

/// A product of the caller's catalogue: greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProductId(i64);

impl ProductId {
    /// Accepts what is greater than 0.
    pub fn new(id: i64) -> Option<Self> {
        (id > 0).then_some(Self(id))
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// A role of an account: greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleId(pub i64);
