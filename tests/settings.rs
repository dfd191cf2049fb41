//! The built binary: what it says, what it refuses, and how it ends.

#![allow(clippy::expect_used)]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// Far beyond what anything here takes: a wait that long has hung.
const BOUND: Duration = Duration::from_secs(60);

/// The binary in an empty directory, with no setting from this process.
struct Expertise {
    directory: TempDir,
    command: Command,
}

fn expertise(args: &[&str]) -> Expertise {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_expertise"));
    command.args(args).current_dir(directory.path());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("EXPERTISE_") {
            command.env_remove(name);
        }
    }
    Expertise { directory, command }
}

impl Expertise {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).expect("a file of our own");
        self
    }

    fn output(mut self) -> Output {
        self.command.output().expect("the binary runs")
    }

    /// The one line of a start that was refused, and its exit code.
    fn refusal(self) -> (String, Option<i32>) {
        let output = self.output();
        let line = text(&output.stderr);
        assert_eq!(line.lines().count(), 1, "{line}");
        assert_eq!(text(&output.stdout), "");
        (line, output.status.code())
    }

    fn run(mut self) -> Running {
        self.command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = self.command.spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Running {
            child,
            lines,
            directory: self.directory,
        }
    }
}

/// A binary that runs, until it is dropped at the latest.
struct Running {
    child: Child,
    lines: Receiver<String>,
    directory: TempDir,
}

impl Running {
    fn line(&self) -> String {
        self.lines.recv_timeout(BOUND).expect("a line in time")
    }

    /// Where it listens, once it serves.
    fn address(&self) -> SocketAddr {
        let line = self.line();
        let address = line.split_whitespace().nth(4).expect("an address");
        address.parse().expect("an address")
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill runs").success());
    }

