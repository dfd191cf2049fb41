//! TLS by rustls on ring: which certificate is shown, and whose clients are let
//! in.

use std::{error::Error, time::Duration};

use rustls::crypto::ring;
use tonic::transport::{self, Certificate, Identity, ServerTlsConfig};

use crate::{
    config::Tls,
    pem::{self, PemError},
};

/// How long a peer may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why TLS cannot be served. A display is one line.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error(transparent)]
    File(#[from] PemError),
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
    let cert = pem::chain(&tls.cert_file, "EXPERTISE_TLS_CERT_FILE")?;
    let key = pem::key(&tls.key_file, "EXPERTISE_TLS_KEY_FILE")?;
    let mut config = ServerTlsConfig::new()
        .identity(Identity::from_pem(cert, key))
        .timeout(HANDSHAKE);
    if let Some(path) = &tls.client_ca_file {
        let authorities = pem::authorities(path, "EXPERTISE_TLS_CLIENT_CA_FILE")?;
        config = config.client_ca_root(Certificate::from_pem(authorities));
    }
    builder.tls_config(config).map_err(|error| {
        let reason = error.source().map(ToString::to_string);
        TlsError::Pair(reason.unwrap_or_else(|| error.to_string()))
    })
}
