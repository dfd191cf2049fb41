//! Signed tokens in `authorization: Bearer TOKEN` (RFC 6750, RFC 7519).

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, errors::ErrorKind};
use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, info};

use super::{
    Caller, KeyError, Rejection, Scope, Subject, TokenRules, crypto,
    keys::{Key, Keys, KeysRead},
};
use crate::domain::ids::AccountId;

const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// How far clocks may differ.
const LEEWAY_SECONDS: u64 = 30;
/// How often the log repeats a cause at level `info`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The types that a token's header may name, in any case.
const TOKEN_TYPES: [&str; 2] = ["JWT", "at+jwt"];

const MISSING: Rejection = Rejection::Missing(
    "authorization must be Bearer and a token: send it as metadata, `authorization: Bearer TOKEN`",
);
/// The one answer to every token that is not accepted: details would help an attacker.
const REFUSED: Rejection = Rejection::Invalid(
    "authorization is not accepted: send a token that has not expired, from the issuer and for \
     the audience of this server",
);

/// The answer to a header of another form, such as a token without its scheme.
const MALFORMED: Rejection =
    Rejection::Invalid("authorization must be Bearer and a token: `authorization: Bearer TOKEN`");

/// Verifies tokens.
#[derive(Debug)]
pub struct Tokens {
    keys: Keys,
    /// The rules for every token, without the algorithm, which is the key's.
    validation: Validation,
}

impl Tokens {
    /// The size of the header with the largest token, as HTTP/2 counts it (RFC 9113, section
    /// 6.5.2).
    pub const MAX_HEADER_BYTES: usize = MAX_TOKEN_BYTES + "authorizationBearer ".len() + 32;
}

/// What is wrong with a token, for the log. It never quotes the token.
type TokenError = &'static str;

/// The header does not have the form of RFC 6750.
const NOT_BEARER: TokenError = "authorization is not Bearer, one space and a token";

/// The claims that are read here, of any type, so that the log can name one that is wrong.
/// `jsonwebtoken` checks the others, and lets `iss` be a list.
#[derive(Deserialize)]
struct TokenClaims {
    account_id: Option<Value>,
    sub: Option<Value>,
    iss: Option<Value>,
    scope: Option<Value>,
}

impl Tokens {
    /// Reads or fetches the keys.
    pub async fn open(rules: &TokenRules) -> Result<Self, KeyError> {
        crypto::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&rules.issuer]);
        validation.set_audience(&[&rules.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Ok(Self {
            keys: Keys::open(&rules.keys).await?,
            validation,
        })
    }

    /// When the keys were read.
    pub(super) fn keys_read(&self) -> KeysRead {
        self.keys.keys_read()
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        if !headers.contains_key(AUTHORIZATION) {
            return Err(MISSING);
        }
        let verified = match bearer(headers) {
            Ok(Some(token)) => self.verify(token).await,
            Ok(None) => {
                log_refused_token(NOT_BEARER);
                return Err(MALFORMED);
            }
            Err(error) => Err(error),
        };
        verified.map_err(|error| {
            log_refused_token(error);
            REFUSED
        })
    }

    async fn verify(&self, token: &str) -> Result<Caller, TokenError> {
        let header = decode_header(token)
            .map_err(|_| "it is not a signed token, or its algorithm is not supported")?;
        check_header(&header)?;
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let claims = self.claims(
            token,
            key.ok_or("there is no key with its key id and algorithm")?
                .as_ref(),
        )?;
        let TokenClaims {
            account_id,
            sub,
            iss,
            scope,
        } = &claims;
        text(iss).ok_or("its claim iss is not a text")?;
        let scope = match scope {
            None | Some(Value::Null) => "",
            Some(_) => text(scope).ok_or("its claim scope is not a text")?,
        };
        let account = text(account_id).ok_or("its claim account_id is missing or not a text")?;
        let subject = text(sub).ok_or("its claim sub is missing or not a text")?;
        Ok(Caller {
            account: AccountId::parse(account)
                .ok_or("its claim account_id is not 1 to 64 of A-Z a-z 0-9 . _ : -")?,
            subject: Subject::parse(subject)
                .ok_or("its claim sub is empty, too long, or holds control characters")?
                .to_string(),
            scopes: Scope::parse_list(scope),
        })
    }

    fn claims(&self, token: &str, key: &Key) -> Result<TokenClaims, TokenError> {
        let mut validation = self.validation.clone();
        validation.algorithms = vec![key.algorithm];
        match decode::<TokenClaims>(token, &key.decoding, &validation) {
            Ok(token) => Ok(token.claims),
            Err(error) => Err(token_error(error.kind())),
        }
    }
}

/// A claim that is a text.
fn text(claim: &Option<Value>) -> Option<&str> {
    claim.as_ref()?.as_str()
}

/// Logs why a token was refused: each cause at level `info` at most once in
/// [`LOG_INTERVAL`], as any caller can send such tokens, and always at `debug`.
fn log_refused_token(error: TokenError) {
    static LOGGED: Mutex<Vec<(TokenError, Instant)>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
    if logged.iter().any(|(other, _)| *other == error) {
        debug!(error, "a token was refused");
    } else {
        logged.push((error, Instant::now()));
        info!(error, "a token was refused");
    }
}

/// The token of the only `authorization` header; `None` if that has another form.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, TokenError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err("authorization is sent more than once");
    };
    let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
    let Some((scheme, token)) = parts else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err("it is too long");
    }
    let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_token = !token.is_empty() && token.bytes().all(in_alphabet);
    Ok(is_token.then_some(token))
}

/// Checks what `jsonwebtoken` reads of a header and does not check. No critical extension
/// is supported (RFC 7515, section 4.1.11).
fn check_header(header: &Header) -> Result<(), TokenError> {
    if let Some(typ) = &header.typ
        && !TOKEN_TYPES
            .iter()
            .any(|known| typ.eq_ignore_ascii_case(known))
    {
        return Err("its header says it is of another type");
    }
    match header.crit {
        Some(_) => Err("its header has a critical extension: none is supported"),
        None => Ok(()),
    }
}

/// Errors of `jsonwebtoken`, without its texts, which may quote the token.
fn token_error(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => "the key did not sign it",
        ErrorKind::ExpiredSignature => "it has expired, by its claim exp",
        ErrorKind::ImmatureSignature => "it is not valid yet, by its claim nbf",
        ErrorKind::InvalidIssuer => "its claim iss is another issuer",
        ErrorKind::InvalidAudience => "its claim aud is another audience",
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            match claim.as_str() {
                "exp" => "its claim exp is missing or not a number",
                "nbf" => "its claim nbf is not a number",
                "iss" => "its claim iss is missing or not a text",
                "aud" => "its claim aud is missing, or not a text or a list of texts",
                "sub" => "its claim sub is missing or not a text",
                _ => "a claim is missing or of another type",
            }
        }
        ErrorKind::Json(_) => "its claims are not those of a token",
        _ => "it is not a signed token, or its algorithm is not supported",
    }
}
