//! Commands over TLS: trusted, not trusted, and on the wrong kind of port.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::kit::{
    certificates::Authority,
    command::{Command, command},
    deadline::until_true,
    server_process::ServerProcess,
};

struct Secured {
    process: ServerProcess,
    directory: tempfile::TempDir,
    authority: Authority,
}

/// A server called localhost that speaks TLS.
fn secured(name: &str, more: &[(&str, &str)]) -> Secured {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new();
    let tls = authority.files(directory.path());
    write(directory.path(), "ca.pem", authority.pem());
    let (cert, key) = (shown(&tls.cert_file), shown(&tls.key_file));
    let mut settings = vec![
        ("EXPERTISE_DATABASE_URL", "sqlite::memory:"),
        ("EXPERTISE_TLS_CERT_FILE", &cert),
        ("EXPERTISE_TLS_KEY_FILE", &key),
    ];
    settings.extend(more);
    Secured {
        process: ServerProcess::start(name, &settings),
        directory,
        authority,
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
    let secured = secured("tls", &[]);
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

#[test]
fn an_untrusted_authority_is_reported_in_one_line() {
    let secured = secured("tls-untrusted", &[]);
    let other = write(
        secured.directory.path(),
        "other.pem",
        Authority::new().pem(),
    );
    let line = secured
        .list()
        .env("EXPERTISE_CA_FILE", &other)
        .run()
        .failure(1);
    assert!(
        line.contains("is not trusted") && line.contains("--ca-file"),
        "{line}"
    );
    let health = secured
        .command(&["health"])
        .env("EXPERTISE_CA_FILE", &other);
    assert!(health.run().failure(1).contains("--ca-file"));
}

#[test]
fn without_a_ca_file_the_system_certificates_are_used() {
    let secured = secured("tls-machine", &[]);
    let list = |trusted: &str| {
        let list = secured.list().without("EXPERTISE_CA_FILE");
        let list = list.env("SSL_CERT_FILE", trusted).without("SSL_CERT_DIR");
        list.run()
    };
    list(&secured.path("ca.pem")).succeeded();
    let other = Authority::new().make("somebody").cert;
    let other = write(secured.directory.path(), "other.pem", &other);
    let line = list(&other).failure(1);
    assert!(line.contains("--ca-file or EXPERTISE_CA_FILE"), "{line}");
}

#[test]
fn a_certificate_for_another_name_is_reported_in_one_line() {
    let secured = secured("tls-name", &[]);
    let server = format!("https://127.0.0.1:{}", secured.process.address().port());
    let line = secured
        .list()
        .env("EXPERTISE_SERVER", &server)
        .run()
        .failure(1);
    assert!(
        line.contains("is for another name") && line.contains("--server-name"),
        "{line}"
    );
}

#[test]
fn plain_text_on_a_tls_port_is_reported_in_one_line() {
    let secured = secured("tls-plain", &[]);
    let server = secured.server().replace("https:", "http:");
    let list = || {
        secured
            .list()
            .without("EXPERTISE_CA_FILE")
            .env("EXPERTISE_SERVER", &server)
    };
    let line = list().env("EXPERTISE_RETRIES", "0").run().failure(1);
    assert!(
        line.contains("if it uses TLS, begin its URL with https://"),
        "{line}"
    );
}

#[test]
fn tls_on_a_plain_text_port_is_reported_in_one_line() {
    let process = ServerProcess::start("plain", &[("EXPERTISE_DATABASE_URL", "sqlite::memory:")]);
    let directory = tempfile::tempdir().expect("a directory");
    let ca = write(directory.path(), "ca.pem", Authority::new().pem());
    let server = format!("https://{}", process.address());
    for args in [&["list", "--account=demo"][..], &["health"]] {
        let command = command(args).env("EXPERTISE_SERVER", &server);
        let line = command.env("EXPERTISE_CA_FILE", &ca).run().failure(1);
        assert!(
            line.contains("does not use TLS") && line.contains("http://"),
            "{line}"
        );
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_one() {
    let clients = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let authorities = write(directory.path(), "clients.pem", clients.pem());
    let secured = secured("mutual", &[("EXPERTISE_TLS_CLIENT_CA_FILE", &authorities)]);
    let pair = clients.make("client");
    let cert = write(directory.path(), "client.pem", &pair.cert);
    let key = write(directory.path(), "client-key.pem", &pair.key);
    let shown = secured.list();
    let shown = shown.env("EXPERTISE_CLIENT_CERT_FILE", &cert);
    shown
        .env("EXPERTISE_CLIENT_KEY_FILE", &key)
        .run()
        .succeeded();
    let line = secured
        .list()
        .env("EXPERTISE_RETRIES", "0")
        .run()
        .failure(1);
    assert!(line.contains("--client-cert-file"), "{line}");
    let half = secured
        .list()
        .env("EXPERTISE_CLIENT_CERT_FILE", &cert)
        .run();
    assert!(half.failure(2).contains("EXPERTISE_CLIENT_KEY_FILE"));
}

/// Leads to a port of this machine, and counts the connections.
fn counting_relay(target: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let server = TcpStream::connect(("127.0.0.1", target)).expect("a server");
            let both = [(&client, &server), (&server, &client)];
            for (from, to) in both {
                let (mut from, mut to) = (
                    from.try_clone().expect("a stream"),
                    to.try_clone().expect("a stream"),
                );
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    (port, count)
}

#[tokio::test]
async fn a_missing_client_certificate_is_reported_without_many_retries_and_logged() {
    let clients = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let authorities = write(directory.path(), "clients.pem", clients.pem());
    let secured = secured(
        "mutual-retries",
        &[
            ("EXPERTISE_TLS_CLIENT_CA_FILE", &authorities),
            ("EXPERTISE_LOG_FORMAT", "json"),
        ],
    );
    let (port, connections) = counting_relay(secured.process.address().port());
    let line = secured
        .list()
        .env("EXPERTISE_SERVER", &format!("https://localhost:{port}"))
        .env("EXPERTISE_RETRIES", "30")
        .env("EXPERTISE_BACKOFF", "1ms")
        .run()
        .failure(1);
    assert!(line.contains("--client-cert-file"), "{line}");
    let count = connections.load(Ordering::SeqCst);
    assert!(count < 10, "{count} connections");
    let logged = || {
        let log = secured.process.log();
        let line = log
            .lines()
            .find(|it| it.contains("the TLS handshake failed"));
        line.map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line))
    };
    until_true("the failure is logged", || logged().is_some()).await;
    let line = logged().expect("a line");
    assert_eq!(line["level"], "INFO");
    assert_eq!(
        line["cause"],
        "the client sent no certificate, which EXPERTISE_TLS_CLIENT_CA_FILE requires"
    );
    let peer = line["peer"].as_str().expect("an address");
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
}

#[test]
fn a_file_without_a_certificate_is_reported_in_one_line() {
    let secured = secured("tls-files", &[]);
    let empty = write(secured.directory.path(), "empty.pem", "");
    for (file, part) in [
        (empty.as_str(), "it has none"),
        ("none.pem", "No such file"),
    ] {
        let line = secured
            .list()
            .env("EXPERTISE_CA_FILE", file)
            .run()
            .failure(2);
        assert!(
            line.contains("EXPERTISE_CA_FILE is ") && line.contains(part),
            "{line}"
        );
    }
    assert!(!secured.authority.pem().is_empty());
}
