//! Signed tokens: altered ones are never accepted, all refusals are alike, and
//! what is accepted says what was signed.

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
    chance::Chance,
    run::{Input, run},
};

const SECRET: &str = "a secret of more than thirty-two bytes, for tests";
const WORDS: [&str; 10] = [
    ".", "..", "eyJ", "=", "Bearer ", "none", "HS512", "e30", "AAAA", "-_",
];
/// Far from now, so that no execution meets it.
const LATER: u64 = 4_000_000_000;

struct Target {
    runtime: Runtime,
    authenticator: Authenticator,
    signed: Vec<String>,
}

#[test]
fn tokens() {
    let target = Target::new();
    for token in &target.signed {
        target.ask(&bearer(token)).expect("what was signed");
    }
    let mut accepted = 0_u64;
    run("tokens", 200, |chance| {
        if chance.one_in(3) {
            accepted += u64::from(target.says_what_was_signed(chance));
        } else {
            target.refuses_what_was_altered(chance);
        }
    });
    assert!(accepted > 0, "nothing that was tried is accepted");
}

impl Target {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().expect("a runtime");
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

    fn ask(&self, authorization: &[u8]) -> Result<Caller, Rejection> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(authorization).expect("a header's value");
        headers.insert(AUTHORIZATION, value);
        self.runtime
            .block_on(self.authenticator.authenticate(&headers))
    }

    fn refuses_what_was_altered(&self, chance: &mut Chance) {
        let token = chance.pick(&self.signed);
        let mut altered = bearer(token);
        match chance.below(3) {
            0 => chance.bytes(&mut altered),
            1 => altered = bearer(&chance.text(token, &WORDS)),
            _ => {
                // A part of another token.
                let other: Vec<&str> = chance.pick(&self.signed).split('.').collect();
                let mut parts: Vec<&str> = token.split('.').collect();
                let part = chance.below(parts.len());
                parts[part] = other[chance.below(other.len())];
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
        match self.ask(&altered) {
            Ok(_) => assert!(untouched, "a forged token is accepted"),
            Err(refused) => {
                assert!(!untouched, "refused: {refused}");
                let Rejection::Invalid(words) = refused else {
                    panic!("{refused:?}");
                };
                assert!(words.starts_with("authorization is not accepted"));
            }
        }
    }

    /// Signs claims that may be anything. Whether they are accepted.
    fn says_what_was_signed(&self, chance: &mut Chance) -> bool {
        let (header, claims) = (header(chance), claims(chance));
        let token = signed(&header, &claims);
        let described = format!("{header} {claims}");
        let _input = Input {
            target: "tokens",
            bytes: described.as_bytes(),
        };
        let Ok(caller) = self.ask(&bearer(&token)) else {
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

fn bearer(token: &str) -> Vec<u8> {
    format!("Bearer {token}").into_bytes()
}

fn header(chance: &mut Chance) -> Value {
    let mut header = json!({"alg": "HS256", "typ": "JWT"});
    if chance.one_in(3) {
        let name = *chance.pick(&["alg", "typ", "crit", "kid", "b64", "jku", "x5c"]);
        header[name] = anything(chance, 0);
    }
    header
}

fn claims(chance: &mut Chance) -> Value {
    let mut claims = json!({
        "account_id": "one",
        "sub": "somebody",
        "iss": "issuer",
        "aud": "audience",
        "exp": LATER,
    });
    for _ in 0..chance.below(3) {
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
        let name = *chance.pick(&names);
        match claims.as_object_mut() {
            Some(members) if chance.one_in(4) => drop(members.remove(name)),
            _ => claims[name] = anything(chance, 0),
        }
    }
    claims
}

fn anything(chance: &mut Chance, depth: usize) -> Value {
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
    match chance.below(if depth < 3 { 9 } else { 7 }) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2 => json!(0),
        3 => json!(LATER),
        4 => json!(-1.5e300),
        5 => json!(*chance.pick(&texts)),
        6 => json!(chance.text("one", &texts)),
        7 => (0..chance.below(3))
            .map(|_| anything(chance, depth + 1))
            .collect(),
        _ => {
            let mut members = Map::new();
            members.insert("one".to_owned(), anything(chance, depth + 1));
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
