//! Signed tokens: altered ones are never accepted, and all refusals are alike.

use std::time::Duration;

use expertise::{
    auth::{
        Authenticator, Caller, KeySource, Rejection, Scope, SigningKey, SigningSecret, Subject,
        TokenGrant, TokenRules, TokenSigning, Tokens, sign,
    },
    domain::ids::AccountId,
};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
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
    execute("tokens", 250, |rng| target.refuses_altered_tokens(rng));
}

impl Target {
    fn new() -> Self {
        let runtime = runtime();
        let secret = SigningSecret::new(SECRET).expect("a secret");
        let rules = TokenRules {
            keys: KeySource::Secret(secret.clone()),
            issuer: "issuer".to_owned(),
            audience: "audience".to_owned(),
        };
        let signing = TokenSigning {
            key: SigningKey::Secret(secret),
            issuer: rules.issuer.clone(),
            audience: rules.audience.clone(),
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
                .map(|grant| sign(&signing, grant).expect("a token"))
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
