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

/// A certificate and its intermediates.
pub(crate) fn chain(path: &Path, setting: &str) -> Result<Vec<u8>, PemError> {
    let expected = "certificates in PEM, beginning with the one that the key belongs to";
    read(path, setting, expected, certificates)
}

/// A private key.
pub(crate) fn key(path: &Path, setting: &str) -> Result<Vec<u8>, PemError> {
    read(path, setting, "a private key in PEM", |text| {
        let key = PrivateKeyDer::from_pem_slice(text);
        let is_encrypted = text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        key.map(drop).map_err(|_| {
            if is_encrypted {
                "its key is encrypted: decrypt it with `openssl pkey`"
            } else {
                "it has none"
            }
        })
    })
}

/// Certificates of CAs.
pub(crate) fn ca_certificates(path: &Path, setting: &str) -> Result<Vec<u8>, PemError> {
    let expected = "CA certificates in PEM";
    read(path, setting, expected, |text| {
        certificates(text)?;
        let mut roots = RootCertStore::empty();
        CertificateDer::pem_slice_iter(text)
            .flatten()
            .try_for_each(|certificate| roots.add(certificate))
            .map_err(|_| "one is malformed")
    })
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
    setting: &str,
    expected: &'static str,
    check: impl Fn(&[u8]) -> Result<(), &'static str>,
) -> Result<Vec<u8>, PemError> {
    let wrong = |reason: String| PemError {
        setting: setting.to_owned(),
        path: path.display().to_string(),
        expected,
        reason,
    };
    let text = files::read(path).map_err(|error| wrong(error.to_string()))?;
    check(&text).map_err(|reason| wrong(reason.to_owned()))?;
    Ok(text)
}
