//! Signs tokens with the shared secret.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

use super::{SigningSecret, TokenGrant, TokenRules, crypto};

/// Why no token was signed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The clock of this machine is before 1970.
    #[error("the clock of this machine is before 1970: set it")]
    Clock,
    /// The token cannot be encoded: a bug.
    #[error("the token cannot be encoded")]
    Encoding,
}

#[derive(Serialize)]
struct SignedClaims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    account_id: &'a str,
    scope: String,
    iat: u64,
    exp: u64,
}

/// Signs a token that these rules accept until it expires.
pub fn sign(
    secret: &SigningSecret,
    rules: &TokenRules,
    grant: &TokenGrant,
) -> Result<String, SignError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| SignError::Clock)?.as_secs();
    let scopes: Vec<_> = grant.scopes.iter().map(|scope| scope.name()).collect();
    let claims = SignedClaims {
        iss: &rules.issuer,
        aud: &rules.audience,
        sub: grant.subject.as_str(),
        account_id: grant.account.as_str(),
        scope: scopes.join(" "),
        iat: now,
        exp: now.saturating_add(grant.expires.as_secs()),
    };
    crypto::install();
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::new(Algorithm::HS256), &claims, &key).map_err(|_| SignError::Encoding)
}
