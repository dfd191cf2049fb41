//! Signed tokens: `authorization: Bearer TOKEN`, RFC 6750 and RFC 7519.

use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, errors::ErrorKind};
use serde::Deserialize;
use tracing::debug;

use super::{
    Caller, KeyError, Rejection, Scope, Subject, TokenRules, crypto,
    keys::{Key, Keys},
};
use crate::domain::ids::AccountId;

/// The longest token, in bytes.
const TOKEN_MAX: usize = 16 * 1024;
/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 30;
/// What a token may say that it is, in either case.
const TYPES: [&str; 2] = ["JWT", "at+jwt"];

const MISSING: Rejection = Rejection::Missing(
    "authorization must be Bearer and a token: send it as metadata, `authorization: Bearer TOKEN`",
);
/// One answer for all: what exactly is wrong would help whoever forges.
const REFUSED: Rejection = Rejection::Invalid(
    "authorization is not accepted: send a token that has not expired, from the issuer and for \
     the audience of this server",
);

/// Checks tokens.
#[derive(Debug)]
pub struct Tokens {
    keys: Keys,
    /// What holds for every token, but for the algorithm, which is the key's.
    rules: Validation,
}

/// What is wrong with a token, for the log. It says nothing of what the token
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("authorization is sent more than once")]
    Repeated,
    #[error("authorization is not Bearer, one space and a token")]
    Scheme,
    #[error("it is too long")]
    TooLong,
    #[error("it is no signed token, or its algorithm is none of ours")]
    Malformed,
    #[error("its header says it is of another type")]
    Type,
    #[error("its header demands what is not known here")]
    Critical,
    #[error("no key has its key id and algorithm")]
    UnknownKey,
    #[error("the key did not sign it")]
    Signature,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
    #[error("it is from another issuer")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("a claim is missing or of another type")]
    Claims,
    #[error("its account_id is no account")]
    Account,
    #[error("its sub is empty, too long, or holds control characters")]
    Subject,
}

/// The claims that are read here; `jsonwebtoken` judges the rest. Strings are
/// strings: a token with a list of issuers is not accepted.
#[derive(Deserialize)]
struct Claims {
    account_id: String,
    sub: String,
    #[serde(rename = "iss")]
    _issuer: String,
    scope: Option<String>,
}

impl Tokens {
    /// Reads the keys for the first time.
    pub async fn open(rules: &TokenRules) -> Result<Self, KeyError> {
        crypto::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&rules.issuer]);
        validation.set_audience(&[&rules.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Ok(Self {
            keys: Keys::open(&rules.keys).await?,
            rules: validation,
        })
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Rejection> {
        if !headers.contains_key(AUTHORIZATION) {
            return Err(MISSING);
        }
        let verified = match bearer(headers) {
            Ok(token) => self.verify(token).await,
            Err(refusal) => Err(refusal),
        };
        verified.map_err(|refusal| {
            debug!(%refusal, "a token was refused");
            REFUSED
        })
    }

    async fn verify(&self, token: &str) -> Result<Caller, Refusal> {
        let header = decode_header(token).map_err(|_| Refusal::Malformed)?;
        check(&header)?;
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let claims = self.claims(token, key.ok_or(Refusal::UnknownKey)?.as_ref())?;
        Ok(Caller {
            account: AccountId::parse(&claims.account_id).ok_or(Refusal::Account)?,
            subject: Subject::parse(&claims.sub)
                .ok_or(Refusal::Subject)?
                .to_string(),
            scopes: Scope::parse_list(claims.scope.as_deref().unwrap_or_default()),
        })
    }

    fn claims(&self, token: &str, key: &Key) -> Result<Claims, Refusal> {
        let mut rules = self.rules.clone();
        rules.algorithms = vec![key.algorithm()];
        match decode::<Claims>(token, key.decoding(), &rules) {
            Ok(token) => Ok(token.claims),
            Err(error) => Err(refusal(error.kind())),
        }
    }
}

/// The token of the one `authorization`.
fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Refusal::Repeated);
    };
    let value = value.to_str().map_err(|_| Refusal::Scheme)?;
    let (scheme, token) = value.split_once(' ').ok_or(Refusal::Scheme)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Scheme);
    }
    if token.len() > TOKEN_MAX {
        return Err(Refusal::TooLong);
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (!token.is_empty() && token.bytes().all(plain))
        .then_some(token)
        .ok_or(Refusal::Scheme)
}

/// What `jsonwebtoken` reads of a header and does not judge. An extension that
/// is critical is not understood here, as none is (RFC 7515, section 4.1.11).
fn check(header: &Header) -> Result<(), Refusal> {
    if let Some(typ) = &header.typ
        && !TYPES.iter().any(|known| typ.eq_ignore_ascii_case(known))
    {
        return Err(Refusal::Type);
    }
    match header.crit {
        Some(_) => Err(Refusal::Critical),
        None => Ok(()),
    }
}

/// Sorts what `jsonwebtoken` refuses; its own texts may quote the token.
fn refusal(kind: &ErrorKind) -> Refusal {
    match kind {
        ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => Refusal::Signature,
        ErrorKind::ExpiredSignature => Refusal::Expired,
        ErrorKind::ImmatureSignature => Refusal::Early,
        ErrorKind::InvalidIssuer => Refusal::Issuer,
        ErrorKind::InvalidAudience => Refusal::Audience,
        ErrorKind::MissingRequiredClaim(_)
        | ErrorKind::InvalidClaimFormat(_)
        | ErrorKind::Json(_) => Refusal::Claims,
        _ => Refusal::Malformed,
    }
}
