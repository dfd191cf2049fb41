//! Tokens that are refused: without a valid signature all with the same error, else with the claim
//! that is wrong.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::prelude::*;
use crate::kit::http2::{Http2Connection, RequestEnd, prefix};

/// Valid claims but for one.
fn but(claim: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[claim] = value;
    claims
}

/// Valid claims without one.
fn without(claim: &str) -> Value {
    let mut claims = claims();
    let object = claims.as_object_mut().expect("an object");
    object.remove(claim).expect("the claim");
    claims
}

fn base64(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// A claim, a value that is wrong (`-` if it is missing), and a part of what is said about it.
const WRONG_CLAIMS: &str = r#"
aud "another" -> it must be "expertise", or a list that contains it
aud ["another", "third"] -> it must be "expertise", or a list that contains it
aud - -> `aud` is missing or malformed: it must be "expertise", or a list
aud null -> `aud` is missing
aud 7 -> `aud` is missing or malformed
aud ["expertise", 7] -> `aud` is missing or malformed
iss "https://issuer.tes" -> it must be "https://issuer.test"
iss ["https://issuer.tes"] -> it must be "https://issuer.test"
iss ["https://issuer.test"] -> `iss` is not a string: it must be one issuer
iss 7 -> `iss` is missing or malformed: it must be "https://issuer.test"
iss - -> `iss` is missing
exp - -> `exp` is missing
exp "IN_AN_HOUR" -> it must be a number of seconds since 1970
exp null -> `exp` is missing
exp -1 -> it must be a number of seconds since 1970
exp true -> it must be a number of seconds since 1970
exp JUST_PAST -> the token has expired (`exp`)
exp 0 -> the token has expired (`exp`)
nbf SOON -> the token is not valid yet (`nbf`)
nbf 4102444800 -> the token is not valid yet (`nbf`)
exp [0] -> numbers as `exp` and `nbf`
nbf {"from":0} -> numbers as `exp` and `nbf`
nbf 1e300 -> `nbf` is malformed
nbf "0" -> `nbf` is malformed: it must be a number of seconds since 1970
sub - -> `sub` is missing:
sub "" -> it must be 1 to 256 bytes without control characters
sub "A_257" -> it must be 1 to 256 bytes without control characters
sub "UMLAUT_129" -> it must be 1 to 256 bytes without control characters
sub "ann\nINFO" -> it must be 1 to 256 bytes without control characters
sub 7 -> `sub` is not a string:
sub [] -> with a string as `sub`
sub {} -> with a string as `sub`
account_id - -> `account_id` is missing:
account_id "" -> it must be 1 to 64 characters of A-Z a-z 0-9 . _ : -
account_id "A_65" -> it must be 1 to 64 characters of A-Z a-z 0-9 . _ : -
account_id "4 2" -> it must be 1 to 64 characters of A-Z a-z 0-9 . _ : -
account_id 42 -> `account_id` is not a string:
account_id {} -> `account_id` is not a string:
account_id null -> `account_id` is missing:
scope ["read"] -> `scope` is not a string:
"#;

/// Invalid claims for tokens with a valid signature: the line above, the claims, and what is said.
fn claims_that_are_wrong() -> Vec<(String, Value, String)> {
    let lines = WRONG_CLAIMS
        .replace("IN_AN_HOUR", &(now() + 3600).to_string())
        .replace("JUST_PAST", &(now() - 35).to_string())
        .replace("SOON", &(now() + 50).to_string())
        .replace("A_257", &"a".repeat(257))
        .replace("A_65", &"a".repeat(65))
        .replace("UMLAUT_129", &"ä".repeat(129));
    let lines = lines.lines().filter(|line| !line.is_empty()).map(|line| {
        let (wrong, said) = line.split_once(" -> ").expect(line);
        let (claim, value) = wrong.split_once(' ').expect(line);
        let claims = match value {
            "-" => without(claim),
            value => but(claim, serde_json::from_str(value).expect(line)),
        };
        (line.to_owned(), claims, said.to_owned())
    });
    let no_object = "the claims must be a JSON object";
    let list = ("a list".to_owned(), json!(["read"]), no_object.to_owned());
    lines.chain([list]).collect()
}

fn headers_that_are_wrong() -> Vec<(&'static str, Value)> {
    vec![
        ("other type", json!({"alg": "HS256", "typ": "dpop+jwt"})),
        ("empty type", json!({"alg": "HS256", "typ": ""})),
        ("numeric type", json!({"alg": "HS256", "typ": 1})),
        ("crit", json!({"alg": "HS256", "crit": ["exp"]})),
        ("empty crit", json!({"alg": "HS256", "crit": []})),
        ("text crit", json!({"alg": "HS256", "crit": "exp"})),
        ("no algorithm", json!({"typ": "JWT"})),
        ("another of the family", json!({"alg": "HS512"})),
        ("another family", json!({"alg": "RS256"})),
        ("lower case", json!({"alg": "hs256"})),
        ("none", json!({"alg": "none"})),
    ]
}

/// Values of `authorization` that are not `Bearer` and a token.
fn values_without_a_token() -> Vec<(&'static str, String)> {
    let good = Signer::hs256().token(&claims());
    vec![
        ("empty", String::new()),
        ("no token", "Bearer".to_owned()),
        ("empty token", "Bearer ".to_owned()),
        ("two spaces", format!("Bearer  {good}")),
        ("space before", format!(" Bearer {good}")),
        ("space after", format!("Bearer {good} ")),
        ("a tab", format!("Bearer\t{good}")),
        ("no scheme", good.clone()),
        ("another scheme", format!("Basic {good}")),
        ("a list", format!("Bearer {good}, Bearer {good}")),
        ("padding", format!("Bearer {good}=")),
    ]
}

fn values_that_are_wrong() -> Vec<(&'static str, String)> {
    let signer = Signer::hs256();
    let good = signer.token(&claims());
    let (message, signature) = good.rsplit_once('.').expect("a signature");
    let (header, body) = message.split_once('.').expect("two parts");
    let none = base64(r#"{"alg":"none"}"#);
    let other = base64(br#"{"account_id":"43"}"#);
    vec![
        ("garbage", "Bearer ...".to_owned()),
        ("more garbage", "Bearer a.b.c".to_owned()),
        ("one part", format!("Bearer {header}")),
        ("two parts", format!("Bearer {message}")),
        ("no signature", format!("Bearer {message}.")),
        ("four parts", format!("Bearer {good}.{signature}")),
        ("cut", format!("Bearer {}", &good[..good.len() - 2])),
        ("none, unsigned", format!("Bearer {none}.{body}.")),
        ("none, signed", format!("Bearer {none}.{body}.{signature}")),
        ("altered", format!("Bearer {header}.{other}.{signature}")),
    ]
}

fn resigned(message: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = base64(ring::hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}

#[tokio::test]
async fn what_is_not_bearer_and_a_token_is_told_so() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    for (name, value) in values_without_a_token() {
        let answer = error_answer(client.list(&[("authorization", &value)]).await);
        assert_eq!(answer.code, Code::Unauthenticated, "{name}");
        assert_eq!(answer.reason, "CREDENTIALS_INVALID", "{name}");
        let expected = "authorization must be Bearer and a token: send it as metadata, `authorization: Bearer TOKEN`";
        assert_eq!(answer.message, expected, "{name}");
    }
}

#[tokio::test]
async fn every_token_without_a_valid_signature_gets_the_same_answer() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let signer = Signer::hs256();
    let wrong = Signer::secret(b"another secret of 32 bytes or more").token(&claims());

    let mut forged = vec![("wrong key", format!("Bearer {wrong}"))];
    forged.extend(values_that_are_wrong());
    for (name, header) in headers_that_are_wrong() {
        forged.push((
            name,
            format!("Bearer {}", sign(&signer, &header, &claims())),
        ));
    }
    let good = signer.token(&claims());
    for (position, letter) in good.char_indices() {
        let other = if letter == 'A' { "B" } else { "A" };
        let mut altered = good.clone();
        altered.replace_range(position..=position, other);
        forged.push(("one altered letter", format!("Bearer {altered}")));
    }
    // The last letter of 32 bytes has two bits that mean nothing.
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = good.split_at(good.len() - 1);
    let last = LETTERS.find(last).expect("a letter of base64");
    let unused = &LETTERS[last + 1..last + 2];
    forged.push(("unused bits", format!("Bearer {rest}{unused}")));
    let expected = error_answer(client.list(&[("authorization", &forged[0].1)]).await);
    assert_eq!(expected.code, Code::Unauthenticated);
    assert_eq!(expected.reason, "CREDENTIALS_INVALID");
    for (name, value) in &forged {
        let answer = error_answer(client.list(&[("authorization", value)]).await);
        assert_eq!(answer, expected, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_token_that_is_sent_twice_or_is_too_long_is_told_so() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let good = format!("Bearer {}", Signer::hs256().token(&claims()));
    let twice = [("authorization", good.as_str()), ("authorization", &good)];
    client.list(&twice[..1]).await.expect("it is accepted");
    let long = |bytes: usize| format!("Bearer {}", "a".repeat(bytes));
    let (longest, longer) = (long(16_384), long(16_385));
    for (sent, message) in [
        (&twice[..], "it is sent more than once: send one token"),
        (
            &[("authorization", &longer)],
            "the token is longer than 16384 bytes",
        ),
        (
            &[("authorization", &longest)],
            "send a token that has not expired",
        ),
    ] {
        let answer = error_answer(client.list(sent).await);
        assert_eq!(answer.code, Code::Unauthenticated, "{message}");
        assert_eq!(answer.reason, "CREDENTIALS_INVALID", "{message}");
        let start = format!("authorization is not accepted: {message}");
        assert!(answer.message.starts_with(&start), "{answer:?}");
    }
}

#[tokio::test]
async fn a_wrong_claim_of_a_signed_token_is_named_with_what_is_expected() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let signer = Signer::hs256();
    for (name, claims, message) in claims_that_are_wrong() {
        let answer = error_answer(client.read(&signer.token(&claims)).await);
        assert_eq!(answer.code, Code::Unauthenticated, "{name}");
        assert_eq!(answer.reason, "CREDENTIALS_INVALID", "{name}");
        let start = "authorization is not accepted: ";
        let said = answer.message.strip_prefix(start).expect(&answer.message);
        assert!(said.contains(&message), "{name}: {said}");
    }

    let twice = format!(r#"{{"account_id":"1",{}"#, &claims().to_string()[1..]);
    let header = base64(r#"{"alg":"HS256"}"#);
    let twice = resigned(&format!("{header}.{}", base64(twice)));
    let answer = error_answer(client.read(&twice).await);
    assert!(
        answer.message.contains("without repeated names"),
        "{answer:?}"
    );

    // The same claims with another signature are told nothing.
    let other = Signer::secret(b"another secret of 32 bytes or more");
    let refused = error_answer(client.read(&other.token(&claims())).await);
    for (name, claims, _) in claims_that_are_wrong() {
        let answer = error_answer(client.read(&other.token(&claims)).await);
        assert_eq!(answer, refused, "{name}");
    }
}

#[tokio::test]
async fn a_public_key_is_not_accepted_as_an_hmac_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    for signer in [Signer::rsa(), Signer::es256(), Signer::ed25519()] {
        let pem = signer.public_pem();
        let path = directory.path().join(signer.algorithm());
        std::fs::write(&path, pem).expect("a file");
        let server = TestServer::start(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
        let client = TokenClient::of(&server);
        let der: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = base64::engine::general_purpose::STANDARD.decode(der);
        let der = der.expect("base64");
        let point = &der[der.len().saturating_sub(65)..];
        for secret in [
            pem.as_bytes(),
            pem.trim_end().as_bytes(),
            &der,
            point,
            &point[point.len() - 32..],
        ] {
            for header in [json!({"alg": "HS256"}), json!({"alg": signer.algorithm()})] {
                let token = sign(&Signer::secret(secret), &header, &claims());
                let answer = error_answer(client.read(&token).await);
                assert_eq!(answer.reason, "CREDENTIALS_INVALID");
            }
        }
    }
}

#[tokio::test]
async fn a_key_is_for_its_own_algorithm_only() {
    let (ec, ed) = (Signer::es256(), Signer::ed25519());
    let issuer = KeyServer::start(&key_set(&[ec.jwk("ec"), ed.jwk("ed")])).await;
    let server = start_with_keys_of(&issuer).await;
    let client = TokenClient::of(&server);
    for (signer, id, algorithm) in [
        (&ec, "ed", "ES256"),
        (&ec, "ec", "EdDSA"),
        (&ed, "ec", "EdDSA"),
    ] {
        let header = json!({"alg": algorithm, "kid": id});
        let answer = error_answer(client.read(&sign(signer, &header, &claims())).await);
        assert_eq!(answer.reason, "CREDENTIALS_INVALID");
    }
    assert_eq!(issuer.fetches(), 1, "these key ids are known");
}

#[tokio::test]
async fn keys_for_other_uses_sign_no_tokens() {
    let (good, other) = (Signer::es256(), Signer::es256());
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("alg", json!("ES384")),
        ("alg", json!("ECDH-ES")),
    ] {
        let mut key = other.jwk("other");
        key[name] = value.clone();
        let issuer = KeyServer::start(&key_set(&[good.jwk("good"), key])).await;
        let server = start_with_keys_of(&issuer).await;
        let client = TokenClient::of(&server);
        let token = other.token_by("other", &claims());
        let answer = error_answer(client.read(&token).await);
        assert_eq!(answer.reason, "CREDENTIALS_INVALID", "{name} {value}");
    }
}

#[tokio::test]
async fn a_key_of_another_curve_than_its_type_has_is_left_out() {
    let signers = [Signer::ed25519(), Signer::es256()];
    let mut keys = signers.each_ref().map(|s| s.jwk(s.algorithm()));
    keys[0]["crv"] = json!("P-256");
    let issuer = KeyServer::start(&key_set(&keys)).await;
    let server = start_with_keys_of(&issuer).await;
    let client = TokenClient::of(&server);
    let [left_out, read] = signers.map(|s| s.token_by(s.algorithm(), &claims()));
    client.read(&read).await.expect("it is accepted");
    let answer = error_answer(client.read(&left_out).await);
    assert_eq!(answer.reason, "CREDENTIALS_INVALID");
}

#[tokio::test]
async fn a_call_without_a_token_is_unauthenticated() {
    let server = TestServer::start(hs256()).await;
    for metadata in [&[][..], &[("x-account-id", "42"), ("x-scopes", "read")]] {
        let answer = error_answer(TokenClient::of(&server).list(metadata).await);
        assert_eq!(answer.code, Code::Unauthenticated);
        assert_eq!(answer.reason, "CREDENTIALS_MISSING");
    }
}

#[tokio::test]
async fn a_bad_token_is_refused_before_64_megabytes_arrive() {
    let server = TestServer::start(hs256()).await;
    let connection = Http2Connection::to(server.address()).await;
    let expired = Signer::hs256().token(&but("exp", json!(now() - 90)));
    let expired = format!("Bearer {expired}");
    for (headers, reason) in [
        (&[][..], "CREDENTIALS_MISSING"),
        (&[("authorization", "Bearer a.b.c")], "CREDENTIALS_INVALID"),
        (&[("authorization", &*expired)], "CREDENTIALS_INVALID"),
    ] {
        let path = "/expertise.v1.TaskService/CreateTask";
        let announced = prefix(0, 64_000_000);
        let answer = connection
            .call(path, headers, &announced, RequestEnd::Never)
            .await;
        answer.is(Code::Unauthenticated, reason);
    }
}

#[tokio::test]
async fn health_and_reflection_need_no_token() {
    let server = TestServer::start(hs256()).await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(server.client().channel());
    let request = tonic_health::pb::HealthCheckRequest::default();
    health.check(request).await.expect("it is answered");
}
