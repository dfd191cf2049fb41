//! Authentication: the credentials of a call become its [`Caller`]. Nothing else in the
//! service knows where an account comes from.

mod crypto;
mod header;
mod jwt;
mod keys;
mod sign;
mod subject;

use std::fmt;

use http::HeaderMap;

pub use self::{
    jwt::{TokenRules, Tokens},
    keys::{KeyError, KeySource, SigningSecret},
    sign::{Grant, SignError, sign},
    subject::Subject,
};
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
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Translate, Self::Admin];

    /// The name as credentials spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Translate => "translate",
            Self::Admin => "admin",
        }
    }

    /// The scopes that a space-separated list names. Names of no scope of ours
    /// are left out: credentials may speak of other services too.
    pub fn parse_list(list: &str) -> Vec<Self> {
        let named = |scope: &Self| list.split_ascii_whitespace().any(|n| n == scope.name());
        Self::ALL.into_iter().filter(named).collect()
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

impl Caller {
    /// Whether the caller's credentials carry the scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// Finds the caller in the metadata of a call.
#[derive(Debug)]
pub enum Authenticator {
    /// Trusts `x-account-id`, `x-subject` and `x-scopes`.
    Header,
    /// Trusts a signed token in `authorization`, and nothing else.
    Jwt(Box<Tokens>),
}

impl Authenticator {
    /// Reads the caller from the headers of a request. May wait some seconds for keys.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        match self {
            Self::Header => header::authenticate(headers),
            Self::Jwt(tokens) => tokens.authenticate(headers).await,
        }
    }
}

/// Why credentials are refused. The text names the metadata and what is wrong, and never
/// repeats a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There are no credentials.
    #[error("{0}")]
    Missing(&'static str),
    /// The credentials are not accepted.
    #[error("{0}")]
    Invalid(&'static str),
}
