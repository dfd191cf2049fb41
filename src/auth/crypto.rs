//! Signatures for `jsonwebtoken` with ring, which TLS needs anyway.
//!
//! *Invariant:* a key serves its own family of algorithms only: a public key is never the secret of
//! an HMAC, whatever a token's header says.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    DecodingKeyKind::{RsaModulusExponent, SecretOrDer},
    EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{Error, Signer, Verifier},
};
use ring::{
    error::Unspecified,
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
        Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair,
        RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
    },
};

/// Makes ring the provider of `jsonwebtoken`. There is one for each process, and the first one
/// stays.
pub(super) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: |algorithm, key| Ok(with_ring(*algorithm, key.family(), key.clone())?),
        verifier_factory: |algorithm, key| Ok(with_ring(*algorithm, key.family(), key.clone())?),
        // Needed only to write keys as JSON.
        key_utils: KeyUtils::new_unimplemented(),
    };
    let _ = RING.install_default();
}

/// A key and its algorithm.
struct WithRing<K> {
    algorithm: Algorithm,
    key: K,
}

fn with_ring<K>(algorithm: Algorithm, family: AlgorithmFamily, key: K) -> Result<Box<WithRing<K>>> {
    match family == algorithm.family() {
        true => Ok(Box::new(WithRing { algorithm, key })),
        false => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl JwtSigner for WithRing<EncodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Signer<Vec<u8>> for WithRing<EncodingKey> {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        sign(self.algorithm, self.key.as_bytes(), message).map_err(|_| Error::new())
    }
}

fn sign(
    algorithm: Algorithm,
    key: &[u8],
    message: &[u8],
) -> std::result::Result<Vec<u8>, Unspecified> {
    let random = SystemRandom::new();
    Ok(match algorithm {
        Algorithm::HS256 => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            hmac::sign(&key, message).as_ref().to_vec()
        }
        Algorithm::RS256 => {
            let key = RsaKeyPair::from_der(key)?;
            let mut signature = vec![0; key.public().modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
            signature
        }
        Algorithm::ES256 => {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random)?;
            key.sign(&random, message)?.as_ref().to_vec()
        }
        Algorithm::EdDSA => {
            let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key)?;
            key.sign(message).as_ref().to_vec()
        }
        _ => return Err(Unspecified),
    })
}

impl JwtVerifier for WithRing<DecodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for WithRing<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let public = |algorithm: &'static dyn VerificationAlgorithm, key| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, SecretOrDer(secret)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, message, signature)
            }
            (Algorithm::RS256, RsaModulusExponent { n, e }) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            (Algorithm::RS256, SecretOrDer(key)) => public(&RSA_PKCS1_2048_8192_SHA256, key),
            (Algorithm::ES256, SecretOrDer(key)) => public(&ECDSA_P256_SHA256_FIXED, key),
            (Algorithm::EdDSA, SecretOrDer(key)) => public(&ED25519, key),
            _ => Err(Unspecified),
        };
        verified.map_err(|_| Error::new())
    }
}
