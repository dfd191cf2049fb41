//! Messages for failed connections: one line that says what to do.

use std::{error::Error, io};

use rustls::CertificateError;
use tonic::TimeoutExpired;

/// The message for an error of a connection to a server that may have responded before.
pub(super) fn message(server: &str, error: &(dyn Error + 'static), answered: bool) -> String {
    let known = causes(error).find_map(|cause| known_message(server, cause));
    known.unwrap_or_else(|| match server.starts_with("https:") {
        _ if answered => format!("{server} ended the connection: try again later"),
        true => format!(
            "{server} ended the connection: if it does not use TLS, begin its URL with http://; if \
             it requires client certificates, set --client-cert-file and --client-key-file"
        ),
        false => {
            format!("{server} ended the connection: if it uses TLS, begin its URL with https://")
        }
    })
}

/// The last error in the chain of sources.
pub(crate) fn root_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

/// An error and its sources.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// The message for a cause that has a known remedy.
fn known_message(server: &str, cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        // `source` of an `io::Error` skips the error that it wraps.
        let tls = error.get_ref().and_then(|error| error.downcast_ref());
        return match tls {
            Some(error) => Some(tls_message(server, error)),
            None => io_message(server, error),
        };
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls_message(server, error));
    }
    cause.is::<TimeoutExpired>().then(|| timed_out(server))
}

/// Whether no connection was made, so nothing was sent.
pub(super) fn is_unsent(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| {
            let kind = error.kind();
            matches!(
                kind,
                ConnectionRefused | HostUnreachable | NetworkUnreachable
            ) || is_unknown_host(error)
        })
}

fn is_unknown_host(error: &io::Error) -> bool {
    error.to_string().contains("lookup address")
}

/// The message for a response of another service.
pub(super) fn unexpected_answer(server: &str, text: &str) -> String {
    let colon = if text.is_empty() { "" } else { ": " };
    format!(
        "{server} does not run this service: check the host, the port and any proxy{colon}{text}"
    )
}

/// The message for a timeout.
pub(super) fn timed_out(server: &str) -> String {
    format!("{server} did not respond in time: try again later")
}

fn io_message(server: &str, error: &io::Error) -> Option<String> {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut, UnexpectedEof,
    };
    match error.kind() {
        ConnectionRefused => Some(format!(
            "{server} refuses the connection: start the server with `expertise`, or set \
             EXPERTISE_SERVER to another URL"
        )),
        HostUnreachable | NetworkUnreachable | TimedOut => Some(format!(
            "{server} cannot be reached: check that it runs and check the network, or set \
             EXPERTISE_SERVER to another URL"
        )),
        UnexpectedEof if server.starts_with("https:") => Some(format!(
            "{server} ended the connection during the TLS handshake: if it does not use TLS, begin \
             its URL with http://"
        )),
        _ if is_unknown_host(error) => Some(format!(
            "the host name of {server} has no address: check EXPERTISE_SERVER"
        )),
        _ => None,
    }
}

fn tls_message(server: &str, error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            format!("{server} does not use TLS: begin its URL with http://")
        }
        rustls::Error::InvalidCertificate(error) => certificate_message(server, error),
        rustls::Error::AlertReceived(_) => format!(
            "{server} refuses the TLS connection: if it requires client certificates, set \
             --client-cert-file and --client-key-file"
        ),
        _ => format!(
            "the TLS handshake with {server} failed: check the TLS versions and ciphers of the server"
        ),
    }
}

fn certificate_message(server: &str, error: &CertificateError) -> String {
    use CertificateError::{
        BadEncoding, Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext,
        NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext, Other,
        UnsupportedSignatureAlgorithmContext,
    };
    match error {
        NotValidForName | NotValidForNameContext { .. } => format!(
            "the certificate of {server} is for another name: use the name of the certificate in the \
             URL, or set it with --server-name"
        ),
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            format!("the certificate of {server} has expired or is not valid yet: renew it")
        }
        BadEncoding | InvalidPurpose | InvalidPurposeContext { .. } | Other(_) => format!(
            "the certificate of {server} cannot be accepted: it must be a server certificate, not \
             a CA certificate (CA:TRUE)"
        ),
        UnsupportedSignatureAlgorithmContext { .. } => format!(
            "the certificate of {server} cannot be verified because the key type of its CA is not \
             supported: use a CA with RSA, ECDSA on P-256 or P-384, or Ed25519"
        ),
        // Any other error means that no trusted CA has signed it. Some concern a trusted CA with
        // the same name but another key.
        _ => format!(
            "the certificate of {server} is from an untrusted CA: set --ca-file or \
             EXPERTISE_CA_FILE to the CA's certificate"
        ),
    }
}
