//! Signed tokens in `authorization: Bearer TOKEN` (RFC 6750, RFC 7519).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Header, decode, decode_header};
use tracing::{debug, info};

use super::{
    Caller, KeyError, Rejection, TokenConfig,
    claims::{self, Claims},
    keys::Keys,
    signatures,
};

const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// How often the log repeats a cause at level `info`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The types that a token's header may name, in any case.
const TOKEN_TYPES: [&str; 2] = ["JWT", "at+jwt"];

/// The response to a call without a token, and to a header that does not have the form of RFC 6750, such
/// as a token without its scheme.
const BEARER_REQUIRED: &str =
    "authorization must be Bearer and a token: send it as metadata, `authorization: Bearer TOKEN`";
/// The only response to tokens without a valid signature, because details would help an attacker.
const REFUSED: &str = "authorization is not accepted: send a token that has not expired, from the issuer and for \
     the audience of this server";
/// What the log says about a text that is not a token.
pub(super) const NO_TOKEN: &str = "it is not a signed token, or its algorithm is not supported";

/// Verifies tokens.
pub struct Tokens {
    pub(super) keys: Arc<Keys>,
    config: TokenConfig,
}

impl Tokens {
    /// The size of the header with the largest token, as HTTP/2 counts it (RFC 9113, section
    /// 6.5.2).
    pub const MAX_HEADER_BYTES: usize = MAX_TOKEN_BYTES + "authorizationBearer ".len() + 32;

    /// Reads or fetches the keys.
    pub async fn open(config: &TokenConfig) -> Result<Self, KeyError> {
        signatures::install();
        Ok(Self {
            keys: Keys::read_or_fetch(&config.key).await?,
            config: config.clone(),
        })
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        let token = bearer(headers)?;
        let header = decode_header(token).map_err(|_| refuse(NO_TOKEN))?;
        check_header(&header)?;
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.ok_or_else(|| refuse("no key has its key ID and algorithm"))?;
        let validation = claims::validation(key.algorithm, &self.config);
        match decode::<Claims>(token, &key.decoding, &validation) {
            Ok(decoded) => decoded.claims.caller(),
            Err(error) => Err(claims::rejection(&error, &self.config)),
        }
    }
}

/// The token of the only `authorization` header.
fn bearer(headers: &HeaderMap) -> Result<&str, Rejection> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => {
            let problem = "authorization is sent more than once";
            return Err(explain(
                problem,
                "it is sent more than once: send one token",
            ));
        }
        (None, _) => return Err(Rejection::Missing(BEARER_REQUIRED.into())),
    };
    let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let parts = value.and_then(|value| value.split_once(' '));
    match parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if token.len() > MAX_TOKEN_BYTES => {
            let message = format!("the token is longer than {MAX_TOKEN_BYTES} bytes");
            Err(explain("it is too long", &message))
        }
        Some((_, token)) if !token.is_empty() && token.bytes().all(in_alphabet) => Ok(token),
        Some(_) | None => {
            log("authorization is not Bearer, one space and a token");
            Err(Rejection::Invalid(BEARER_REQUIRED.into()))
        }
    }
}

/// Checks the parts of a header that `jsonwebtoken` reads but does not check. No critical extension
/// is supported (RFC 7515, section 4.1.11).
fn check_header(header: &Header) -> Result<(), Rejection> {
    let is_known = |typ: &String| TOKEN_TYPES.iter().any(|it| typ.eq_ignore_ascii_case(it));
    if !header.typ.as_ref().is_none_or(is_known) {
        return Err(refuse("its header has another type"));
    }
    match header.crit {
        Some(_) => Err(refuse(
            "its header has a critical extension: none is supported",
        )),
        None => Ok(()),
    }
}

/// Refuses a token whose signature is invalid or cannot be checked.
pub(super) fn refuse(problem: &str) -> Rejection {
    log(problem);
    Rejection::Invalid(REFUSED.into())
}

/// Refuses a token and tells the caller why: its signature is valid, or it was sent in the wrong
/// way.
pub(super) fn explain(problem: &str, message: &str) -> Rejection {
    log(problem);
    Rejection::Invalid(format!("authorization is not accepted: {message}").into())
}

/// Logs each problem at level `debug`, and at level `info` at most once per [`LOG_INTERVAL`],
/// because any caller can send bad tokens. A problem never quotes the token.
fn log(problem: &str) {
    static LOGGED: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
    if logged.iter().any(|(logged, _)| logged == problem) {
        debug!(error = problem, "a token was refused");
    } else {
        info!(error = problem, "a token was refused");
        logged.push((problem.to_owned(), Instant::now()));
    }
}
