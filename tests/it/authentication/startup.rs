//! Settings of credentials and TLS with which the server does not start, and its
//! one-line errors.

use expertise::{
    auth::KeySource,
    config::{AuthMode, Config},
};

use super::prelude::*;
use crate::kit::command::Says;

async fn refusal(auth: AuthMode) -> String {
    let config = Config {
        auth,
        ..in_memory()
    };
    let line = TestServer::try_start(config).await.expect_err("a refusal");
    assert!(!line.contains('\n'), "{line}");
    line
}

#[tokio::test]
async fn a_file_without_a_supported_public_key_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key.pem");
    let line = refusal(jwt(KeySource::PublicKeyFile(path.clone()))).await;
    assert!(
        line.starts_with("EXPERTISE_JWT_PUBLIC_KEY_FILE is "),
        "{line}"
    );

    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
    let private = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let certificate = Authority::new().pem().to_owned();
    let es256 = Signer::es256();
    for text in [
        "",
        "hush",
        &p384.public_key_pem(),
        &private,
        &certificate,
        include_str!("../../kit/keys/rsa_private.pem"),
        include_str!("../../kit/keys/rsa_1024_public.pem"),
        include_str!("../../kit/keys/secp256k1_public.pem"),
        &es256.public_pem().replace("PUBLIC KEY", "SECRET KEY"),
    ] {
        std::fs::write(&path, text).expect("a file");
        let line = refusal(jwt(KeySource::PublicKeyFile(path.clone()))).await;
        line.says(&["RSA of 2048 to 8192 bits, P-256 or Ed25519"]);
        assert!(!line.contains("hush"), "{line}");
    }
}

#[tokio::test]
async fn a_key_set_without_a_supported_key_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    let secret = json!({"kty": "oct", "kid": "s", "alg": "HS256", "k": "aHVzaGh1c2hodXNo"});
    let large = " ".repeat(1024 * 1024 + 1);
    for text in [
        "",
        "hush",
        "{}",
        r#"{"keys": []}"#,
        &key_set(&[secret]),
        &large,
    ] {
        std::fs::write(&path, text).expect("a file");
        let line = refusal(jwt(KeySource::KeySetFile(path.clone()))).await;
        assert!(line.starts_with("EXPERTISE_JWT_JWKS_FILE is "), "{line}");
        assert!(!line.contains("hush"), "{line}");

        let issuer = KeyServer::start(text).await;
        let line = refusal(jwt(KeySource::KeySetUrl(issuer.url()))).await;
        assert!(line.starts_with("EXPERTISE_JWT_JWKS_URL is "), "{line}");
        assert!(!line.contains("hush"), "{line}");
    }
}

#[tokio::test]
async fn a_key_set_of_a_mebibyte_is_accepted() {
    let set = key_set(&[Signer::es256().jwk("key")]);
    let full = format!("{set}{}", " ".repeat(1024 * 1024 - set.len()));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    std::fs::write(&path, &full).expect("a file");
    let issuer = KeyServer::start(&full).await;
    for source in [
        KeySource::KeySetFile(path),
        KeySource::KeySetUrl(issuer.url()),
    ] {
        start(jwt(source)).await.shut_down().await;
    }
}

#[tokio::test]
async fn an_issuer_that_returns_no_key_set_is_refused() {
    let issuer = KeyServer::start(&key_set(&[Signer::es256().jwk("key")])).await;
    for status in ["404 Not Found", "302 Found", "204 No Content"] {
        issuer.set_status(status);
        let line = refusal(jwt(KeySource::KeySetUrl(issuer.url()))).await;
        let cause = format!("it cannot be fetched: it answers with {}", &status[..3]);
        assert!(line.contains(&cause), "{line}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let url = format!("http://localhost:{port}/keys");
    let line = refusal(jwt(KeySource::KeySetUrl(url.parse().expect("a URL")))).await;
    let cause = format!("{url:?}: it cannot be fetched: no answer");
    assert!(line.contains(&cause), "{line}");
}

#[tokio::test]
async fn invalid_tls_files_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let good = authority.files(directory.path());
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let garbage = write("garbage", "hush");
    let broken = write(
        "broken",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let other = write("other", &authority.make("localhost").key);
    let block = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
    let unusable = write("unusable", &block("PRIVATE KEY"));
    let encrypted = write("encrypted", &block("ENCRYPTED PRIVATE KEY"));
    let nowhere = directory.path().join("nowhere");
    let with = |change: &dyn Fn(&mut expertise::config::Tls)| {
        let mut tls = good.clone();
        change(&mut tls);
        tls
    };
    for (tls, part) in [
        (
            with(&|t| t.cert_file = nowhere.clone()),
            "EXPERTISE_TLS_CERT_FILE is ",
        ),
        (
            with(&|t| t.cert_file = garbage.clone()),
            "EXPERTISE_TLS_CERT_FILE is ",
        ),
        (
            with(&|t| t.cert_file = broken.clone()),
            "cannot be used: the certificate is malformed",
        ),
        (
            with(&|t| t.key_file = nowhere.clone()),
            "EXPERTISE_TLS_KEY_FILE is ",
        ),
        (
            with(&|t| t.key_file = garbage.clone()),
            "EXPERTISE_TLS_KEY_FILE is ",
        ),
        (
            with(&|t| t.key_file = other.clone()),
            "cannot be used: the certificate and the key do not belong together",
        ),
        (
            with(&|t| t.key_file = unusable.clone()),
            "cannot be used: the key is malformed, or not RSA of 2048",
        ),
        (
            with(&|t| t.key_file = encrypted.clone()),
            "its key is encrypted: write it without a password",
        ),
        (
            with(&|t| t.client_ca_file = Some(garbage.clone())),
            "EXPERTISE_TLS_CLIENT_CA_FILE is ",
        ),
        (
            with(&|t| t.client_ca_file = Some(broken.clone())),
            "EXPERTISE_TLS_CLIENT_CA_FILE is ",
        ),
    ] {
        let config = Config {
            tls: Some(tls),
            ..in_memory()
        };
        let line = TestServer::try_start(config).await;
        let line = line.expect_err("a refusal");
        assert!(
            line.contains(part) && !line.contains('\n'),
            "{part}: {line}"
        );
        assert!(!line.contains("hush"), "{line}");
    }
}
