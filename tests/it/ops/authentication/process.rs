//! `expertise token`, keys fetched over https, and secrets in the log.

use std::{fs, os::unix::fs::PermissionsExt};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rustix::process::Signal;
use serde_json::Value;

use super::certificates::{self, Authority};
use super::prelude::*;
use crate::{
    command::{Command, CommandOutput, RunningCommand, Says, command},
    kit::client::Client,
};

fn expertise(args: &[&str]) -> Command {
    command(args)
        .env("EXPERTISE_JWT_ISSUER", ISSUER)
        .env("EXPERTISE_JWT_AUDIENCE", AUDIENCE)
}

/// The log of a server that is told to end. Without the time to end, the line of the last call may be
/// missing.
async fn log_until_the_end(server: RunningCommand) -> String {
    server.signal(Signal::TERM);
    let output = tokio::task::spawn_blocking(|| server.end()).await;
    output.expect("no panic").stderr
}

fn token(args: &[&str]) -> CommandOutput {
    let args = [&["token"], args].concat();
    expertise(&args).env("EXPERTISE_JWT_SECRET", SECRET).run()
}

#[tokio::test]
async fn a_token_of_the_command_is_accepted_with_the_scopes_it_was_given() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let output = token(&["--account=42", "--scope=read write", "--expires=1h"]);
    assert_eq!(output.stderr, "");
    let printed = output.stdout;
    let signed = printed.trim_end();
    assert!(!signed.contains(char::is_whitespace), "{printed:?}");
    client.read(signed).await.expect("it may read");
    let account = client.write(signed).await.expect("it may write");
    assert_eq!(account, "42");
    let answer = error_answer(client.administer(signed).await);
    assert_eq!(answer.reason, "SCOPE_MISSING");

    let read_only = token(&["--account=7", "--scope=read", "--subject=ann"]);
    let answer = error_answer(client.write(read_only.stdout.trim_end()).await);
    assert_eq!(answer.reason, "SCOPE_MISSING");
}

#[test]
fn a_token_of_the_command_has_what_it_was_given() {
    for (args, lifetime, subject) in [
        (&[][..], 3_600, "expertise-token"),
        (&["--expires=90m", "--subject=ann"], 5_400, "ann"),
    ] {
        let args = [&["--account=42", "--scope=read write"], args].concat();
        let signed = token(&args).succeeded().stdout;
        let claims = signed.split('.').nth(1).expect(&signed);
        let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
        let claims: Value = serde_json::from_slice(&claims).expect("JSON");
        let number = |claim: &str| claims[claim].as_u64().expect(claim);
        assert_eq!(number("exp") - number("iat"), lifetime);
        for (claim, value) in [
            ("sub", subject),
            ("account_id", "42"),
            ("scope", "read write"),
            ("iss", ISSUER),
            ("aud", AUDIENCE),
        ] {
            assert_eq!(claims[claim], value);
        }
    }
}

#[test]
fn a_secret_file_signs_and_is_refused_unless_it_is_private() {
    let token = |mode: u32, text: &str| {
        let args = ["token", "--account=42", "--scope=read"];
        let command = expertise(&args)
            .env("EXPERTISE_JWT_SECRET_FILE", "secret")
            .file("secret", text);
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(command.path("secret"), permissions).expect("its mode");
        command.run()
    };
    let signed = token(0o400, &format!("{SECRET}\n")).succeeded().stdout;
    assert_eq!(signed.trim_end().split('.').count(), 3, "{signed}");
    for (mode, text, reason) in [
        (
            0o640,
            SECRET,
            "other users may access it: set its mode to 600",
        ),
        (
            0o604,
            SECRET,
            "other users may access it: set its mode to 600",
        ),
        (0o600, "hush", "its secret is shorter"),
        (0o600, "", "its secret is shorter"),
    ] {
        let start = "EXPERTISE_JWT_SECRET_FILE is \"secret\": ";
        let line = token(mode, text).fails_with(2, &[start, reason]);
        assert!(!line.contains("hush") && !line.contains(SECRET), "{line}");
    }
}

/// A private key in PEM, and its public key.
fn generated(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
    let pair = rcgen::KeyPair::generate_for(algorithm).expect("a key");
    (pair.serialize_pem(), pair.public_key_pem())
}

fn signed_with(key: &str) -> CommandOutput {
    let args = ["token", "--account=42", "--scope=read write"];
    let args = [&args[..], &["--private-key-file=private.pem"]].concat();
    expertise(&args).file("private.pem", key).run()
}

