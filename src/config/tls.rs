//! The files for TLS.

use std::path::PathBuf;

use clap::Args;

use super::{WrongSetting, settings::GivenSettings, value};

/// The files for TLS, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, then those between it and the root.
    pub cert_file: PathBuf,
    /// The private key of the certificate.
    pub key_file: PathBuf,
    /// Certificates of the authorities of clients. With it, a client without a
    /// certificate from one of them is not served.
    pub client_ca_file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct TlsSettings {
    /// Serve TLS with this certificate and those between it and the root, in PEM; read again every five seconds, as are the other files of TLS
    #[arg(value_name = "PATH", value_parser = value::path)]
    tls_cert_file: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(value_name = "PATH", value_parser = value::path)]
    tls_key_file: Option<PathBuf>,
    /// Serve only clients that show a certificate of these authorities, in PEM
    #[arg(value_name = "PATH", value_parser = value::path)]
    tls_client_ca_file: Option<PathBuf>,
}

impl TlsSettings {
    /// A pair of files, or nothing at all.
    pub fn tls(self, given: &GivenSettings) -> Result<Option<Tls>, WrongSetting> {
        match (
            self.tls_cert_file,
            self.tls_key_file,
            self.tls_client_ca_file,
        ) {
            (Some(cert_file), Some(key_file), client_ca_file) => Ok(Some(Tls {
                cert_file,
                key_file,
                client_ca_file,
            })),
            (Some(_), None, _) => Err(given.unset_though_given("tls_key_file", "tls_cert_file")),
            (None, Some(_), _) => Err(given.unset_though_given("tls_cert_file", "tls_key_file")),
            (None, None, Some(_)) => {
                Err(given.unset_though_given("tls_cert_file", "tls_client_ca_file"))
            }
            (None, None, None) => Ok(None),
        }
    }
}
