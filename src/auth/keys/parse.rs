//! Secrets, and public keys in PEM and in JSON Web Key Sets. ring checks a key only when it
//! verifies a signature, so this module refuses unusable keys.

use std::{ops::RangeInclusive, sync::Arc};

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use ring::{
    agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral},
    rand::SystemRandom,
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde::Deserialize;
use serde_json::Value;
use x509_cert::{
    der::{
        Decode,
        oid::db::{
            rfc5912::{ID_EC_PUBLIC_KEY, RSA_ENCRYPTION, SECP_256_R_1},
            rfc8410::ID_ED_25519,
        },
    },
    spki::SubjectPublicKeyInfoRef,
};

use super::Key;

/// Bytes of the modulus of RSA keys with 2048 to 8192 bits.
const MODULUS_BYTES: RangeInclusive<usize> = 256..=1024;
/// Bytes around the modulus in DER (RFC 8017, appendix A.1.1), with the usual exponents.
const DER_OVERHEAD_BYTES: usize = 14;
const ED25519_BYTES: usize = 32;

pub(super) fn secret_key(secret: &[u8]) -> Arc<Key> {
    key(None, Algorithm::HS256, DecodingKey::from_secret(secret))
}

fn key(id: Option<String>, algorithm: Algorithm, decoding: DecodingKey) -> Arc<Key> {
    Arc::new(Key {
        id,
        algorithm,
        decoding,
    })
}

/// Reads the public key of a PEM file.
pub(super) fn public_key(text: &[u8]) -> Result<Arc<Key>, &'static str> {
    let mut keys = SubjectPublicKeyInfoDer::pem_slice_iter(text);
    let has_private = String::from_utf8_lossy(text).contains("PRIVATE KEY-----");
    let (Some(Ok(der)), None, false) = (keys.next(), keys.next(), has_private) else {
        return Err(
            "it does not have exactly one PUBLIC KEY block: `openssl pkey -in FILE -pubout` writes \
             one from a private key, and `openssl x509 -in FILE -noout -pubkey` from a certificate; \
             put several keys into a JSON Web Key Set, for EXPERTISE_JWT_JWKS_FILE",
        );
    };
    let unsupported = "its key is not RSA (2048 to 8192 bits), P-256 or Ed25519";
    let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(|_| unsupported)?;
    let bits = info.subject_public_key.raw_bytes();
    let (algorithm, decoding) = match info.algorithm.oids() {
        Ok((RSA_ENCRYPTION, _)) => (Algorithm::RS256, DecodingKey::from_rsa_der(bits)),
        Ok((ID_EC_PUBLIC_KEY, Some(SECP_256_R_1))) => {
            (Algorithm::ES256, DecodingKey::from_ec_der(bits))
        }
        Ok((ID_ED_25519, _)) => (Algorithm::EdDSA, DecodingKey::from_ed_der(bits)),
        _ => return Err(unsupported),
    };
    match is_usable(algorithm, &decoding) {
        true => Ok(key(None, algorithm, decoding)),
        false => Err(unsupported),
    }
}

/// Reads a key set. Keys of other types or for other purposes are skipped; at least one must
/// remain.
pub(super) fn key_set(text: &[u8]) -> Result<Vec<Arc<Key>>, &'static str> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set =
        serde_json::from_slice(text).map_err(|_| "it is not JSON of the form {\"keys\": […]}")?;
    let mut keys = Vec::new();
    let mut reason = "it has no keys";
    for key in set.keys {
        match web_key(key) {
            Ok(key) => keys.push(key),
            Err(why) => reason = why,
        }
    }
    match keys.is_empty() {
        true => Err(reason),
        false => Ok(keys),
    }
}

/// A key of a set, or why it is skipped.
fn web_key(value: Value) -> Result<Arc<Key>, &'static str> {
    let unsupported =
        "it has no usable key: one is not of type RSA, P-256 or Ed25519, or is incomplete";
    let jwk: Jwk = serde_json::from_value(value).map_err(|_| unsupported)?;
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        // Such as shared secrets.
        _ => return Err(unsupported),
    };
    let usage = jwk.common.public_key_use.as_ref();
    let operations = jwk.common.key_operations.as_ref();
    let named = jwk.common.key_algorithm;
    if usage.is_some_and(|usage| *usage != PublicKeyUse::Signature)
        || operations.is_some_and(|it| !it.contains(&KeyOperations::Verify))
        || named.is_some_and(|named| named != KeyAlgorithm::from(algorithm))
    {
        return Err("it has no usable key: one is for another use (use, key_ops or alg)");
    }
    let malformed = "it has no usable key: one is malformed, or RSA of fewer than 2048 or more than \
                     8192 bits";
    let mut decoding = DecodingKey::from_jwk(&jwk).map_err(|_| malformed)?;
    if let DecodingKeyKind::RsaModulusExponent { n, e } = decoding.kind() {
        let [n, e] = [n, e].map(|number| without_leading_zeros(number));
        decoding = DecodingKey::from_rsa_raw_components(n, e);
    }
    match is_usable(algorithm, &decoding) {
        true => Ok(key(jwk.common.key_id, algorithm, decoding)),
        false => Err(malformed),
    }
}

fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// Whether the key passes the checks that are possible without a signature. Most Ed25519 points that are
/// off the curve are not noticed.
fn is_usable(algorithm: Algorithm, key: &DecodingKey) -> bool {
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    match (algorithm, key.kind()) {
        (_, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            MODULUS_BYTES.contains(&n.len()) && is_odd(n) && is_odd(e) && *e != [1]
        }
        (Algorithm::RS256, DecodingKeyKind::SecretOrDer(der)) => {
            MODULUS_BYTES.contains(&der.len().saturating_sub(DER_OVERHEAD_BYTES))
        }
        // ring checks points only in key agreements.
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new());
            let agreed =
                |own| agree_ephemeral(own, &UnparsedPublicKey::new(&ECDH_P256, point), |_| ());
            own.and_then(agreed).is_ok()
        }
        // Anyone can sign for the point of zeros.
        (_, DecodingKeyKind::SecretOrDer(point)) => {
            point.len() == ED25519_BYTES && point.iter().any(|byte| *byte != 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIBsInTRw3mknmHAbcBDDIYZL+z71
UV6rjJVDYH2EscbBBeJNYu5IAtbbSNQK2fy++K/0Mtm36WBT0jw56bn1FA==
-----END PUBLIC KEY-----
";

    #[test]
    fn a_truncated_public_key_is_refused() {
        assert!(public_key(PEM.as_bytes()).is_ok());
        for length in 0..PEM.trim_end().len() {
            assert!(public_key(&PEM.as_bytes()[..length]).is_err(), "{length}");
        }
    }
}
