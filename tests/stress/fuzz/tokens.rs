//! Signed tokens: altered ones are never accepted, all refusals are alike, and the caller
//! of an accepted one is as it was signed.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use expertise::{
    auth::{
        Authenticator, Caller, KeySource, Rejection, Scope, SigningSecret, Subject, TokenGrant,
        TokenRules, Tokens, sign,
    },
    domain::ids::AccountId,
};
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use serde_json::{Map, Value, json};
use sha2::{Sha256, digest::KeyInit};
use tokio::runtime::Runtime;

use super::{
    executions::{Input, execute},
    mutations::{mutate_bytes, mutate_text},
};
use crate::kit::{databases::runtime, rng::Rng};

const SECRET: &str = "a secret of more than thirty-two bytes, for tests";
const WORDS: [&str; 10] = [
    ".", "..", "eyJ", "=", "Bearer ", "none", "HS512", "e30", "AAAA", "-_",
];
/// A time in the far future, in seconds since 1970.
const FAR_FUTURE: u64 = 4_000_000_000;

struct Target {
    runtime: Runtime,
    authenticator: Authenticator,
    signed: Vec<String>,
}

#[test]
fn no_altered_token_is_accepted() {
    let target = Target::new();
    for token in &target.signed {
        target
            .authenticate(&bearer(token))
            .expect("what was signed");
    }
    let mut accepted = 0_u64;
    execute("tokens", 200, |rng| {
        if rng.one_in(3) {
            accepted += u64::from(target.has_the_signed_claims(rng));
        } else {
            target.refuses_altered_tokens(rng);
        }
    });
    assert!(accepted > 0, "no token was accepted");
}

impl Target {
    fn new() -> Self {
        let runtime = runtime();
        let rules = TokenRules {
            keys: KeySource::Secret(SigningSecret::new(SECRET).expect("a secret")),
            issuer: "issuer".to_owned(),
            audience: "audience".to_owned(),
        };
        let tokens = runtime.block_on(Tokens::open(&rules)).expect("the keys");
        let grant = |account: &str, scopes: &[Scope]| TokenGrant {
            account: AccountId::parse(account).expect("an account"),
            subject: Subject::parse("somebody").expect("a subject"),
            scopes: scopes.to_vec(),
            expires: Duration::from_secs(86_400 * 365),
        };
        let grants = [
            grant("one", &Scope::ALL),
            grant("other:42", &[Scope::Read]),
            grant("a", &[]),
        ];
        Self {
            runtime,
            authenticator: Authenticator::Jwt(Box::new(tokens)),
            signed: grants
                .iter()
                .map(|grant| sign(&rules, grant).expect("a token"))
                .collect(),
        }
    }

