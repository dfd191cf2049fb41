//! PEM files, read and checked.

use std::path::Path;

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::files;

/// A file that cannot be read or has the wrong content. Its text is one line, without the file's
/// content.
#[derive(Debug, thiserror::Error)]
#[error("{setting} is {path:?}: it must be {expected}: {reason}")]
pub struct PemError {
    /// The setting that names the file.
    pub setting: String,
    pub path: String,
    /// What the file must hold.
    pub expected: &'static str,
    /// The problem with its content.
    pub reason: String,
}

/// The first line of a key that needs a password.
const ENCRYPTED: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";

/// What a file holds, and its text.
type Parsed<T> = Result<(T, Vec<u8>), PemError>;

/// A certificate and its intermediates.
pub(crate) fn chain(path: &Path, setting: &str) -> Parsed<Vec<CertificateDer<'static>>> {
    let expected = "certificates in PEM, beginning with the one that the key belongs to";
    read(path, setting, expected, certificates)
}

/// A private key.
pub(crate) fn key(path: &Path, setting: &str) -> Parsed<PrivateKeyDer<'static>> {
    read(path, setting, "a private key in PEM", |text| {
        let is_encrypted = text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        PrivateKeyDer::from_pem_slice(text).map_err(|_| match is_encrypted {
            true => "its key is encrypted: decrypt it with `openssl pkey`",
            false => "it has none",
        })
    })
}

/// Certificates of CAs.
pub(crate) fn ca_certificates(path: &Path, setting: &str) -> Parsed<RootCertStore> {
    read(path, setting, "CA certificates in PEM", |text| {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(text)? {
            roots.add(certificate).map_err(|_| "one is malformed")?;
        }
        Ok(roots)
    })
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let certificates = certificates.map_err(|_| "one is malformed")?;
    match certificates.is_empty() {
        true => Err("it has none"),
        false => Ok(certificates),
    }
}

fn read<T>(
    path: &Path,
    setting: &str,
    expected: &'static str,
    parse: impl Fn(&[u8]) -> Result<T, &'static str>,
) -> Parsed<T> {
    let wrong = |reason: String| PemError {
        setting: setting.to_owned(),
        path: path.display().to_string(),
        expected,
        reason,
    };
    let text = files::read(path).map_err(|error| wrong(error.to_string()))?;
    let parsed = parse(&text).map_err(|reason| wrong(reason.to_owned()))?;
    Ok((parsed, text))
}

/// Why a certificate and its key cannot be used. The texts of rustls are about the certificate of a
/// peer.
pub(crate) fn why_unusable(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InconsistentKeys(_) => "the certificate and the key do not belong together",
        rustls::Error::InvalidCertificate(_) => {
            "the certificate is malformed, or not of X.509 version 3"
        }
        _ => "the key is malformed, or not RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519",
    }
}