#[tokio::test]
async fn a_private_key_signs_tokens_that_its_public_key_verifies() {
    let rsa = include_str!("keys/rsa_private.pem");
    let of_rsa = (rsa.to_owned(), Signer::rsa().public_pem().to_owned());
    for (algorithm, (private, public)) in [
        ("RS256", of_rsa),
        ("ES256", generated(&rcgen::PKCS_ECDSA_P256_SHA256)),
        ("EdDSA", generated(&rcgen::PKCS_ED25519)),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = certificates::write(directory.path(), "public.pem", &public);
        let server = TestServer::start(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
        let client = TokenClient::of(&server);
        // A number of a signature may be shorter than others.
        for _ in 0..20 {
            let signed = signed_with(&private).succeeded().stdout;
            let account = client.write(signed.trim_end()).await;
            assert_eq!(account.expect(algorithm), "42");
        }
    }
}

#[test]
fn a_private_key_of_another_kind_is_refused() {
    let (p384, public) = generated(&rcgen::PKCS_ECDSA_P384_SHA384);
    for (key, reason) in [
        (
            p384,
            "its key is not RSA of at least 2048 bits, P-256 or Ed25519",
        ),
        (public, "it must be a private key in PEM: it has none"),
        (
            "hush".to_owned(),
            "it must be a private key in PEM: it has none",
        ),
    ] {
        let start = "--private-key-file is \"private.pem\": ";
        signed_with(&key).fails_with(2, &[start, reason]);
    }
}

#[tokio::test]
async fn neither_secrets_nor_tokens_get_into_the_log() {
    let args = [
        "--listen=127.0.0.1:0",
        "--database-url=sqlite::memory:",
        "--auth=jwt",
        "--log=trace",
    ];
    let server = expertise(&args).env("EXPERTISE_JWT_SECRET", SECRET).start();
    let client = TokenClient(Client::at(server.address()).without_credentials());

    let good = Signer::hs256().token(&claims());
    let forged = Signer::secret(b"another secret of 32 bytes or more").token(&claims());
    client.read(&good).await.expect("it is accepted");
    error_answer(client.read(&forged).await);
    let mut reversing = claims();
    reversing["sub"] = json!("ann\u{202e}bob");
    let reversing = Signer::hs256().token(&reversing);
    client.read(&reversing).await.expect("it is accepted");

    let log = log_until_the_end(server).await;
    log.says(&[
        "its signature was not made with the key",
        r#""subject":"ann""#,
    ]);
    // What shows text in another order is escaped.
    assert!(log.contains(r#""subject":"ann\u202ebob""#), "{log}");
    assert!(!log.contains(SECRET), "{log}");
    for part in good.split('.').chain(forged.split('.')) {
        assert!(!log.contains(part), "{log}");
    }
}

/// The answer does not say why, see `invalid_tokens`.
#[tokio::test]
async fn the_log_says_why_a_token_is_not_accepted() {
    let with = |name: &str, value: serde_json::Value| {
        let mut claims = claims();
        claims[name] = value;
        Signer::hs256().token(&claims)
    };
    let reasons = [
        (with("exp", json!(now() - 3_600)), "claim exp has passed"),
        (
            with("nbf", json!(now() + 3_600)),
            "claim nbf is in the future",
        ),
        (with("iss", json!("another")), "claim iss is another issuer"),
        (
            with("aud", json!("another")),
            "claim aud is another audience",
        ),
        (
            with("exp", json!("soon")),
            "claim exp is missing or malformed",
        ),
        (
            with("account_id", json!(42)),
            "claim account_id is not a string",
        ),
        (
            with("account_id", json!("a b")),
            "claim account_id is not allowed",
        ),
        (with("sub", json!(null)), "its claim sub is missing"),
        (
            with("scope", json!(["read"])),
            "claim scope is not a string",
        ),
    ];
    // At `info`, each cause has one line per ten seconds, regardless of what callers send.
    for (level, lines) in [("info", 1), ("debug", 2)] {
        let args = [
            "--listen=127.0.0.1:0",
            "--database-url=sqlite::memory:",
            "--auth=jwt",
            "--log",
            level,
        ];
        let server = expertise(&args).env("EXPERTISE_JWT_SECRET", SECRET).start();
        let client = TokenClient(Client::at(server.address()).without_credentials());
        for (token, _) in reasons.iter().chain(&reasons) {
            error_answer(client.read(token).await);
        }
        let log = log_until_the_end(server).await;
        for (_, reason) in &reasons {
            assert_eq!(log.matches(*reason).count(), lines, "{reason}: {log}");
        }
    }
}

#[test]
fn what_is_no_single_public_key_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let pair = Authority::new().make("issuer");
    let twice = generated(&rcgen::PKCS_ED25519).1.repeat(2);
    let with_private = generated(&rcgen::PKCS_ED25519).1 + &pair.key;
    for text in [pair.key, pair.cert, twice, with_private] {
        let file = certificates::write(directory.path(), "key.pem", &text);
        let args = ["--listen=127.0.0.1:0", "--auth=jwt"];
        let server = expertise(&args).env("EXPERTISE_JWT_PUBLIC_KEY_FILE", &file.to_string_lossy());
        let parts = [
            "it does not have exactly one PUBLIC KEY block: `openssl pkey",
            "`openssl x509",
            "put several keys into a JSON Web Key Set, for EXPERTISE_JWT_JWKS_FILE",
        ];
        server.run().fails_with(2, &parts);
    }
}

/// An issuer may have keys later, but a file without keys is a wrong setting.
#[test]
fn a_server_without_keys_ends_with_2_only_when_a_file_lacks_them() {
    let serve = |setting: &str, value: &str| {
        let args = [
            "--listen=127.0.0.1:0",
            "--database-url=sqlite::memory:",
            "--auth=jwt",
        ];
        expertise(&args).env(setting, value).run()
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let url = format!("http://localhost:{port}/keys");
    serve("EXPERTISE_JWT_JWKS_URL", &url).fails_with(1, &["no complete response"]);
    let file = tempfile::NamedTempFile::new().expect("an empty file");
    let path = file.path().display().to_string();
    serve("EXPERTISE_JWT_JWKS_FILE", &path).fails_with(2, &["EXPERTISE_JWT_JWKS_FILE is "]);
}

/// The command of a server that fetches keys.
fn with_keys_at(url: &str) -> Command {
    let args = [
        "--listen=127.0.0.1:0",
        "--database-url=sqlite::memory:",
        "--auth=jwt",
        "--jwt-jwks-url",
        url,
    ];
    expertise(&args).env("EXPERTISE_LOG", "off")
}

/// The first line of a server: what it says when it serves, or why it does not.
fn first_line(command: Command) -> String {
    let server = command.start();
    let line = server.next_line();
    line.unwrap_or_else(|| server.end().stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_over_https_with_the_system_certificates() {
    let authority = Authority::new();
    let set = key_set(&[Signer::es256().jwk("key")]);
    let issuer = KeyServer::start_with_tls(&set, authority.acceptor()).await;
    let url = issuer.url().to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let trusted = directory.path().join("trusted.pem");
    std::fs::write(&trusted, authority.pem()).expect("a file");
    let other = directory.path().join("other.pem");
    std::fs::write(&other, Authority::new().pem()).expect("a file");
    let trusting = move |authorities: &std::path::Path| {
        let command = with_keys_at(&url).env("SSL_CERT_FILE", &authorities.display().to_string());
        first_line(command.without("SSL_CERT_DIR"))
    };
    let lines = tokio::task::spawn_blocking(move || (trusting(&trusted), trusting(&other)));
    let (served, refused) = lines.await.expect("two lines");
    assert!(served.ends_with("(sqlite::memory:, auth jwt)"), "{served}");
    refused.says(&["EXPERTISE_JWT_JWKS_URL is \"https://", "certificate"]);
    assert_eq!(issuer.fetches(), 1);
}

/// The first line of a server that fetches keys where this proxy is set.
fn first_line_behind(proxy: &std::net::TcpListener, url: &str) -> String {
    let proxy = proxy.local_addr().expect("an address");
    let command = with_keys_at(url).env("http_proxy", &format!("http://{proxy}"));
    let unset = ["HTTP_PROXY", "NO_PROXY", "no_proxy"].into_iter();
    first_line(unset.fold(command, |command, name| command.without(name)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_for_an_issuer_elsewhere_and_for_no_local_one() {
    let issuer = KeyServer::start(&key_set(&[Signer::es256().jwk("key")])).await;
    let url = issuer.url().to_string();
    let by_address = url.replace("localhost", "127.0.0.1");
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let lines = tokio::task::spawn_blocking(move || {
        let served = [url, by_address].map(|url| first_line_behind(&proxy, &url));
        let asked = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let (asking, _) = proxy.accept().expect("a connection");
                let mut line = String::new();
                let mut request = std::io::BufReader::new(asking);
                std::io::BufRead::read_line(&mut request, &mut line).expect("a request");
                line
            });
            let refused = first_line_behind(&proxy, "http://issuer.test/keys");
            assert!(refused.contains("no complete response"), "{refused}");
            asked.join().expect("a request")
        });
        (served, asked)
    });
    let (served, asked) = lines.await.expect("lines of three servers");
    for line in served {
        assert!(line.ends_with("(sqlite::memory:, auth jwt)"), "{line}");
    }
    assert_eq!(asked, "GET http://issuer.test/keys HTTP/1.1\r\n");
}