    fn authenticate(&self, authorization: &[u8]) -> Result<Caller, Rejection> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(authorization).expect("a header's value");
        headers.insert(AUTHORIZATION, value);
        self.runtime
            .block_on(self.authenticator.authenticate(&headers))
    }

    fn refuses_altered_tokens(&self, rng: &mut Rng) {
        let token = rng.pick(&self.signed);
        let mut altered = bearer(token);
        match rng.below(3) {
            0 => mutate_bytes(rng, &mut altered),
            1 => altered = bearer(&mutate_text(rng, token, &WORDS)),
            _ => {
                // A part of another token.
                let other: Vec<&str> = rng.pick(&self.signed).split('.').collect();
                let mut parts: Vec<&str> = token.split('.').collect();
                let part = rng.below(parts.len());
                parts[part] = other[rng.below(other.len())];
                altered = bearer(&parts.join("."));
            }
        }
        altered.retain(|byte| HeaderValue::from_bytes(&[*byte]).is_ok());
        let _input = Input {
            target: "tokens",
            bytes: &altered,
        };
        // The scheme is read in any case.
        let untouched = altered.len() > 7
            && altered[..7].eq_ignore_ascii_case(b"Bearer ")
            && self
                .signed
                .iter()
                .any(|token| token.as_bytes() == &altered[7..]);
        match self.authenticate(&altered) {
            Ok(_) => assert!(untouched, "a forged token is accepted"),
            Err(refused) => {
                assert!(!untouched, "refused: {refused}");
                let Rejection::Invalid(message) = refused else {
                    panic!("{refused:?}");
                };
                // What has the form of a token gets one answer, whatever is wrong with it.
                let expected = if is_bearer(&altered) {
                    "authorization is not accepted"
                } else {
                    "authorization must be Bearer and a token"
                };
                assert!(message.starts_with(expected), "{message}");
            }
        }
    }

    /// Signs random claims. Whether they are accepted.
    fn has_the_signed_claims(&self, rng: &mut Rng) -> bool {
        let (header, claims) = (header(rng), claims(rng));
        let token = signed(&header, &claims);
        let described = format!("{header} {claims}");
        let _input = Input {
            target: "tokens",
            bytes: described.as_bytes(),
        };
        let Ok(caller) = self.authenticate(&bearer(&token)) else {
            return false;
        };
        assert_eq!(header["alg"], "HS256");
        assert_eq!(claims["account_id"], caller.account.as_str());
        assert_eq!(claims["sub"], caller.subject);
        assert_eq!(claims["iss"], "issuer");
        assert!(claims["exp"].as_f64() == Some(4e9), "it has expired");
        assert!(
            claims
                .get("nbf")
                .is_none_or(|nbf| nbf.as_f64() != Some(4e9))
        );
        let scopes = claims.get("scope").and_then(Value::as_str);
        let scopes = Scope::parse_list(scopes.unwrap_or_default());
        assert_eq!(caller.scopes, scopes);
        true
    }
}

/// Whether a header is the scheme, a space, and text in the alphabet of tokens.
fn is_bearer(authorization: &[u8]) -> bool {
    let in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    authorization
        .split_at_checked(7)
        .is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"Bearer ")
                && !token.is_empty()
                && token.iter().all(in_alphabet)
        })
}

fn bearer(token: &str) -> Vec<u8> {
    format!("Bearer {token}").into_bytes()
}

fn header(rng: &mut Rng) -> Value {
    let mut header = json!({"alg": "HS256", "typ": "JWT"});
    if rng.one_in(3) {
        let name = *rng.pick(&["alg", "typ", "crit", "kid", "b64", "jku", "x5c"]);
        header[name] = anything(rng, 0);
    }
    header
}

fn claims(rng: &mut Rng) -> Value {
    let mut claims = json!({
        "account_id": "one",
        "sub": "somebody",
        "iss": "issuer",
        "aud": "audience",
        "exp": FAR_FUTURE,
    });
    for _ in 0..rng.below(3) {
        let names = [
            "account_id",
            "sub",
            "iss",
            "aud",
            "exp",
            "nbf",
            "scope",
            "iat",
            "other",
        ];
        let name = *rng.pick(&names);
        match claims.as_object_mut() {
            Some(members) if rng.one_in(4) => drop(members.remove(name)),
            _ => claims[name] = anything(rng, 0),
        }
    }
    claims
}

fn anything(rng: &mut Rng, depth: usize) -> Value {
    let texts = [
        "",
        "one",
        "issuer",
        "audience",
        "HS256",
        "none",
        "JWT",
        "at+JWT",
        "read write",
        "\0",
        "é",
    ];
    match rng.below(if depth < 3 { 9 } else { 7 }) {
        0 => Value::Null,
        1 => json!(rng.one_in(2)),
        2 => json!(0),
        3 => json!(FAR_FUTURE),
        4 => json!(-1.5e300),
        5 => json!(*rng.pick(&texts)),
        6 => json!(mutate_text(rng, "one", &texts)),
        7 => (0..rng.below(3))
            .map(|_| anything(rng, depth + 1))
            .collect(),
        _ => {
            let mut members = Map::new();
            members.insert("one".to_owned(), anything(rng, depth + 1));
            Value::Object(members)
        }
    }
}

fn signed(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(message.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{message}.{signature}")
}
