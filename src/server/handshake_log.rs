//! The log of TLS handshakes that fail: a line a second at most, as anybody may cause them.

use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustls::{CertificateError, Error};
use tokio::time::Instant;
use tracing::info;

/// How often a failed handshake is logged at most.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Logs failed handshakes.
#[derive(Default)]
pub struct HandshakeLog {
    state: Mutex<HandshakeLogState>,
}

#[derive(Default)]
struct HandshakeLogState {
    last_line: Option<Instant>,
    /// Failures since the last line.
    unlogged: u64,
}

impl HandshakeLog {
    /// Logs a failure, or counts it for the next line.
    pub fn record_failure(&self, peer: SocketAddr, cause: &'static str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .last_line
            .is_some_and(|at| at.elapsed() < LOG_INTERVAL)
        {
            state.unlogged += 1;
            return;
        }
        state.last_line = Some(Instant::now());
        let unlogged = std::mem::take(&mut state.unlogged);
        drop(state);
        info!(%peer, cause, unlogged, "the TLS handshake failed");
    }
}

/// Why a handshake failed, without the words of rustls.
pub fn cause(error: &io::Error) -> &'static str {
    let tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<Error>());
    match tls {
        None => "the client ended the connection",
        Some(Error::NoCertificatesPresented) => {
            "the client sent no certificate, which EXPERTISE_TLS_CLIENT_CA_FILE requires"
        }
        Some(Error::InvalidCertificate(error)) => certificate_cause(error),
        Some(Error::AlertReceived(_)) => {
            "the client refused the handshake: perhaps it does not trust the certificate in \
             EXPERTISE_TLS_CERT_FILE, or the certificate is for another server name"
        }
        Some(Error::InvalidMessage(_)) => "the client does not use TLS: its URL must be https",
        Some(Error::NoApplicationProtocol) => "the client does not offer HTTP/2",
        Some(Error::PeerIncompatible(_)) => {
            "client and server have no TLS version or cipher in common"
        }
        Some(_) => "the client does not follow the protocol",
    }
}

fn certificate_cause(error: &CertificateError) -> &'static str {
    use CertificateError::{
        Expired, ExpiredContext, NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    match error {
        Expired | ExpiredContext { .. } => "the client's certificate has expired",
        NotValidYet | NotValidYetContext { .. } => "the client's certificate is not valid yet",
        UnknownIssuer => {
            "no authority in EXPERTISE_TLS_CLIENT_CA_FILE has signed the client's certificate"
        }
        _ => "the client's certificate is not accepted: check that it is one for clients",
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_within_a_second_are_counted_for_the_next_line() {
        let log = HandshakeLog::default();
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut unlogged = Vec::new();
        for millis in [0, 999, 0, 1, 0] {
            advance(Duration::from_millis(millis)).await;
            log.record_failure(peer, "it ended");
            unlogged.push(log.state.lock().expect("a lock").unlogged);
        }
        assert_eq!(unlogged, [0, 1, 2, 0, 1]);
    }
}
