//! Signatures for `jsonwebtoken` with ring, which TLS needs anyway.
//!
//! *Invariant:* a key serves its own family of algorithms only: a public key is never
//! the secret of an HMAC, whatever a token's header says.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
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
        RsaPublicKeyComponents, UnparsedPublicKey,
    },
};

/// Makes ring the provider of `jsonwebtoken`. There is one for each process, and the
/// first one stays.
pub(super) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: |algorithm, key| {
            Ok(Box::new(WithRing::new(
                *algorithm,
                key.family(),
                key.clone(),
            )?))
        },
        verifier_factory: |algorithm, key| {
            Ok(Box::new(WithRing::new(
                *algorithm,
                key.family(),
                key.clone(),
            )?))
        },
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

impl<K> WithRing<K> {
    fn new(algorithm: Algorithm, family: AlgorithmFamily, key: K) -> Result<Self> {
        match family == algorithm.family() {
            true => Ok(Self { algorithm, key }),
            false => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }
}

impl Signer<Vec<u8>> for WithRing<EncodingKey> {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        sign(self.algorithm, self.key.as_bytes(), message).map_err(|_| Error::new())
    }
}

impl JwtSigner for WithRing<EncodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
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

impl Verifier<Vec<u8>> for WithRing<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        use DecodingKeyKind::{RsaModulusExponent, SecretOrDer};
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, SecretOrDer(secret)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::verify(&key, message, signature)
            }
            (Algorithm::RS256, RsaModulusExponent { n, e }) => RsaPublicKeyComponents {
                n: without_leading_zeros(n),
                e: without_leading_zeros(e),
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            (Algorithm::RS256, SecretOrDer(der)) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).verify(message, signature)
            }
            (Algorithm::ES256, SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for WithRing<DecodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// A number without leading zero bytes.
pub(super) fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
