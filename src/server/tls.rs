//! TLS by rustls on ring: which certificate is shown, and whose clients are let
//! in.

use std::{error::Error, fs, io, path::Path, time::Duration};

use rustls::{
    RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tonic::transport::{self, Certificate, Identity, ServerTlsConfig};

use crate::config::Tls;

/// How long a peer may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why TLS cannot be served. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{setting} is {path:?}: it must be {expected}: {reason}")]
    File {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: String,
        /// What would be right.
        expected: &'static str,
        /// Why it is not.
        reason: String,
    },
    /// The files do not go together.
    #[error("EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE must go together: {0}")]
    Pair(String),
}

/// Makes the server speak TLS alone, if that is asked for.
pub(super) fn apply<L>(
    builder: transport::Server<L>,
    tls: Option<&Tls>,
) -> Result<transport::Server<L>, TlsError> {
    let Some(tls) = tls else {
        return Ok(builder);
    };
    // tonic takes the provider of the process; the first one stays.
    let _ = ring::default_provider().install_default();
    let mut config = ServerTlsConfig::new()
        .identity(identity(tls)?)
        .timeout(HANDSHAKE);
    if let Some(path) = &tls.client_ca_file {
        config = config.client_ca_root(authorities(path)?);
    }
    builder.tls_config(config).map_err(|error| {
        let reason = error.source().map(ToString::to_string);
        TlsError::Pair(reason.unwrap_or_else(|| error.to_string()))
    })
}

fn identity(tls: &Tls) -> Result<Identity, TlsError> {
    let cert = read(
        &tls.cert_file,
        "EXPERTISE_TLS_CERT_FILE",
        "certificates in PEM, the server's own first",
        certificates,
    )?;
    let key = read(
        &tls.key_file,
        "EXPERTISE_TLS_KEY_FILE",
        "a private key in PEM",
        |text| {
            PrivateKeyDer::from_pem_slice(text)
                .map(drop)
                .map_err(|_| "it has none")
        },
    )?;
    Ok(Identity::from_pem(cert, key))
}

fn authorities(path: &Path) -> Result<Certificate, TlsError> {
    let text = read(
        path,
        "EXPERTISE_TLS_CLIENT_CA_FILE",
        "certificates of authorities in PEM",
        |text| {
            certificates(text)?;
            let mut roots = RootCertStore::empty();
            CertificateDer::pem_slice_iter(text)
                .flatten()
                .try_for_each(|certificate| roots.add(certificate))
                .map_err(|_| "one is malformed")
        },
    )?;
    Ok(Certificate::from_pem(text))
}

fn certificates(text: &[u8]) -> Result<(), &'static str> {
    let mut certificates = CertificateDer::pem_slice_iter(text).peekable();
    if certificates.peek().is_none() {
        return Err("it has none");
    }
    certificates
        .try_for_each(|certificate| certificate.map(drop))
        .map_err(|_| "one is malformed")
}

fn read(
    path: &Path,
    setting: &'static str,
    expected: &'static str,
    check: impl Fn(&[u8]) -> Result<(), &'static str>,
) -> Result<Vec<u8>, TlsError> {
    let wrong = |reason: String| TlsError::File {
        setting,
        path: path.display().to_string(),
        expected,
        reason,
    };
    let text = fs::read(path).map_err(|error: io::Error| wrong(error.to_string()))?;
    check(&text).map_err(|reason| wrong(reason.to_owned()))?;
    Ok(text)
}
