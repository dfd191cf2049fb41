//! Signatures by ring, which TLS brings along anyway.
//!
//! *Invariant:* a key serves its own family of algorithms alone. A public key
//! is never the secret of an HMAC, whatever a token's header says.

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
use signature::{Error, Signer, Verifier};

/// Makes ring do the work of `jsonwebtoken`, which takes one provider a process;
/// the first one stays.
pub(super) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: signer,
        verifier_factory: verifier,
        // For writing keys as JSON, which nothing here does.
        key_utils: KeyUtils::new_unimplemented(),
    };
    let _ = RING.install_default();
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::HS256 || key.family() != algorithm.family() {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    Ok(Box::new(Signing(key)))
}

struct Signing(hmac::Key);

impl Signer<Vec<u8>> for Signing {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for Signing {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Verification {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

struct Verification {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Verification {
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

impl JwtVerifier for Verification {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_serves_its_own_family_alone() {
        let public = DecodingKey::from_ec_der(&[4; 65]);
        assert!(verifier(&Algorithm::HS256, &public).is_err());
        assert!(verifier(&Algorithm::EdDSA, &public).is_err());
        assert!(verifier(&Algorithm::ES256, &public).is_ok());
    }

    #[test]
    fn other_algorithms_of_a_family_verify_nothing() {
        let secret = DecodingKey::from_secret(&[7; 64]);
        let verification = verifier(&Algorithm::HS512, &secret).expect("the same family");
        let key = hmac::Key::new(hmac::HMAC_SHA512, &[7; 64]);
        let signature = hmac::sign(&key, b"message").as_ref().to_vec();
        assert!(verification.verify(b"message", &signature).is_err());
    }
}
