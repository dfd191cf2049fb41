//! Signatures of tokens, for `jsonwebtoken` by ring, which TLS needs anyway.
//!
//! *Invariant:* a key only serves its own family of algorithms. A public key is never the secret of
//! an HMAC, regardless of the header of a token.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    DecodingKeyKind::{RsaModulusExponent, SecretOrDer},
    EncodingKey, Header,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    encode,
    errors::ErrorKind,
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
use serde_json::json;

use super::{KeyError, KeySource, TokenConfig, TokenGrant, keys::read_secret};
use crate::pem;

const UNUSABLE_KEY: &str = "its key is not RSA of at least 2048 bits, P-256 or Ed25519 in PKCS #8; \
    `openssl pkcs8 -topk8 -nocrypt` converts other formats";

/// Makes ring the provider of `jsonwebtoken`. Each process has one provider, and the first one
/// stays.
pub(super) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        // `encode` compares the families.
        signer_factory: |algorithm, key| {
            Ok(Box::new(WithRing {
                algorithm: *algorithm,
                key: key.clone(),
            }))
        },
        verifier_factory: |algorithm, key| {
            if key.family() != algorithm.family() {
                return Err(ErrorKind::InvalidAlgorithm.into());
            }
            Ok(Box::new(WithRing {
                algorithm: *algorithm,
                key: key.clone(),
            }))
        },
        // Only needed to write keys as JSON.
        key_utils: KeyUtils::new_unimplemented(),
    };
    let _ = RING.install_default();
}

/// A key and its algorithm.
struct WithRing<K> {
    algorithm: Algorithm,
    key: K,
}

impl JwtSigner for WithRing<EncodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Signer<Vec<u8>> for WithRing<EncodingKey> {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let (key, random) = (self.key.as_bytes(), SystemRandom::new());
        let sign = || match self.algorithm {
            Algorithm::HS256 => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, key);
                Ok(hmac::sign(&key, message).as_ref().to_vec())
            }
            Algorithm::RS256 => {
                let key = RsaKeyPair::from_pkcs8(key).or_else(|_| RsaKeyPair::from_der(key))?;
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
            Algorithm::ES256 => {
                let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &random)?;
                Ok(key.sign(&random, message)?.as_ref().to_vec())
            }
            Algorithm::EdDSA => {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key)?;
                Ok(key.sign(message).as_ref().to_vec())
            }
            _ => Err(Unspecified),
        };
        sign().map_err(|_| Error::new())
    }
}

impl JwtVerifier for WithRing<DecodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for WithRing<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
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

/// Signs a token that is valid until it expires.
pub fn sign(tokens: &TokenConfig, grant: &TokenGrant) -> Result<String, KeyError> {
    install();
    // A clock before 1970 counts as 1970.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let scopes: Vec<_> = grant.scopes.iter().map(|scope| scope.name()).collect();
    let claims = json!({
        "iss": tokens.issuer,
        "aud": tokens.audience,
        "sub": grant.subject.as_str(),
        "account_id": grant.account.as_str(),
        "scope": scopes.join(" "),
        "iat": now,
        "exp": now.saturating_add(grant.expires.as_secs()),
    });
    let token = signing_keys(&tokens.key).and_then(|keys| {
        // Signing fails for an algorithm of another type.
        let mut keys = keys.into_iter();
        keys.find_map(|(algorithm, key)| encode(&Header::new(algorithm), &claims, &key).ok())
            .ok_or_else(|| UNUSABLE_KEY.to_owned())
    });
    token.map_err(|reason| KeyError::new(&tokens.key, &reason))
}

/// The secret, or the private key for each algorithm that its type may be for.
fn signing_keys(source: &KeySource) -> Result<Vec<(Algorithm, EncodingKey)>, String> {
    let secret = |secret: &[u8]| vec![(Algorithm::HS256, EncodingKey::from_secret(secret))];
    match source {
        KeySource::Secret(text) => Ok(secret(text.expose().as_bytes())),
        KeySource::SecretFile(path) => Ok(secret(&read_secret(path)?)),
        KeySource::PrivateKeyFile(path) => {
            let (key, _) = pem::key(path, source.setting())
                .map_err(|error| format!("it must be {}: {}", error.expected, error.reason))?;
            let der = key.secret_der();
            Ok(vec![
                (Algorithm::RS256, EncodingKey::from_rsa_der(der)),
                (Algorithm::ES256, EncodingKey::from_ec_der(der)),
                (Algorithm::EdDSA, EncodingKey::from_ed_der(der)),
            ])
        }
        _ => Err("it only verifies".to_owned()),
    }
}
