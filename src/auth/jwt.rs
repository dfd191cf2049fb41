//! Signed tokens in `authorization: Bearer TOKEN` (RFC 6750, RFC 7519).

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Header, Validation, decode, decode_header, errors::ErrorKind};
use tracing::{debug, info};

use super::{
    Caller, KeyError, KeySource, Rejection, TokenConfig,
    claims::Claims,
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
/// The answer to a header of another form than that of RFC 6750, such as a token without its scheme.
const MALFORMED: &str = "authorization must be Bearer and a token: `authorization: Bearer TOKEN`";

const NO_TOKEN: &str = "it is not a signed token, or its algorithm is not supported";

/// Verifies tokens.
pub struct Tokens {
    keys: Keys,
    config: TokenConfig<KeySource>,
}

/// Why a token is refused.
pub(super) struct Refusal {
    /// For the log: it never quotes the token.
    problem: String,
    /// For the caller.
    message: Cow<'static, str>,
}

impl Refusal {
    /// For a token with a valid signature.
    pub fn for_claims(problem: String, message: &str) -> Self {
        Self {
            problem,
            message: format!("authorization is not accepted: {message}").into(),
        }
    }

    /// For a token without a valid signature, or whose signature cannot be checked.
    fn unsigned(problem: &str) -> Self {
        Self {
            problem: problem.to_owned(),
            message: REFUSED.into(),
        }
    }

    /// Logs each problem at level `info` at most once in [`LOG_INTERVAL`], as any caller can send
    /// such tokens, and always at `debug`.
    fn log(&self) {
        static LOGGED: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());
        let error = &self.problem;
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|(_, at)| at.elapsed() < LOG_INTERVAL);
        if logged.iter().any(|(logged, _)| logged == error) {
            debug!(error, "a token was refused");
        } else {
            info!(error, "a token was refused");
            logged.push((error.clone(), Instant::now()));
        }
    }
}

impl Tokens {
    /// The size of the header with the largest token, as HTTP/2 counts it (RFC 9113, section
    /// 6.5.2).
    pub const MAX_HEADER_BYTES: usize = MAX_TOKEN_BYTES + "authorizationBearer ".len() + 32;

    /// Reads or fetches the keys.
    pub async fn open(config: &TokenConfig<KeySource>) -> Result<Self, KeyError> {
        crypto::install();
        Ok(Self {
            keys: Keys::open(&config.key).await?,
            config: config.clone(),
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
            Err(refusal) => Err(refusal),
        };
        verified.map_err(|refusal| {
            refusal.log();
            Rejection::Invalid(refusal.message)
        })
    }

    async fn verify(&self, token: &str) -> Result<Caller, Refusal> {
        let header = decode_header(token).map_err(|_| Refusal::unsigned(NO_TOKEN))?;
        check_header(&header)?;
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let no_key = || Refusal::unsigned("there is no key with its key id and algorithm");
        let claims = claims(token, &*key.ok_or_else(no_key)?)?;
        let TokenConfig {
            issuer, audience, ..
        } = &self.config;
        claims.caller(issuer, audience, SystemTime::now())
    }
}

/// The claims of a token that the key has signed.
fn claims(token: &str, key: &Key) -> Result<Claims, Refusal> {
    let mut validation = Validation::new(key.algorithm);
    // `Claims` checks them all.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let decoded = decode(token, &key.decoding, &validation);
    decoded
        .map(|token| token.claims)
        .map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => {
                Refusal::unsigned("the key did not sign it")
            }
            ErrorKind::Json(_) => Refusal::for_claims(
                "its claims are not those of a token".to_owned(),
                "the claims must be a JSON object, each of them once",
            ),
            _ => Refusal::unsigned(NO_TOKEN),
        })
}

/// The token of the only `authorization` header.
fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Refusal::unsigned("authorization is sent more than once"));
    };
    let in_alphabet = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
    match parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, token)) if token.len() > MAX_TOKEN_BYTES => {
            Err(Refusal::unsigned("it is too long"))
        }
        Some((_, token)) if !token.is_empty() && token.bytes().all(in_alphabet) => Ok(token),
        Some(_) | None => Err(Refusal {
            problem: "authorization is not Bearer, one space and a token".to_owned(),
            message: MALFORMED.into(),
        }),
    }
}

/// Checks what `jsonwebtoken` reads of a header and does not check. No critical extension
/// is supported (RFC 7515, section 4.1.11).
fn check_header(header: &Header) -> Result<(), Refusal> {
    let is_known = |typ: &String| TOKEN_TYPES.iter().any(|it| typ.eq_ignore_ascii_case(it));
    match (&header.typ, &header.crit) {
        (Some(typ), _) if !is_known(typ) => {
            Err(Refusal::unsigned("its header says it is of another type"))
        }
        (_, Some(_)) => Err(Refusal::unsigned(
            "its header has a critical extension: none is supported",
        )),
        (_, None) => Ok(()),
    }
}
