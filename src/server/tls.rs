//! TLS with rustls: the server's certificate, and the CAs of client certificates.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use rustls::{ServerConfig, crypto::ring, server::WebPkiClientVerifier};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};
use x509_cert::{Certificate, der::Decode, time::Validity};

use crate::{
    config::Tls,
    pem::{self, PemError},
    reload::{FILE_INTERVAL, Reloaded, Source},
};

/// HTTP/2, and HTTP/1.1 for browsers behind proxies, as TLS names them.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The minimum time between log lines about failed handshakes, which anybody can cause.
const HANDSHAKE_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Why TLS cannot be served. It is displayed on one line.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// These files cannot be read, or have the wrong content.
    #[error("{}", Vec::from_iter(.0.iter().map(ToString::to_string)).join("; "))]
    Files(Vec<PemError>),
    /// The certificate and key do not match, or one of them is malformed.
    #[error("EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE cannot be used: {}", pem::why_unusable(.0))]
    CertificateOrKey(#[from] rustls::Error),
}

/// The TLS of a server, whose files are read again when they change. Connections that are open
/// keep what they began with.
pub struct ServerTls {
    files: Arc<Reloaded<Tls>>,
    failures: Mutex<HandshakeFailures>,
}

impl ServerTls {
    /// Reads certificates and keys.
    pub async fn open(tls: &Tls) -> Result<Self, TlsError> {
        Ok(Self {
            files: Reloaded::open(tls.clone(), Some(FILE_INTERVAL)).await?,
            failures: Mutex::default(),
        })
    }

    /// Accepts TLS connections with the current files.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.files.value().config))
    }

    /// When the server's certificate expires.
    pub fn certificate_expiry(&self) -> Option<SystemTime> {
        let files = self.files.value();
        let validity = files.validity.as_ref();
        validity.map(|validity| validity.not_after.to_system_time())
    }

    /// Logs a failed handshake, or counts it for the next log line. Without an error, it timed out.
    pub fn log_failed_handshake(&self, peer: SocketAddr, error: Option<io::Error>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: Instant| at.elapsed() < HANDSHAKE_LOG_INTERVAL;
        if failures.logged.is_some_and(is_recent) {
            failures.unlogged += 1;
            return;
        }
        let cause = error.map_or_else(
            || "the client did not complete it in time".to_owned(),
            |error| error.to_string(),
        );
        info!(%peer, cause, unlogged = failures.unlogged, "the TLS handshake failed");
        *failures = HandshakeFailures {
            logged: Some(Instant::now()),
            unlogged: 0,
        };
    }
}

/// Handshakes that failed.
#[derive(Default)]
struct HandshakeFailures {
    /// When the last one was logged.
    logged: Option<Instant>,
    /// Failures since then.
    unlogged: u64,
}

/// What was read from the files.
pub struct TlsFiles {
    config: Arc<ServerConfig>,
    /// The validity period of the certificate, if it has one.
    validity: Option<Validity>,
}

impl Source for Tls {
    type Value = TlsFiles;
    type Error = TlsError;
    const WHAT: &'static str = "the TLS files";

    async fn read(&self) -> Result<(TlsFiles, Vec<u8>), TlsError> {
        let chain = pem::chain(&self.cert_file, "EXPERTISE_TLS_CERT_FILE");
        let key = pem::key(&self.key_file, "EXPERTISE_TLS_KEY_FILE");
        let cas = self.client_ca_file.as_ref();
        let cas = cas.map(|path| pem::ca_certificates(path, "EXPERTISE_TLS_CLIENT_CA_FILE"));
        let ((chain, mut bytes), (key, key_pem), cas) = match (chain, key, cas.transpose()) {
            (Ok(chain), Ok(key), Ok(cas)) => (chain, key, cas),
            (chain, key, cas) => {
                let errors = [chain.err(), key.err(), cas.err()];
                return Err(TlsError::Files(errors.into_iter().flatten().collect()));
            }
        };
        bytes.extend(key_pem);
        // An error means that the process already has a provider.
        let _ = ring::default_provider().install_default();
        let config = match cas {
            None => ServerConfig::builder().with_no_client_auth(),
            Some((roots, ca_pem)) => {
                bytes.extend(ca_pem);
                let clients = WebPkiClientVerifier::builder(Arc::new(roots)).build();
                #[allow(clippy::expect_used)]
                let clients = clients.expect("`pem` accepts only files with a usable CA");
                ServerConfig::builder().with_client_cert_verifier(clients)
            }
        };
        let certificate = chain
            .first()
            .and_then(|der| Certificate::from_der(der).ok());
        let validity = certificate.map(|it| *it.tbs_certificate().validity());
        let mut config = config.with_single_cert(chain, key)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let config = Arc::new(config);
        Ok((TlsFiles { config, validity }, bytes))
    }

    fn warn(&self, files: &TlsFiles) {
        let Some(validity) = files.validity else {
            return;
        };
        let (begin, end) = (validity.not_before, validity.not_after);
        if !(begin.to_system_time()..=end.to_system_time()).contains(&SystemTime::now()) {
            warn!(
                "the certificate in {}, EXPERTISE_TLS_CERT_FILE, is only valid from {begin} to {end}: \
                 replace it, because clients refuse it",
                self.cert_file.display()
            );
        }
    }
}
