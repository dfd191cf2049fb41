//! Settings of credentials and TLS with which the server does not start, and its
//! one-line errors.

use std::path::Path;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::prelude::*;
use crate::{command::Says, kit::server::Settings};

/// The line with which a server refuses to start.
async fn refusal(settings: Settings) -> String {
    let settings = settings.set("EXPERTISE_LOG", "off");
    let line = TestServer::try_start(settings).await;
    let line = line.expect_err("a refusal");
    assert_eq!(line.lines().count(), 1, "{line}");
    let line = line.trim_end().strip_prefix("expertise: ");
    line.expect("a line of the program").to_owned()
}

#[tokio::test]
async fn a_file_without_a_supported_public_key_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key.pem");
    let line = refusal(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
    assert!(
        line.starts_with("EXPERTISE_JWT_PUBLIC_KEY_FILE is "),
        "{line}"
    );

    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
    let private = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let certificate = Authority::new().pem().to_owned();
    let es256 = Signer::es256();
    let unsupported = "its key is not RSA (2048 to 8192 bits), P-256 or Ed25519";
    let no_key = "it does not have exactly one PUBLIC KEY block";
    for (text, part) in [
        ("", no_key),
        ("hush", no_key),
        (&p384.public_key_pem(), unsupported),
        (&private, no_key),
        (&certificate, no_key),
        (include_str!("keys/rsa_private.pem"), no_key),
        (include_str!("keys/rsa_1024_public.pem"), unsupported),
        (include_str!("keys/secp256k1_public.pem"), unsupported),
        (
            &es256.public_pem().replace("PUBLIC KEY", "SECRET KEY"),
            no_key,
        ),
    ] {
        std::fs::write(&path, text).expect("a file");
        let line = refusal(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
        line.says(&[part]);
        assert!(!line.contains("hush"), "{line}");
    }
}

#[tokio::test]
async fn a_key_set_without_a_supported_key_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    let secret = json!({"kty": "oct", "kid": "s", "alg": "HS256", "k": "aHVzaGh1c2hodXNo"});
    let large = " ".repeat(1024 * 1024 + 1);
    let zeros = |bytes| URL_SAFE_NO_PAD.encode(vec![0; bytes]);
    let p256 = |bytes| json!({"kty": "EC", "crv": "P-256", "x": zeros(bytes), "y": zeros(bytes)});
    let ed25519 = |bytes| json!({"kty": "OKP", "crv": "Ed25519", "x": zeros(bytes)});
    let mut encryption = Signer::es256().jwk("e");
    encryption["use"] = json!("enc");
    let mut cases = vec![
        (String::new(), "it is not JSON"),
        ("hush".to_owned(), "it is not JSON"),
        ("{}".to_owned(), "it is not JSON"),
        (key_set(&[]), "it has no keys"),
        (
            key_set(&[secret]),
            "one is not of type RSA, P-256 or Ed25519",
        ),
        (key_set(&[encryption]), "one is for another use"),
        (large, "it is larger than 1048576 bytes"),
    ];
    let rsa = [
        rsa(255, 1, &[1, 0, 1]),
        rsa(1025, 1, &[1, 0, 1]),
        rsa(256, 2, &[1, 0, 1]),
        rsa(256, 1, &[1, 0, 0]),
        rsa(256, 1, &[1]),
    ];
    let others = [p256(31), p256(32), ed25519(31), ed25519(32)];
    let malformed = rsa.into_iter().chain(others);
    cases.extend(malformed.map(|key| (key_set(&[key]), "one is malformed")));
    for (text, reason) in &cases {
        std::fs::write(&path, text).expect("a file");
        let line = refusal(jwt("EXPERTISE_JWT_JWKS_FILE", path.display())).await;
        line.says(&["EXPERTISE_JWT_JWKS_FILE is ", reason]);
        assert!(!line.contains("hush"), "{line}");

        let issuer = KeyServer::start(text).await;
        let line = refusal(jwt("EXPERTISE_JWT_JWKS_URL", issuer.url())).await;
        line.says(&["EXPERTISE_JWT_JWKS_URL is ", reason]);
        assert!(!line.contains("hush"), "{line}");
    }
}

/// An RSA key whose modulus has this size and last byte.
fn rsa(modulus_bytes: usize, last: u8, exponent: &[u8]) -> Value {
    let mut modulus = vec![0xff; modulus_bytes];
    modulus[modulus_bytes - 1] = last;
    let [n, e] = [&modulus, exponent].map(|number| URL_SAFE_NO_PAD.encode(number));
    json!({"kty": "RSA", "kid": "rsa", "n": n, "e": e})
}

#[tokio::test]
async fn rsa_keys_of_2048_to_8192_bits_are_accepted() {
    let keys = [rsa(256, 1, &[3]), rsa(1024, 0xff, &[1, 0, 1])];
    for key in keys {
        let issuer = KeyServer::start(&key_set(&[key])).await;
        start_with_keys_of(&issuer).await.shut_down().await;
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
    for settings in [
        jwt("EXPERTISE_JWT_JWKS_FILE", path.display()),
        jwt("EXPERTISE_JWT_JWKS_URL", issuer.url()),
    ] {
        TestServer::start(settings).await.shut_down().await;
    }
}

#[tokio::test]
async fn an_issuer_that_returns_no_key_set_is_refused() {
    let issuer = KeyServer::start(&key_set(&[Signer::es256().jwk("key")])).await;
    for status in ["404 Not Found", "302 Found", "204 No Content"] {
        issuer.set_status(status);
        let line = refusal(jwt("EXPERTISE_JWT_JWKS_URL", issuer.url())).await;
        let cause = format!("it cannot be fetched: it responds with {}", &status[..3]);
        assert!(line.contains(&cause), "{line}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let url = format!("http://localhost:{port}/keys");
    let line = refusal(jwt("EXPERTISE_JWT_JWKS_URL", format!("{url}?code=hush"))).await;
    let cause = format!("\"{url}?****\": it cannot be fetched: no complete response");
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
    let cert = |path: &Path| ("EXPERTISE_TLS_CERT_FILE", path.to_owned());
    let key = |path: &Path| ("EXPERTISE_TLS_KEY_FILE", path.to_owned());
    let client_ca = |path: &Path| ("EXPERTISE_TLS_CLIENT_CA_FILE", path.to_owned());
    for ((name, path), part) in [
        (cert(&nowhere), "EXPERTISE_TLS_CERT_FILE is "),
        (cert(&garbage), "EXPERTISE_TLS_CERT_FILE is "),
        (
            cert(&broken),
            "EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE cannot be used: the certificate \
             is malformed",
        ),
        (key(&nowhere), "EXPERTISE_TLS_KEY_FILE is "),
        (key(&garbage), "EXPERTISE_TLS_KEY_FILE is "),
        (
            key(&other),
            "cannot be used: the certificate and the key do not belong together",
        ),
        (
            key(&unusable),
            "cannot be used: the key is malformed, or not RSA of 2048",
        ),
        (
            key(&encrypted),
            "its key is encrypted: decrypt it with `openssl pkey`",
        ),
        (client_ca(&garbage), "EXPERTISE_TLS_CLIENT_CA_FILE is "),
        (client_ca(&broken), "EXPERTISE_TLS_CLIENT_CA_FILE is "),
    ] {
        let line = refusal(in_memory().tls(&good).set(name, path.display())).await;
        assert!(
            line.contains(part) && !line.contains('\n'),
            "{part}: {line}"
        );
        assert!(!line.contains("hush"), "{line}");
    }
}
