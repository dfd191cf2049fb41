//! Secrets, and public keys in PEM and in JSON Web Key Sets. ring checks a key only when it verifies, so what
//! no token could be signed with is refused here.

use std::{ops::RangeInclusive, sync::Arc};

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, alg_id::ECDSA_P256, pem::PemObject};
use serde::Deserialize;

use super::{super::crypto::without_leading_zeros, Key, NamedKeys};
use crate::config::Secret;

/// Why a text holds no keys. It never quotes the text.
pub(super) type KeyFormatError = &'static str;

/// Bytes of the modulus of RSA keys with 2048 to 8192 bits.
const MODULUS_BYTES: RangeInclusive<usize> = 256..=1024;
/// Bytes around the modulus in DER (RFC 8017, appendix A.1.1), with the usual exponents.
const DER_OVERHEAD_BYTES: usize = 14;
/// Bytes of an uncompressed point on P-256.
const POINT_BYTES: usize = 65;
const ED25519_BYTES: usize = 32;

/// Reads the secret of a file, without the end of its line.
pub(super) fn secret(text: &[u8]) -> Result<Secret, KeyFormatError> {
    let text = str::from_utf8(text).map_err(|_| "it is not text in UTF-8")?;
    let secret = Secret::for_signing(text.trim_end_matches(['\r', '\n']));
    secret.ok_or("its secret is shorter than 32 bytes")
}

/// Reads the public key of a PEM file.
pub(super) fn public_key(text: &[u8]) -> Result<Key, KeyFormatError> {
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
    let mut keys = candidates.into_iter().filter_map(|(algorithm, decoding)| {
        let decoding = decoding.ok()?;
        (algorithm != Algorithm::ES256 || is_p256).then_some(Key {
            algorithm,
            decoding,
        })
    });
    keys.find(is_usable)
        .ok_or("its key is not RSA (2048 to 8192 bits), P-256 or Ed25519")
}

/// Reads a key set. Keys of other types or for other purposes are left out; one must remain.
pub(super) fn key_set(text: &[u8]) -> Result<NamedKeys, KeyFormatError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set: Set =
        serde_json::from_slice(text).map_err(|_| "it is not JSON of the form {\"keys\": […]}")?;
    let keys = set.keys.into_iter().filter_map(|key| {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let key = web_key(&jwk)?;
        Some((jwk.common.key_id, Arc::new(key)))
    });
    let keys: Vec<_> = keys.collect();
    match keys.is_empty() {
        true => Err("it has no usable key"),
        false => Ok(keys),
    }
}

fn web_key(jwk: &Jwk) -> Option<Key> {
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
    let is_for_signatures = match &jwk.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
    };
    let operations = jwk.common.key_operations.as_ref();
    let is_for_verifying = operations.is_none_or(|it| it.contains(&KeyOperations::Verify));
    let named = jwk.common.key_algorithm;
    let fits = named.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let decoding = DecodingKey::from_jwk(jwk).ok()?;
    Some(Key {
        algorithm,
        decoding,
    })
    .filter(is_usable)
    .filter(|_| is_for_signatures && is_for_verifying && fits)
}

/// Whether the key has the size that its algorithm requires.
fn is_usable(key: &Key) -> bool {
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    match (key.algorithm, key.decoding.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let (n, e) = (without_leading_zeros(n), without_leading_zeros(e));
            MODULUS_BYTES.contains(&n.len()) && is_odd(n) && is_odd(e) && e != [1]
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
    #![allow(clippy::expect_used)]

    use super::*;

    const PEM: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIBsInTRw3mknmHAbcBDDIYZL+z71
UV6rjJVDYH2EscbBBeJNYu5IAtbbSNQK2fy++K/0Mtm36WBT0jw56bn1FA==
-----END PUBLIC KEY-----
";

    #[test]
    fn a_truncated_public_key_is_refused() {
        let whole = PEM.as_bytes();
        assert_eq!(
            public_key(whole).expect("a key").algorithm,
            Algorithm::ES256
        );
        for length in 0..PEM.trim_end().len() {
            let cut = whole.get(..length).expect("a part");
            assert!(public_key(cut).is_err(), "{length}");
        }
    }
}
