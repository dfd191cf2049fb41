//! Authentication: turns the credentials of a call into its [`Caller`]. No other module knows where
//! an account comes from.

mod claims;
mod header;
mod jwt;
mod keys;
mod signatures;

use std::{borrow::Cow, time::SystemTime};

use http::HeaderMap;

pub use self::{jwt::Tokens, keys::KeyError, signatures::sign};
pub use crate::{
    config::{KeySource, TokenConfig, TokenGrant},
    domain::caller::{Caller, Scope, Subject},
};

/// Finds the caller in the metadata of a call.
pub enum Authenticator {
    /// Trusts `x-account-id`, `x-subject` and `x-scopes`.
    Header,
    /// Only trusts a signed token in `authorization`.
    Jwt(Tokens),
}

impl Authenticator {
    /// Reads the caller from the headers of a request. May wait a few seconds for keys.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        match self {
            Self::Header => header::authenticate(headers),
            Self::Jwt(tokens) => tokens.authenticate(headers).await,
        }
    }

    /// The maximum size of an `authorization` header, in bytes of HTTP/2 headers.
    pub fn max_credential_bytes(&self) -> usize {
        match self {
            Self::Header => 0,
            Self::Jwt(_) => Tokens::MAX_HEADER_BYTES,
        }
    }

    /// What the keys that verify tokens were read from, and when; `None` without tokens.
    pub fn keys_read(&self) -> Option<(&'static str, SystemTime)> {
        match self {
            Self::Header => None,
            Self::Jwt(tokens) => Some(tokens.keys.source_and_time()),
        }
    }
}

/// Why credentials are refused. The text names the metadata or claim and the problem. It repeats no
/// values except times.
pub enum Rejection {
    /// There are no credentials.
    Missing(Cow<'static, str>),
    /// The credentials are not accepted.
    Invalid(Cow<'static, str>),
}