    /// How it ends, and what it still says.
    fn end(mut self) -> (ExitStatus, Vec<String>) {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        (self.child.wait().expect("its status"), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const MEMORY: [&str; 4] = [
    "--listen",
    "127.0.0.1:0",
    "--database-url",
    "sqlite::memory:",
];

#[test]
fn the_start_line_names_version_address_database_and_auth() {
    let running = expertise(&MEMORY).run();
    let line = running.line();
    let version = env!("CARGO_PKG_VERSION");
    let start = format!("expertise {version} listening on 127.0.0.1:");
    assert!(line.starts_with(&start), "{line}");
    assert!(line.ends_with(" (sqlite::memory:, auth header)"), "{line}");
    assert!(!line.contains("127.0.0.1:0 "), "{line}");
}

#[test]
fn the_default_database_is_a_file_where_it_was_started() {
    let running = expertise(&["--listen=127.0.0.1:0"]).run();
    let line = running.line();
    assert!(line.contains("(sqlite:expertise.db, "), "{line}");
    assert!(running.directory.path().join("expertise.db").exists());
}

#[test]
fn it_serves_once_the_start_line_is_out() {
    let running = expertise(&MEMORY).run();
    let mut peer = TcpStream::connect(running.address()).expect("a connection");
    greet(&mut peer);
}

/// Begins HTTP/2 and waits for the server's first frame.
fn greet(peer: &mut TcpStream) {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    peer.set_read_timeout(Some(BOUND)).expect("a time-out");
    peer.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .and_then(|()| peer.write_all(&SETTINGS))
        .expect("the preface is sent");
    peer.read_exact(&mut [0; 9]).expect("the server's settings");
}

#[test]
fn a_wrong_value_is_refused_with_one_line_and_exit_code_2() {
    for (name, value, right) in [
        ("EXPERTISE_LISTEN", "50051", "127.0.0.1:50051"),
        ("EXPERTISE_DATABASE_URL", "oracle://db", "sqlite:PATH"),
        ("EXPERTISE_MIGRATE", "maybe", "true or false"),
        ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "many", "1 to 1000"),
        ("EXPERTISE_AUTH", "none", "header"),
        ("EXPERTISE_MAX_MESSAGE_BYTES", "1", "1024"),
        ("EXPERTISE_REQUEST_TIMEOUT", "30", "unit"),
        ("EXPERTISE_SHUTDOWN_GRACE", "-1s", "unit"),
        ("EXPERTISE_REFLECTION", "on", "true or false"),
        ("EXPERTISE_METRICS_LISTEN", "9464", "127.0.0.1:"),
        ("EXPERTISE_OTLP_ENDPOINT", "collector:4317", "http"),
        ("EXPERTISE_LOG", "inof", "info"),
        ("EXPERTISE_LOG_FORMAT", "yaml", "text or json"),
    ] {
        let (line, code) = expertise(&[]).env(name, value).refusal();
        for part in [name, value, right] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert_eq!(code, Some(2), "{line}");
    }
}

#[test]
fn a_wrong_value_is_named_as_it_was_given() {
    let (line, code) = expertise(&["--migrate=maybe"]).refusal();
    assert!(line.contains("--migrate is \"maybe\""), "{line}");
    assert_eq!(code, Some(2));

    let (line, code) = expertise(&["--config", "e.toml"])
        .file("e.toml", "migrate = \"maybe\"")
        .refusal();
    assert!(line.contains("migrate in e.toml is \"maybe\""), "{line}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_password_is_not_repeated_in_a_refusal() {
    let url = "postgres://ann:secret@db:port/e";
    let (line, _) = expertise(&[]).env("EXPERTISE_DATABASE_URL", url).refusal();
    assert!(line.contains("****") && !line.contains("secret"), "{line}");
}

#[test]
fn settings_that_do_not_go_together_are_refused_with_one_line_and_exit_code_2() {
    for (name, value, part) in [
        ("EXPERTISE_AUTH", "jwt", "EXPERTISE_JWT_SECRET is unset"),
        ("EXPERTISE_JWT_SECRET", "hush", "EXPERTISE_AUTH is unset"),
        ("EXPERTISE_TLS_CERT_FILE", "c.pem", "EXPERTISE_TLS_KEY_FILE"),
        ("EXPERTISE_TLS_KEY_FILE", "k.pem", "EXPERTISE_TLS_CERT_FILE"),
        (
            "EXPERTISE_DATABASE_READ_URL",
            "postgres://ann:hush@db/e",
            "it must be unset, as only PostgreSQL has replicas",
        ),
    ] {
        let (line, code) = expertise(&[]).env(name, value).refusal();
        assert!(line.contains(part) && !line.contains("hush"), "{line}");
        assert_eq!(code, Some(2), "{line}");
    }
}

#[test]
fn a_key_that_cannot_be_read_is_a_failed_start_of_one_line() {
    let tls = ["--tls-cert-file=no/cert.pem", "--tls-key-file=no/key.pem"];
    let (line, code) = expertise(&[&MEMORY[..], &tls].concat()).refusal();
    assert!(
        line.contains("EXPERTISE_TLS_CERT_FILE is \"no/cert.pem\""),
        "{line}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn foreign_environment_names_are_no_settings() {
    let output = expertise(&["config"])
        .env("EXPERTISE_PORT_50051_TCP", "tcp://10.0.0.1:50051")
        .output();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn config_prints_each_setting_with_its_source() {
    let output = expertise(&["config", "--config", "e.toml", "--log", "debug"])
        .file(
            "e.toml",
            "log = \"warn\"\nreflection = false\nmigrate = false\n",
        )
        .env("EXPERTISE_REFLECTION", "true")
        .output();
    let printed = text(&output.stdout);
    for (setting, source) in [
        ("log = \"debug\"", "# flag"),
        ("reflection = true", "# environment"),
        ("migrate = false", "# file e.toml"),
        ("listen = \"127.0.0.1:50051\"", "# default"),
    ] {
        let found = |line: &str| line.starts_with(setting) && line.ends_with(source);
        assert!(printed.lines().any(found), "{setting} {source}:\n{printed}");
    }
    assert!(output.status.success());
}

#[test]
fn config_masks_the_password_of_a_database() {
    let output = expertise(&["config"])
        .env("EXPERTISE_DATABASE_URL", "postgres://ann:secret@db/e")
        .output();
    let printed = text(&output.stdout);
    assert!(printed.contains("postgres://ann:****@db/e"), "{printed}");
    assert!(!printed.contains("secret"), "{printed}");
}

#[test]
fn help_is_no_failure_and_lists_the_settings() {
    let output = expertise(&["--help"]).output();
    let printed = text(&output.stdout);
    assert!(output.status.success());
    for part in ["--database-url", "EXPERTISE_DATABASE_URL", "[default: 8s]"] {
        assert!(printed.contains(part), "{part}:\n{printed}");
    }
}

#[test]
fn a_taken_port_is_a_failed_start_of_one_line() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = holder.local_addr().expect("its address").to_string();
    let (line, code) =
        expertise(&["--listen", &address, "--database-url=sqlite::memory:"]).refusal();
    assert!(line.contains(&address) && line.contains("taken"), "{line}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_database_that_cannot_be_opened_is_a_failed_start_of_one_line() {
    let url = "--database-url=sqlite:no/such/directory/e.db";
    let output = expertise(&["--listen=127.0.0.1:0", url]).output();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("e.db"));
}

#[test]
fn signals_end_it_cleanly_even_with_silent_peers() {
    for signal in ["TERM", "INT"] {
        let running = expertise(&MEMORY)
            .env("EXPERTISE_SHUTDOWN_GRACE", "1s")
            .run();
        let address = running.address();
        let silent = TcpStream::connect(address).expect("a connection");
        // Connections are accepted in order: this one's answer says that the
        // silent one is in.
        let mut idle = TcpStream::connect(address).expect("a connection");
        greet(&mut idle);
        running.signal(signal);
        let (status, said) = running.end();
        assert_eq!(status.code(), Some(0), "{signal}");
        assert_eq!(said, Vec::<String>::new());
        drop((silent, idle));
    }
}

#[test]
fn migrate_makes_the_schema_and_ends() {
    let output = expertise(&["migrate"]).output();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}
