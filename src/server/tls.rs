//! TLS with rustls: the server's certificate, and the CAs of client certificates.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use humantime::format_rfc3339_seconds;
use rustls::{
    InconsistentKeys, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
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
    #[error("EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE cannot be used: {0}")]
    CertificateOrKey(&'static str),
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
        let files = Reloaded::open(tls.clone(), Some(FILE_INTERVAL)).await?;
        files.value().warn_unless_valid(tls);
        Ok(Self {
            files,
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

impl TlsFiles {
    fn warn_unless_valid(&self, tls: &Tls) {
        let Some(validity) = &self.validity else {
            return;
        };
        let (now, file) = (SystemTime::now(), tls.cert_file.display());
        let [begin, end] =
            [validity.not_before, validity.not_after].map(|time| time.to_system_time());
        let wrong = match now {
            _ if now > end => format!("expired at {}", format_rfc3339_seconds(end)),
            _ if now < begin => format!("is not valid before {}", format_rfc3339_seconds(begin)),
            _ => return,
        };
        warn!(
            "the certificate in {file}, EXPERTISE_TLS_CERT_FILE, {wrong}: replace it, because \
             clients refuse it"
        );
    }
}

impl Source for Tls {
    type Value = TlsFiles;
    type Error = TlsError;

    async fn read(&self) -> Result<(TlsFiles, Vec<u8>), TlsError> {
        let chain = pem::chain(&self.cert_file, "EXPERTISE_TLS_CERT_FILE");
        let key = pem::key(&self.key_file, "EXPERTISE_TLS_KEY_FILE");
        let cas = self.client_ca_file.as_ref();
        let cas = cas.map(|path| pem::ca_certificates(path, "EXPERTISE_TLS_CLIENT_CA_FILE"));
        let (chain_pem, key_pem, cas_pem) = match (chain, key, cas.transpose()) {
            (Ok(chain), Ok(key), Ok(cas)) => (chain, key, cas),
            (chain, key, cas) => {
                let errors = [chain.err(), key.err(), cas.err()];
                return Err(TlsError::Files(errors.into_iter().flatten().collect()));
            }
        };
        // `pem` has read them all.
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&chain_pem)
            .flatten()
            .collect();
        let key = PrivateKeyDer::from_pem_slice(&key_pem)
            .map_err(|_| TlsError::CertificateOrKey(UNUSABLE_KEY))?;
        let mut bytes = [chain_pem, key_pem].concat();
        // An error means that the process already has a provider.
        let _ = ring::default_provider().install_default();
        let config = match cas_pem {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(ca_certificates) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(
                    CertificateDer::pem_slice_iter(&ca_certificates).flatten(),
                );
                bytes.extend(ca_certificates);
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
        let config = config.with_single_cert(chain, key);
        let mut config =
            config.map_err(|error| TlsError::CertificateOrKey(why_unusable(&error)))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let config = Arc::new(config);
        Ok((TlsFiles { config, validity }, bytes))
    }

    fn log_change(&self, files: &TlsFiles) {
        let file = self.cert_file.display();
        info!(%file, "the certificate, its key or the client CAs have changed");
        files.warn_unless_valid(self);
    }

    fn log_failure(&self, error: &TlsError) {
        warn!("the TLS files cannot be read, so the old ones stay in use: {error}");
    }
}

const UNUSABLE_KEY: &str =
    "the key is malformed, or not RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519";

/// Why the certificate and key cannot be used, in our own words instead of rustls's.
fn why_unusable(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the certificate and the key do not belong together"
        }
        rustls::Error::InvalidCertificate(_) => {
            "the certificate is malformed, or not of X.509 version 3"
        }
        rustls::Error::General(_) => UNUSABLE_KEY,
        _ => "the certificate or the key cannot be used",
    }
}
