//! The files that TLS takes.

use std::path::PathBuf;

use super::{
    WrongSetting,
    sources::Values,
    table::{self, Setting},
    value,
};

/// The files that TLS takes, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, then those between it and the root.
    pub cert_file: PathBuf,
    /// The private key of the certificate.
    pub key_file: PathBuf,
    /// Certificates of those who vouch for clients. With it a client without a
    /// certificate of theirs is not served.
    pub client_ca_file: Option<PathBuf>,
}

/// Reads the files of TLS: a pair, or nothing at all.
pub(super) fn read(values: &Values) -> Result<Option<Tls>, WrongSetting> {
    let cert_file = values.read(&table::TLS_CERT_FILE, value::path)?;
    let key_file = values.read(&table::TLS_KEY_FILE, value::path)?;
    let client_ca_file = values.read(&table::TLS_CLIENT_CA_FILE, value::path)?;
    let lacks = |missing: &Setting, given: &Setting| {
        let given = values.named(given).unwrap_or_default();
        values.wrong(missing, format!("set too, as {given} is set"))
    };
    match (cert_file, key_file, client_ca_file) {
        (Some(cert_file), Some(key_file), client_ca_file) => Ok(Some(Tls {
            cert_file,
            key_file,
            client_ca_file,
        })),
        (Some(_), None, _) => Err(lacks(&table::TLS_KEY_FILE, &table::TLS_CERT_FILE)),
        (None, Some(_), _) => Err(lacks(&table::TLS_CERT_FILE, &table::TLS_KEY_FILE)),
        (None, None, Some(_)) => Err(lacks(&table::TLS_CERT_FILE, &table::TLS_CLIENT_CA_FILE)),
        (None, None, None) => Ok(None),
    }
}

/// The settings of TLS with their values as they may be shown.
pub(super) fn entries(tls: Option<&Tls>) -> [(Setting, Option<String>); 3] {
    let shown = |path: &PathBuf| path.display().to_string();
    [
        (table::TLS_CERT_FILE, tls.map(|tls| shown(&tls.cert_file))),
        (table::TLS_KEY_FILE, tls.map(|tls| shown(&tls.key_file))),
        (
            table::TLS_CLIENT_CA_FILE,
            tls.and_then(|tls| tls.client_ca_file.as_ref().map(shown)),
        ),
    ]
}
