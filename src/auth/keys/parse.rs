//! Secrets, and public keys in PEM and in JSON Web Key Sets. ring checks a key only when it
//! verifies a signature, so this module refuses unusable keys.

use std::{ops::RangeInclusive, sync::Arc};

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, alg_id::ECDSA_P256, pem::PemObject};
use serde::Deserialize;
use serde_json::Value;

use super::Key;

/// Bytes of the modulus of RSA keys with 2048 to 8192 bits.
const MODULUS_BYTES: RangeInclusive<usize> = 256..=1024;
/// Bytes around the modulus in DER (RFC 8017, appendix A.1.1), with the usual exponents.
const DER_OVERHEAD_BYTES: usize = 14;
/// Bytes of an uncompressed point on P-256.
const POINT_BYTES: usize = 65;
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
    let label = String::from_utf8_lossy(text);
    if label.contains("PRIVATE KEY-----") {
        return Err(
            "it is a private key: write its public key to a file with `openssl pkey -in FILE -pubout`",
        );
    }
    if label.contains("BEGIN CERTIFICATE-----") {
        return Err(
            "it is a certificate: write its public key to a file with `openssl x509 -in FILE -noout \
             -pubkey`",
        );
    }
    let mut keys = SubjectPublicKeyInfoDer::pem_slice_iter(text);
    let der = keys.next().and_then(Result::ok);
    let der = der.ok_or("it has no PUBLIC KEY block")?;
    if keys.next().is_some() {
        return Err(
            "it has several keys: put them into a JSON Web Key Set, for EXPERTISE_JWT_JWKS_FILE",
        );
    }
    let is_p256 = der
        .windows(ECDSA_P256.len())
        .any(|part| part == ECDSA_P256.as_ref());
    let candidates = [
        (Algorithm::RS256, DecodingKey::from_rsa_pem(text)),
        (Algorithm::ES256, DecodingKey::from_ec_pem(text)),
        (Algorithm::EdDSA, DecodingKey::from_ed_pem(text)),
    ];
    candidates
        .into_iter()
        .filter(|(algorithm, _)| *algorithm != Algorithm::ES256 || is_p256)
        .filter_map(|(algorithm, key)| Some((algorithm, key.ok()?)))
        .find(|(algorithm, key)| is_usable(*algorithm, key))
        .map(|(algorithm, decoding)| key(None, algorithm, decoding))
        .ok_or("its key is not RSA (2048 to 8192 bits), P-256 or Ed25519")
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
    let keys: Vec<_> = set.keys.into_iter().filter_map(web_key).collect();
    match keys.is_empty() {
        true => Err("it has no usable key"),
        false => Ok(keys),
    }
}

fn web_key(value: Value) -> Option<Arc<Key>> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        // Such as shared secrets.
        _ => return None,
    };
    let usage = jwk.common.public_key_use.as_ref();
    let operations = jwk.common.key_operations.as_ref();
    let named = jwk.common.key_algorithm;
    let is_for_tokens = usage.is_none_or(|usage| *usage == PublicKeyUse::Signature)
        && operations.is_none_or(|it| it.contains(&KeyOperations::Verify))
        && named.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let mut decoding = DecodingKey::from_jwk(&jwk).ok()?;
    if let DecodingKeyKind::RsaModulusExponent { n, e } = decoding.kind() {
        let [n, e] = [n, e].map(|number| without_leading_zeros(number));
        decoding = DecodingKey::from_rsa_raw_components(n, e);
    }
    let is_verifying = is_for_tokens && is_usable(algorithm, &decoding);
    is_verifying.then(|| key(jwk.common.key_id, algorithm, decoding))
}

fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// Whether the key has the size that its algorithm requires.
fn is_usable(algorithm: Algorithm, key: &DecodingKey) -> bool {
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    match (algorithm, key.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            MODULUS_BYTES.contains(&n.len()) && is_odd(n) && is_odd(e) && *e != [1]
        }
        (Algorithm::RS256, DecodingKeyKind::SecretOrDer(der)) => {
            MODULUS_BYTES.contains(&der.len().saturating_sub(DER_OVERHEAD_BYTES))
        }
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            point.len() == POINT_BYTES && point.first() == Some(&4)
        }
        (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => point.len() == ED25519_BYTES,
        _ => false,
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
