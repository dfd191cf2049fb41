//! Credentials become a [`Caller`]; nothing else in the service knows where an
//! account comes from.

use std::fmt;

use crate::domain::ids::AccountId;

/// What a caller may do. Each rpc needs exactly one; none implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Get, list and export.
    Read,
    /// Create, update, delete and import.
    Write,
    /// The automatic translation process.
    Translate,
    /// Roles.
    Admin,
}

impl Scope {
    /// The name as credentials spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Translate => "translate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account whose data the call works on.
    pub account: AccountId,
    /// The person or process behind the call, for the log; may be empty.
    pub subject: String,
    /// What the caller may do.
    pub scopes: Vec<Scope>,
}
