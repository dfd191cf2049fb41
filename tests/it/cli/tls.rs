//! Commands over TLS: trusted, not trusted, and on the wrong kind of port.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use crate::{
    command::{Command, command},
    kit::{
        deadline::until_true,
        server::{Setting, TestServer, in_memory},
    },
    ops::authentication::certificates::Authority,
};

struct Secured {
    process: TestServer,
    directory: tempfile::TempDir,
}

/// A server called localhost that speaks TLS.
fn secured(more: &[Setting]) -> Secured {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let tls = authority.files(directory.path());
    write(directory.path(), "ca.pem", authority.pem());
    let settings = in_memory().tls(&tls).set_all(more);
    Secured {
        process: TestServer::start_blocking(&settings),
        directory,
    }
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file of our own");
    shown(&path)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Secured {
    fn server(&self) -> String {
        format!("https://localhost:{}", self.process.address().port())
    }

    fn path(&self, name: &str) -> String {
        shown(&self.directory.path().join(name))
    }

    /// A command for this server that trusts its authority.
    fn command(&self, args: &[&str]) -> Command {
        command(args)
            .env("EXPERTISE_SERVER", &self.server())
            .env("EXPERTISE_CA_FILE", &self.path("ca.pem"))
    }

    fn list(&self) -> Command {
        self.command(&["list", "--account=demo"])
    }
}

#[test]
fn a_client_that_trusts_the_authority_is_served() {
    let secured = secured(&[]);
    secured.list().run().succeeded();
    secured.command(&["health"]).run().succeeded();
    // As in a container: the settings of the server, and the name that its
    // certificate is for.
    command(&["health", "--server-name=localhost"])
        .env("EXPERTISE_LISTEN", &secured.process.address().to_string())
        .env("EXPERTISE_TLS_CERT_FILE", &secured.path("cert.pem"))
        .env("EXPERTISE_CA_FILE", &secured.path("ca.pem"))
        .run()
        .succeeded();
}

/// Each failure is one line that says what to do.
#[test]
fn what_keeps_a_client_from_a_tls_server_is_named() {
    let secured = secured(&[]);
    let other = write(
        secured.directory.path(),
        "other.pem",
        Authority::new().pem(),
    );
    // The same name with a key of another type, as an older authority of a company may have.
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let namesake = Authority::with_key(ed25519);
    let namesake = write(secured.directory.path(), "namesake.pem", namesake.pem());
    let empty = write(secured.directory.path(), "empty.pem", "");
    let by_address = format!("https://127.0.0.1:{}", secured.process.address().port());
    let plain = secured.server().replace("https:", "http:");
    let ca_file = "EXPERTISE_CA_FILE";
    for (name, value, code, parts) in [
        (
            ca_file,
            other.as_str(),
            1,
            ["is from an untrusted CA", "--ca-file"],
        ),
        (
            ca_file,
            &namesake,
            1,
            ["is from an untrusted CA", "--ca-file"],
        ),
        (ca_file, &empty, 2, ["EXPERTISE_CA_FILE is ", "it has none"]),
        (
            ca_file,
            "none.pem",
            2,
            ["EXPERTISE_CA_FILE is ", "No such file"],
        ),
        (
            "EXPERTISE_SERVER",
            &by_address,
            1,
            ["is for another name", "--server-name"],
        ),
        (
            "EXPERTISE_SERVER",
            &plain,
            1,
            ["if it uses TLS", "begin its URL with https://"],
        ),
    ] {
        let list = secured
            .list()
            .env("EXPERTISE_RETRIES", "0")
            .env(name, value);
        let list = if value == plain {
            list.without(ca_file)
        } else {
            list
        };
        list.run().fails_with(code, &parts);
    }
    let health = secured.command(&["health"]).env(ca_file, &other);
    health.run().fails_with(1, &["--ca-file"]);
}

#[test]
fn without_a_ca_file_the_system_certificates_are_used() {
    let secured = secured(&[]);
    let list = |trusted: &str| {
        let list = secured.list().without("EXPERTISE_CA_FILE");
        let list = list.env("SSL_CERT_FILE", trusted).without("SSL_CERT_DIR");
        list.run()
    };
    list(&secured.path("ca.pem")).succeeded();
    let other = Authority::new().make("somebody").cert;
    let other = write(secured.directory.path(), "other.pem", &other);
    list(&other).fails_with(1, &["--ca-file or EXPERTISE_CA_FILE"]);
}

#[test]
fn tls_on_a_plain_text_port_is_reported_in_one_line() {
    let process = TestServer::start_blocking(&in_memory());
    let directory = tempfile::tempdir().expect("a directory");
    let ca = write(directory.path(), "ca.pem", Authority::new().pem());
    let server = format!("https://{}", process.address());
    for args in [&["list", "--account=demo"][..], &["health"]] {
        let command = command(args).env("EXPERTISE_SERVER", &server);
        command
            .env("EXPERTISE_CA_FILE", &ca)
            .run()
            .fails_with(1, &["does not use TLS", "http://"]);
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_one() {
    let clients = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let authorities = write(directory.path(), "clients.pem", clients.pem());
    let secured = secured(&[("EXPERTISE_TLS_CLIENT_CA_FILE", &authorities)]);
    let pair = clients.make("client");
    let cert = write(directory.path(), "client.pem", &pair.cert);
    let key = write(directory.path(), "client-key.pem", &pair.key);
    let shown = secured.list();
    let shown = shown.env("EXPERTISE_CLIENT_CERT_FILE", &cert);
    shown
        .env("EXPERTISE_CLIENT_KEY_FILE", &key)
        .run()
        .succeeded();
    secured
        .list()
        .env("EXPERTISE_RETRIES", "0")
        .run()
        .fails_with(1, &["--client-cert-file"]);
    let half = secured
        .list()
        .env("EXPERTISE_CLIENT_CERT_FILE", &cert)
        .run();
    assert!(half.failure(2).contains("EXPERTISE_CLIENT_KEY_FILE"));
}

#[test]
fn an_unusable_client_certificate_is_named_by_its_settings() {
    let clients = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let ca = write(directory.path(), "ca.pem", clients.pem());
    let pair = clients.make("client");
    let other = clients.make("client");
    let key = write(directory.path(), "key.pem", &pair.key);
    for (cert, reason) in [
        (other.cert, "do not belong together"),
        (version_1(&pair.cert), "not of X.509 version 3"),
    ] {
        let cert = write(directory.path(), "cert.pem", &cert);
        let list = command(&["list", "--account=demo", "--server=https://localhost:1"])
            .env("EXPERTISE_CA_FILE", &ca)
            .env("EXPERTISE_CLIENT_CERT_FILE", &cert)
            .env("EXPERTISE_CLIENT_KEY_FILE", &key);
        let settings = "EXPERTISE_CLIENT_CERT_FILE and EXPERTISE_CLIENT_KEY_FILE cannot be used";
        list.run().fails_with(2, &[settings, reason]);
    }
}

/// A certificate in PEM as X.509 version 1.
fn version_1(pem: &str) -> String {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let mut der = der.to_vec();
    let version = [0xa0, 3, 2, 1, 2];
    let mut windows = der.windows(version.len());
    let at = windows.position(|it| it == version).expect("version 3");
    der[at + 4] = 0;
    let text = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn a_missing_client_certificate_is_reported_without_many_retries_and_logged() {
    let clients = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let authorities = write(directory.path(), "clients.pem", clients.pem());
    let secured = secured(&[
        ("EXPERTISE_TLS_CLIENT_CA_FILE", authorities.as_str()),
        ("EXPERTISE_LOG_FORMAT", "json"),
    ]);
    let list = secured.list().env("EXPERTISE_RETRIES", "30");
    let list = list.env("EXPERTISE_BACKOFF", "1ms").run();
    list.fails_with(1, &["--client-cert-file"]);
    let failures = || {
        let log = secured.process.log();
        let lines = log
            .lines()
            .filter(|it| it.contains("the TLS handshake failed"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let logged = || {
        let line = failures().first().cloned();
        line.map(|line| serde_json::from_str::<serde_json::Value>(&line).expect(&line))
    };
    until_true("the failure is logged", || logged().is_some()).await;
    let line = logged().expect("a line");
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["cause"], "peer sent no certificates");
    let peer = line["peer"].as_str().expect("an address");
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    assert!(failures().len() < 10, "many retries");
}

#[tokio::test]
async fn why_a_client_certificate_is_refused_is_logged() {
    let clients = Authority::new();
    let pairs = [
        (
            clients.make_between("client", 2000, 2001),
            "certificate expired",
        ),
        (
            clients.make_between("client", 2090, 2091),
            "certificate not valid yet",
        ),
        (
            Authority::new().make("client"),
            "invalid peer certificate: BadSignature",
        ),
        (
            Authority::named("another").make("client"),
            "invalid peer certificate: UnknownIssuer",
        ),
    ];
    for (pair, cause) in pairs {
        let directory = tempfile::tempdir().expect("a directory");
        let authorities = write(directory.path(), "clients.pem", clients.pem());
        let settings = [("EXPERTISE_TLS_CLIENT_CA_FILE", &*authorities)];
        let secured = secured(&settings);
        let cert = write(directory.path(), "client.pem", &pair.cert);
        let key = write(directory.path(), "client-key.pem", &pair.key);
        let list = secured.list().env("EXPERTISE_CLIENT_CERT_FILE", &cert);
        let list = list.env("EXPERTISE_CLIENT_KEY_FILE", &key);
        list.env("EXPERTISE_RETRIES", "0").run().failure(1);
        let failed = || secured.process.log().contains("the TLS handshake failed");
        until_true("the failure is logged", failed).await;
        let log = secured.process.log();
        assert!(log.contains(cause), "{cause}: {log}");
    }
}
