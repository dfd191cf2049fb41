//! A certificate of the server that is not valid at present.

use crate::{
    command::{RunningCommand, Says, command},
    ops::authentication::certificates::Authority,
};
use rustix::process::Signal;

/// A server whose certificate is valid from the first to the second year.
fn serve_with_certificate(first: i32, last: i32) -> RunningCommand {
    let pair = Authority::new().make_between("localhost", first, last);
    let args = ["--listen=127.0.0.1:0", "--log-format=text"];
    command(&args)
        .envs(&[
            ("EXPERTISE_DATABASE_URL", "sqlite::memory:"),
            ("EXPERTISE_TLS_CERT_FILE", "cert.pem"),
            ("EXPERTISE_TLS_KEY_FILE", "key.pem"),
        ])
        .file("cert.pem", &pair.cert)
        .file("key.pem", &pair.key)
        .start()
}

#[test]
fn a_certificate_that_is_not_valid_now_is_a_warning() {
    for (first, last) in [(1999, 2001), (4000, 4001)] {
        let period =
            format!("is only valid from {first}-01-01T00:00:00Z to {last}-01-01T00:00:00Z");
        let server = serve_with_certificate(first, last);
        let line = server.next_error_line();
        line.says(&[&period, "WARN", "cert.pem, EXPERTISE_TLS_CERT_FILE"]);
        assert!(server.start_line().contains("listening on"));
    }
}

#[test]
fn a_valid_certificate_is_no_warning() {
    let server = serve_with_certificate(1999, 4001);
    server.start_line();
    server.signal(Signal::TERM);
    let output = server.end();
    assert!(!output.stderr.contains("WARN"), "{}", output.stderr);
}
