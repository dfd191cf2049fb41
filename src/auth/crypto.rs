//! Signatures for `jsonwebtoken` with ring, which TLS needs anyway.
//!
//! *Invariant:* a key serves its own family of algorithms only: a public key is never
//! the secret of an HMAC, whatever a token's header says.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
};
use ring::{
    hmac,
    signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use rustls::{SignatureScheme, crypto::ring::sign::any_supported_type, pki_types::PrivateKeyDer};
use signature::{Error, Signer, Verifier};
use x509_cert::der::{self, Decode, Reader, SliceReader, asn1::UintRef};

/// Bytes of a number of a signature on P-256.
const COORDINATE_BYTES: usize = 32;

/// Makes ring the provider of `jsonwebtoken`. There is one for each process, and the
/// first one stays.
pub(super) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        // Needed only to write keys as JSON.
        key_utils: KeyUtils::new_unimplemented(),
    };
    let _ = RING.install_default();
}

/// The algorithm of a private key by its type, and how rustls names it.
const OF_PRIVATE_KEYS: [(SignatureScheme, Algorithm); 3] = [
    (SignatureScheme::RSA_PKCS1_SHA256, Algorithm::RS256),
    (SignatureScheme::ECDSA_NISTP256_SHA256, Algorithm::ES256),
    (SignatureScheme::ED25519, Algorithm::EdDSA),
];

/// The algorithm that a private key is for; `None` for keys of other types.
pub(super) fn algorithm_of(key: &PrivateKeyDer) -> Option<Algorithm> {
    let key = any_supported_type(key).ok()?;
    let mut algorithms = OF_PRIVATE_KEYS.iter();
    let found = algorithms.find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some());
    found.map(|(_, algorithm)| *algorithm)
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    let unsupported = || ErrorKind::UnsupportedAlgorithm;
    if key.family() != algorithm.family() {
        return Err(unsupported().into());
    }
    if *algorithm == Algorithm::HS256 {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
        return Ok(Box::new(HmacSigner(key)));
    }
    let mut algorithms = OF_PRIVATE_KEYS.iter();
    let named = algorithms.find(|(_, named)| named == algorithm);
    let (scheme, algorithm) = *named.ok_or_else(unsupported)?;
    let key = PrivateKeyDer::try_from(key.as_bytes()).ok();
    let key = key.and_then(|key| any_supported_type(&key).ok());
    let signer = key.and_then(|key| key.choose_scheme(&[scheme]));
    Ok(Box::new(PrivateKeySigner {
        algorithm,
        signer: signer.ok_or_else(unsupported)?,
    }))
}

struct HmacSigner(hmac::Key);

impl Signer<Vec<u8>> for HmacSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for HmacSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

struct PrivateKeySigner {
    algorithm: Algorithm,
    signer: Box<dyn rustls::sign::Signer>,
}

impl Signer<Vec<u8>> for PrivateKeySigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let signature = self.signer.sign(message).map_err(|_| Error::new())?;
        match self.algorithm {
            Algorithm::ES256 => fixed_size(&signature).map_err(|_| Error::new()),
            _ => Ok(signature),
        }
    }
}

impl JwtSigner for PrivateKeySigner {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// A signature on P-256 as tokens have it (RFC 7518, section 3.4): r and s, of 32 bytes each. TLS
/// has both as integers in DER.
fn fixed_size(signature: &[u8]) -> der::Result<Vec<u8>> {
    let numbers = SliceReader::new(signature)?.sequence(|inner| {
        Ok::<_, der::Error>([UintRef::decode(inner)?, UintRef::decode(inner)?])
    })?;
    let padded = numbers.iter().flat_map(|number| {
        let zeros = COORDINATE_BYTES.saturating_sub(number.as_bytes().len());
        std::iter::repeat_n(0, zeros).chain(number.as_bytes().iter().copied())
    });
    Ok(padded.collect())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, message, signature)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
