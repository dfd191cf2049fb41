//! Settings of the server, its start line, and how it ends.

mod certificate;
mod check;
mod refused;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use crate::command::{Says, binary_text, command, shell};
use rustix::process::Signal;

/// A wait that reaches it has hung.
const TIMEOUT: Duration = Duration::from_secs(60);

const MEMORY: [&str; 4] = [
    "--listen",
    "127.0.0.1:0",
    "--database-url",
    "sqlite::memory:",
];

#[test]
fn the_start_line_names_version_address_database_and_auth() {
    let running = command(&MEMORY).start();
    let line = running.start_line();
    let version = env!("CARGO_PKG_VERSION");
    let start = format!("expertise {version} listening on 127.0.0.1:");
    assert!(line.starts_with(&start), "{line}");
    assert!(line.ends_with(" (sqlite::memory:, auth header)"), "{line}");
    assert!(!line.contains("127.0.0.1:0 "), "{line}");
}

#[test]
fn the_default_database_is_a_file_where_it_was_started() {
    let running = command(&["--listen=127.0.0.1:0"]).start();
    let line = running.start_line();
    assert!(line.contains("(sqlite:expertise.db, "), "{line}");
    assert!(running.path("expertise.db").exists());
}

/// Begins HTTP/2 and waits for the server's first frame.
fn begin_http2(connection: &mut TcpStream) {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    connection
        .set_read_timeout(Some(TIMEOUT))
        .expect("a time-out");
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .and_then(|()| connection.write_all(&SETTINGS))
        .expect("the preface is sent");
    connection
        .read_exact(&mut [0; 9])
        .expect("the server's settings");
}

#[test]
fn a_taken_port_is_a_failed_start_of_one_line() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = holder.local_addr().expect("its address").to_string();
    let line = command(&["--listen", &address, "--database-url=sqlite::memory:"])
        .run()
        .failure(1);
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
}

#[test]
fn signals_end_the_server_cleanly_despite_silent_connections() {
    for signal in [Signal::TERM, Signal::INT] {
        let running = command(&MEMORY)
            .env("EXPERTISE_SHUTDOWN_GRACE", "1s")
            .start();
        let address = running.address();
        let silent = TcpStream::connect(address).expect("a connection");
        // Connections are accepted in order: this one's settings frame proves that the
        // silent one was accepted.
        let mut idle = TcpStream::connect(address).expect("a connection");
        begin_http2(&mut idle);
        running.signal(signal);
        let output = running.end();
        assert_eq!(output.code, Some(0), "{signal:?}");
        assert_eq!(output.stdout, "");
        drop((silent, idle));
    }
}

#[test]
fn connections_beyond_the_limit_of_open_files_wait_and_are_logged() {
    // 64 descriptors are reserved, and one is for the database. Two connections are left.
    let script = format!("ulimit -n 67; exec {} \"$@\"", binary_text());
    let running = shell(&script)
        .envs(&[
            ("EXPERTISE_LISTEN", "127.0.0.1:0"),
            ("EXPERTISE_DATABASE_URL", "sqlite::memory:"),
            ("EXPERTISE_DATABASE_MAX_CONNECTIONS", "1"),
            ("EXPERTISE_LOG", "warn"),
            ("EXPERTISE_LOG_FORMAT", "text"),
        ])
        .start();
    let address = running.address();
    let mut connections = [(); 3].map(|()| TcpStream::connect(address).expect("a connection"));
    for connection in &mut connections[..2] {
        begin_http2(connection);
    }
    let line = running.next_error_line();
    line.says(&["WARN", "too many connections: new ones must wait", "max=2"]);
    let [first, second, mut third] = connections;
    drop(first);
    begin_http2(&mut third);
    drop(second);
}
