//! The binary: tokens that it signs, keys that it fetches over https, its log.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
};

use crate::harness::prelude::*;

fn expertise() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_expertise"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(name);
        }
    }
    command
        .env("EXPERTISE_JWT_ISSUER", ISSUER)
        .env("EXPERTISE_JWT_AUDIENCE", AUDIENCE);
    command
}

fn token(arguments: &[&str]) -> Output {
    let secret = std::str::from_utf8(SECRET).expect("text");
    let mut command = expertise();
    command.env("EXPERTISE_JWT_SECRET", secret);
    let output = command.arg("token").args(arguments).output();
    output.expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_token_of_the_command_is_accepted_with_the_scopes_it_was_given() {
    let service = Service::start(hs256()).await;
    let client = service.client();
    let output = token(&["--account=42", "--scope=read write", "--expires=1h"]);
    assert_eq!(text(&output.stderr), "");
    let printed = text(&output.stdout);
    let signed = printed.trim_end();
    assert!(!signed.contains(char::is_whitespace), "{printed:?}");
    client.read(signed).await.expect("it may read");
    let account = client.write(signed).await.expect("it may write");
    assert_eq!(account, "42");
    let answer = answered(client.administer(signed).await);
    assert_eq!(answer.reason, "SCOPE_MISSING");

    let read_only = token(&["--account=7", "--scope=read", "--subject=ann"]);
    let answer = answered(client.write(text(&read_only.stdout).trim_end()).await);
    assert_eq!(answer.reason, "SCOPE_MISSING");
}

#[test]
fn what_a_token_cannot_say_is_refused_with_one_line() {
    for (argument, part) in [
        ("--account=4 2", "--account is \"4 2\": it must be 1 to 64"),
        ("--scope=raed", "--scope is \"raed\": it must be "),
        ("--scope=", "--scope is \"\": it must be "),
        ("--expires=1", "--expires is \"1\": it must be "),
        ("--expires=0s", "--expires is \"0s\": it must be "),
        ("--subject=", "--subject is \"\": it must be "),
    ] {
        let mut arguments = vec!["--account=42", "--scope=read", "--expires=1h"];
        let (name, _) = argument.split_once('=').expect("a value");
        arguments.retain(|other| !other.starts_with(name));
        arguments.push(argument);
        let output = token(&arguments);
        let line = text(&output.stderr);
        assert!(line.contains(part), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn without_what_signs_one_line_says_what_is_missing() {
    let arguments = ["token", "--account=42", "--scope=read"];
    let refusal = |command: &mut Command| {
        let output = command.args(arguments).output().expect("the binary runs");
        let line = text(&output.stderr);
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(output.status.code(), Some(2));
        line
    };
    let line = refusal(&mut expertise());
    assert!(line.contains("EXPERTISE_JWT_SECRET is unset"), "{line}");
    let url = "https://issuer.test/keys";
    let line = refusal(expertise().env("EXPERTISE_JWT_JWKS_URL", url));
    assert!(line.contains("EXPERTISE_JWT_SECRET is unset"), "{line}");
    let secret = std::str::from_utf8(SECRET).expect("text");
    for missing in ["EXPERTISE_JWT_ISSUER", "EXPERTISE_JWT_AUDIENCE"] {
        let mut command = expertise();
        command.env("EXPERTISE_JWT_SECRET", secret);
        let line = refusal(command.env_remove(missing));
        assert!(line.contains(&format!("{missing} is unset")), "{line}");
        assert!(!line.contains(secret), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_secrets_nor_tokens_get_into_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let secret = std::str::from_utf8(SECRET).expect("text");
    let mut child = expertise()
        .args(["--listen=127.0.0.1:0", "--database-url=sqlite::memory:"])
        .args(["--auth=jwt", "--log=trace"])
        .env("EXPERTISE_JWT_SECRET", secret)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).expect("a file"))
        .spawn()
        .expect("the binary runs");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let line = out.lines().next().expect("a line").expect("text");
    let address = line.split_whitespace().nth(4).expect("an address");
    let client = Client::to(address.parse().expect("an address"));

    let good = Signer::secret(SECRET).token(&claims());
    let forged = Signer::secret(b"another secret of 32 bytes or more").token(&claims());
    client.read(&good).await.expect("it is accepted");
    answered(client.read(&forged).await);
    let _ = child.kill();
    let _ = child.wait();

    let log = std::fs::read_to_string(&log).expect("the log");
    assert!(log.contains("the key did not sign it"), "{log}");
    assert!(!log.contains(secret), "{log}");
    for part in good.split('.').chain(forged.split('.')) {
        assert!(!log.contains(part), "{log}");
    }
}

/// The first line of a server that fetches keys, trusting this file: what it
/// says when it serves, or why it does not.
fn first_line(url: &str, authorities: &std::path::Path) -> String {
    let mut child = expertise()
        .args(["--listen=127.0.0.1:0", "--database-url=sqlite::memory:"])
        .args(["--auth=jwt", "--jwt-jwks-url", url])
        .env("SSL_CERT_FILE", authorities)
        .env_remove("SSL_CERT_DIR")
        .env("EXPERTISE_LOG", "off")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let err = BufReader::new(child.stderr.take().expect("it is piped"));
    let line = out.lines().next().or_else(|| err.lines().next());
    let _ = child.kill();
    let _ = child.wait();
    line.expect("a line").expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_over_https_from_those_whom_the_machine_trusts() {
    let authority = Authority::new();
    let set = key_set(&[Signer::es256().jwk("key")]);
    let server = KeyServer::start_with_tls(&set, authority.acceptor()).await;
    let url = server.url().to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let trusted = directory.path().join("trusted.pem");
    std::fs::write(&trusted, authority.pem()).expect("a file");
    let other = directory.path().join("other.pem");
    std::fs::write(&other, Authority::new().pem()).expect("a file");
    let lines =
        tokio::task::spawn_blocking(move || (first_line(&url, &trusted), first_line(&url, &other)));
    let (served, refused) = lines.await.expect("two lines");
    assert!(served.ends_with("(sqlite::memory:, auth jwt)"), "{served}");
    assert!(
        refused.contains("EXPERTISE_JWT_JWKS_URL is \"https://"),
        "{refused}"
    );
    assert!(refused.contains("certificate"), "{refused}");
    assert_eq!(server.fetches(), 1);
}
