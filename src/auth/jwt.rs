//! Signed tokens in `authorization: Bearer TOKEN` (RFC 6750, RFC 7519).

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Header, Validation, decode, decode_header, errors::ErrorKind};
use tracing::{debug, info};

use super::{
    Caller, KeyError, Rejection, TokenRules,
    claims::{ClaimError, Claims},
    crypto,
    keys::{Key, Keys, KeysRead},
};

const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// How often the log repeats a cause at level `info`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The types that a token's header may name, in any case.
const TOKEN_TYPES: [&str; 2] = ["JWT", "at+jwt"];

const MISSING: &str =
    "authorization must be Bearer and a token: send it as metadata, `authorization: Bearer TOKEN`";
/// The one answer to every token without a valid signature: details would help an attacker.
const REFUSED: &str = "authorization is not accepted: send a token that has not expired, from the issuer and for \
     the audience of this server";
/// The answer to a header of another form, such as a token without its scheme.
const MALFORMED: &str = "authorization must be Bearer and a token: `authorization: Bearer TOKEN`";

/// Verifies tokens.
#[derive(Debug)]
pub struct Tokens {
    keys: Keys,
    issuer: String,
    audience: String,
}

/// Why a token is refused.
enum TokenError {
    /// The header does not have the form of RFC 6750.
    NotBearer,
    /// The signature is not valid, or cannot be checked. The cause is for the log alone, and never
    /// quotes the token.
    NotSigned(&'static str),
    /// The signature is valid.
    Claim(ClaimError),
}

impl Tokens {
    /// The size of the header with the largest token, as HTTP/2 counts it (RFC 9113, section
    /// 6.5.2).
    pub const MAX_HEADER_BYTES: usize = MAX_TOKEN_BYTES + "authorizationBearer ".len() + 32;

    /// Reads or fetches the keys.
    pub async fn open(rules: &TokenRules) -> Result<Self, KeyError> {
        crypto::install();
        Ok(Self {
            keys: Keys::open(&rules.keys).await?,
            issuer: rules.issuer.clone(),
            audience: rules.audience.clone(),
        })
    }

    pub(super) fn keys_read(&self) -> KeysRead {
        self.keys.keys_read()
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        if !headers.contains_key(AUTHORIZATION) {
            return Err(Rejection::Missing(MISSING.into()));
        }
        let verified = match bearer(headers) {
            Ok(token) => self.verify(token).await,
            Err(error) => Err(error),
        };
        verified.map_err(|error| {
            let (cause, message) = match error {
                TokenError::NotBearer => (
                    "authorization is not Bearer, one space and a token",
                    MALFORMED.into(),
                ),
                TokenError::NotSigned(cause) => (cause, REFUSED.into()),
                TokenError::Claim(ClaimError { cause, message }) => (
                    cause,
                    format!("authorization is not accepted: {message}").into(),
                ),
            };
            log_refused_token(cause);
            Rejection::Invalid(message)
        })
    }

    async fn verify(&self, token: &str) -> Result<Caller, TokenError> {
        let header = decode_header(token).map_err(|_| NOT_A_TOKEN)?;
        check_header(&header)?;
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.ok_or(TokenError::NotSigned(
            "there is no key with its key id and algorithm",
        ))?;
        claims(token, &key)?
            .caller(&self.issuer, &self.audience, SystemTime::now())
            .map_err(TokenError::Claim)
    }
}

const NOT_A_TOKEN: TokenError =
    TokenError::NotSigned("it is not a signed token, or its algorithm is not supported");

/// The claims of a token that the key has signed.
fn claims(token: &str, key: &Key) -> Result<Claims, TokenError> {
    let mut validation = Validation::new(key.algorithm);
    // `Claims` checks them all.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    match decode(token, &key.decoding, &validation) {
        Ok(token) => Ok(token.claims),
        Err(error) => Err(match error.kind() {
            ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => {
                TokenError::NotSigned("the key did not sign it")
            }
            ErrorKind::Json(_) => TokenError::Claim(ClaimError {
                cause: "its claims are not those of a token",
                message: "the claims must be a JSON object, each of them once".to_owned(),
            }),
            _ => NOT_A_TOKEN,
        }),
    }
}

/// Logs why a token was refused: each cause at level `info` at most once in
/// [`LOG_INTERVAL`], as any caller can send such tokens, and always at `debug`.
fn log_refused_token(error: &'static str) {
    static LOGGED: Mutex<Vec<(&str, Instant)>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
    if logged.iter().any(|(other, _)| *other == error) {
        debug!(error, "a token was refused");
    } else {
        logged.push((error, Instant::now()));
        info!(error, "a token was refused");
    }
}

/// The token of the only `authorization` header.
fn bearer(headers: &HeaderMap) -> Result<&str, TokenError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(TokenError::NotSigned(
            "authorization is sent more than once",
        ));
    };
    let value = value.to_str().map_err(|_| TokenError::NotBearer)?;
    let (scheme, token) = value.split_once(' ').ok_or(TokenError::NotBearer)?;
    let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    match scheme.eq_ignore_ascii_case("bearer") {
        true if token.len() > MAX_TOKEN_BYTES => Err(TokenError::NotSigned("it is too long")),
        true if !token.is_empty() && token.bytes().all(in_alphabet) => Ok(token),
        _ => Err(TokenError::NotBearer),
    }
}

/// Checks what `jsonwebtoken` reads of a header and does not check. No critical extension
/// is supported (RFC 7515, section 4.1.11).
fn check_header(header: &Header) -> Result<(), TokenError> {
    let is_known = |typ: &String| TOKEN_TYPES.iter().any(|it| typ.eq_ignore_ascii_case(it));
    match (&header.typ, &header.crit) {
        (Some(typ), _) if !is_known(typ) => Err(TokenError::NotSigned(
            "its header says it is of another type",
        )),
        (_, Some(_)) => Err(TokenError::NotSigned(
            "its header has a critical extension: none is supported",
        )),
        (_, None) => Ok(()),
    }
}
