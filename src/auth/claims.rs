//! The requirements for the claims of a token. Only the holder of a token with a valid signature
//! learns which claim is wrong.

use std::fmt::Display;

use jsonwebtoken::{
    Algorithm, Validation,
    errors::{Error, ErrorKind},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Caller, Rejection, Scope, Subject, TokenConfig,
    jwt::{NO_TOKEN, explain, refuse},
};
use crate::domain::ids::AccountId;

/// The tolerated clock difference, in seconds.
const LEEWAY: u64 = 30;

/// The requirements that `jsonwebtoken` checks.
pub(super) fn validation(algorithm: Algorithm, config: &TokenConfig) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[&config.issuer]);
    validation.set_audience(&[&config.audience]);
    validation.validate_nbf = true;
    validation.leeway = LEEWAY;
    validation
}

/// Why `jsonwebtoken` refuses a token.
pub(super) fn rejection(error: &Error, config: &TokenConfig) -> Rejection {
    let expected = |claim: &str| match claim {
        "iss" => format!("{:?}", config.issuer),
        "aud" => format!("{:?}, or a list that contains it", config.audience),
        _ => "a number of seconds since 1970".to_owned(),
    };
    let wrong_claim = |claim, problem| wrong(claim, problem, expected(claim));
    match error.kind() {
        ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => {
            refuse("its signature was not made with the key")
        }
        // `jsonwebtoken` cannot read past a list or an object in one of these claims.
        ErrorKind::Json(_) => explain(
            "its claims cannot be read",
            "the claims must be a JSON object without repeated names, with a string as `sub` and \
             numbers as `exp` and `nbf`",
        ),
        ErrorKind::MissingRequiredClaim(claim) => wrong_claim(claim, "is missing or malformed"),
        ErrorKind::InvalidClaimFormat(claim) => wrong_claim(claim, "is malformed"),
        ErrorKind::InvalidIssuer => wrong_claim("iss", "is another issuer"),
        ErrorKind::InvalidAudience => wrong_claim("aud", "is another audience"),
        ErrorKind::ExpiredSignature => {
            explain("its claim exp has passed", "the token has expired (`exp`)")
        }
        ErrorKind::ImmatureSignature => explain(
            "its claim nbf is in the future",
            "the token is not valid yet (`nbf`)",
        ),
        _ => refuse(NO_TOKEN),
    }
}

/// The claims that `jsonwebtoken` does not check, or not completely. They may have any type, so that an
/// error can name the claim. `null` counts as missing. A repeated claim is refused.
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: Option<Value>,
    sub: Option<Value>,
    account_id: Option<Value>,
    scope: Option<Value>,
}

impl Claims {
    pub fn caller(&self) -> Result<Caller, Rejection> {
        // `jsonwebtoken` also accepts a list, which RFC 7519 does not allow.
        string("iss", &self.iss, "one issuer")?;
        let expected = "1 to 256 bytes without control characters";
        let subject = Subject::parse(string("sub", &self.sub, expected)?)
            .ok_or_else(|| wrong("sub", "is not allowed", expected))?;
        let expected = "1 to 64 characters of A-Z a-z 0-9 . _ : -";
        let account = AccountId::parse(string("account_id", &self.account_id, expected)?)
            .ok_or_else(|| wrong("account_id", "is not allowed", expected))?;
        let scope = match &self.scope {
            None => "",
            scope => string("scope", scope, "names of scopes, separated by spaces")?,
        };
        Ok(Caller {
            account,
            subject: subject.to_string(),
            scopes: Scope::parse_list(scope),
        })
    }
}

fn wrong(claim: &str, problem: &str, expected: impl Display) -> Rejection {
    let message = format!("`{claim}` {problem}: it must be {expected}");
    explain(&format!("its claim {claim} {problem}"), &message)
}

fn string<'a>(name: &str, claim: &'a Option<Value>, expected: &str) -> Result<&'a str, Rejection> {
    match claim {
        None => Err(wrong(name, "is missing", expected)),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(wrong(name, "is not a string", expected)),
    }
}
