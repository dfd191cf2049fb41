//! Tokens that are refused, all with the same error.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::stream;
use serde_json::Value;
use tonic::{Request, metadata::AsciiMetadataValue};
use tonic_prost::ProstCodec;

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

/// Invalid claims for tokens with a valid signature.
fn claims_that_are_wrong() -> Vec<(&'static str, Value)> {
    vec![
        ("another audience", but("aud", json!("another"))),
        ("other audiences", but("aud", json!(["another", "third"]))),
        ("no audience", without("aud")),
        ("null audience", but("aud", Value::Null)),
        ("numeric audience", but("aud", json!(7))),
        ("another issuer", but("iss", json!("https://issuer.tes"))),
        ("issuers", but("iss", json!([ISSUER]))),
        ("no issuer", without("iss")),
        ("no exp", without("exp")),
        ("string exp", but("exp", json!((now() + 3600).to_string()))),
        ("null exp", but("exp", Value::Null)),
        ("negative exp", but("exp", json!(-1))),
        ("boolean exp", but("exp", json!(true))),
        ("expired", but("exp", json!(now() - 35))),
        ("expired long ago", but("exp", json!(0))),
        ("not yet valid", but("nbf", json!(now() + 50))),
        ("not valid for long", but("nbf", json!(now() + 3600))),
        ("string nbf", but("nbf", json!("0"))),
        ("no sub", without("sub")),
        ("empty sub", but("sub", json!(""))),
        ("long sub", but("sub", json!("a".repeat(257)))),
        ("sub of many bytes", but("sub", json!("ä".repeat(129)))),
        ("sub of two lines", but("sub", json!("ann\nINFO"))),
        ("numeric sub", but("sub", json!(7))),
        ("no account", without("account_id")),
        ("empty account", but("account_id", json!(""))),
        ("long account", but("account_id", json!("a".repeat(65)))),
        ("odd account", but("account_id", json!("4 2"))),
        ("numeric account", but("account_id", json!(42))),
        ("null account", but("account_id", Value::Null)),
        ("scope list", but("scope", json!(["read"]))),
        ("claims that are a list", json!(["read"])),
    ]
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

/// Each as the value of `authorization`.
/// Values that are not `Bearer` and a token.
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
    let twice = base64(format!(
        r#"{{"account_id":"1",{}"#,
        &claims().to_string()[1..]
    ));
    let twice = format!("{header}.{twice}");
    let other = base64(br#"{"account_id":"43"}"#);
    let long = signer.token(&but("pad", json!("a".repeat(16 * 1024))));
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
        ("two accounts", format!("Bearer {}", resigned(&twice))),
        ("too long", format!("Bearer {long}")),
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
        let expected = "authorization must be Bearer and a token: `authorization: Bearer TOKEN`";
        assert_eq!(answer.message, expected, "{name}");
    }
}

#[tokio::test]
async fn every_token_that_is_not_accepted_gets_the_same_answer() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let signer = Signer::hs256();
    let wrong = Signer::secret(b"another secret of 32 bytes or more").token(&claims());

    let mut forged = vec![("wrong key", format!("Bearer {wrong}"))];
    forged.extend(values_that_are_wrong());
    for (name, claims) in claims_that_are_wrong() {
        forged.push((name, format!("Bearer {}", signer.token(&claims))));
    }
    for (name, header) in headers_that_are_wrong() {
        forged.push((
            name,
            format!("Bearer {}", sign(&signer, &header, &claims())),
        ));
    }
    let expected = error_answer(client.list(&[("authorization", &forged[0].1)]).await);
    assert_eq!(expected.code, Code::Unauthenticated);
    assert_eq!(expected.reason, "CREDENTIALS_INVALID");
    for (name, value) in &forged {
        let answer = error_answer(client.list(&[("authorization", value)]).await);
        assert_eq!(answer, expected, "{name}");
    }

    let good = format!("Bearer {}", signer.token(&claims()));
    let twice = [("authorization", good.as_str()), ("authorization", &good)];
    assert_eq!(error_answer(client.list(&twice).await), expected, "twice");
    client.list(&twice[..1]).await.expect("it is accepted");
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
async fn a_bad_token_is_refused_before_the_body_arrives() {
    let server = TestServer::start(hs256()).await;
    let mut client = tonic::client::Grpc::new(server.anonymous_client().channel());
    client.ready().await.expect("a connection");
    let mut request = Request::new(stream::pending::<()>());
    let forged = AsciiMetadataValue::from_static("Bearer a.b.c");
    request.metadata_mut().insert("authorization", forged);
    let path = http::uri::PathAndQuery::from_static("/expertise.v1.TaskService/CreateTask");
    let codec = ProstCodec::<(), ()>::default();
    let answer = in_time("an answer", client.client_streaming(request, path, codec)).await;
    assert_eq!(error_answer(answer).reason, "CREDENTIALS_INVALID");
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
    let mut health =
        tonic_health::pb::health_client::HealthClient::new(server.anonymous_client().channel());
    let request = tonic_health::pb::HealthCheckRequest::default();
    health.check(request).await.expect("it is answered");
}
