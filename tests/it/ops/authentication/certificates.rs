//! A CA for a test.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
};
use tokio_rustls::TlsAcceptor;
use tonic::transport::{Certificate, Identity};

use crate::kit::server::Settings;

/// A CA.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// The files of a server's certificate and key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A certificate and its key, in PEM.
pub struct Pair {
    pub cert: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        Self::with_key(KeyPair::generate().expect("a key"))
    }

    /// One with the same name as all others.
    pub fn with_key(key: KeyPair) -> Self {
        Self::make_self(CertificateParams::new([]).expect("names"), key)
    }

    /// A CA with a name.
    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        Self::make_self(params, KeyPair::generate().expect("a key"))
    }

    fn make_self(mut params: CertificateParams, key: KeyPair) -> Self {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub fn certificate(&self) -> Certificate {
        Certificate::from_pem(&self.pem)
    }

    /// A certificate for this name.
    pub fn make(&self, name: &str) -> Pair {
        self.make_with(CertificateParams::new([name.to_owned()]).expect("a name"))
    }

    /// A certificate for this name that is valid from the first day of one year to the first day of
    /// another.
    pub fn make_between(&self, name: &str, first: i32, last: i32) -> Pair {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(first, 1, 1);
        params.not_after = rcgen::date_time_ymd(last, 1, 1);
        self.make_with(params)
    }

    /// A CA certificate for this name.
    pub fn make_authority(&self, name: &str) -> Pair {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.make_with(params)
    }

    fn make_with(&self, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            cert: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// The certificate and key of a client.
    pub fn identity(&self) -> Identity {
        let pair = self.make("client");
        Identity::from_pem(pair.cert, pair.key)
    }

    /// The files of a server called localhost.
    pub fn files(&self, directory: &Path) -> TlsFiles {
        let pair = self.make("localhost");
        TlsFiles {
            cert: write(directory, "cert.pem", &pair.cert),
            key: write(directory, "key.pem", &pair.key),
        }
    }

    /// TLS for a fake server called localhost.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.make("localhost").acceptor()
    }
}

impl Pair {
    /// TLS for a fake server with this certificate, which clients may reject.
    pub fn acceptor(&self) -> TlsAcceptor {
        let cert = CertificateDer::from_pem_slice(self.cert.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let provider = ring::default_provider();
        let key = provider.key_provider.load_private_key(key).expect("a key");
        let pair = SingleCertAndKey::from(CertifiedKey::new(vec![cert], key));
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(pair));
        TlsAcceptor::from(Arc::new(config))
    }
}

pub fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).expect("a file of our own");
    path
}

impl Settings {
    /// Serves over TLS with these files.
    pub fn tls(self, files: &TlsFiles) -> Self {
        self.set("EXPERTISE_TLS_CERT_FILE", files.cert.display())
            .set("EXPERTISE_TLS_KEY_FILE", files.key.display())
    }
}
