//! TLS by rustls on ring: which certificate is shown, and whose clients are let
//! in.

use std::{path::Path, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    config::Tls,
    pem::{self, PemError},
};

/// The protocol that is spoken, as TLS names it.
const HTTP_2: &[u8] = b"h2";

/// Why TLS cannot be served. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error(transparent)]
    File(#[from] PemError),
    /// The files do not go together.
    #[error("EXPERTISE_TLS_CERT_FILE and EXPERTISE_TLS_KEY_FILE must go together: {0}")]
    Pair(String),
    /// No client can be judged by these authorities.
    #[error("EXPERTISE_TLS_CLIENT_CA_FILE must hold authorities of clients: {0}")]
    Clients(String),
}

/// What takes connections over TLS.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let pair = |reason: &dyn ToString| TlsError::Pair(reason.to_string());
    let chain = pem::chain(&tls.cert_file, "EXPERTISE_TLS_CERT_FILE")?;
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain: Vec<CertificateDer> = chain.map_err(|error| pair(&error))?;
    let key = pem::key(&tls.key_file, "EXPERTISE_TLS_KEY_FILE")?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| pair(&error))?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| pair(&error))?;
    let config = match &tls.client_ca_file {
        None => config.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(path)?);
            let clients = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let clients = clients.map_err(|error| TlsError::Clients(error.to_string()))?;
            config.with_client_cert_verifier(clients)
        }
    };
    let config = config.with_single_cert(chain, key);
    let mut config = config.map_err(|error| pair(&error))?;
    config.alpn_protocols.push(HTTP_2.to_vec());
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let text = pem::authorities(path, "EXPERTISE_TLS_CLIENT_CA_FILE")?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    Ok(roots)
}
