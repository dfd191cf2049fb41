//! Public keys in PEM and in JSON Web Key Sets.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{
        AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
        RSAKeyParameters,
    },
};
use pkcs1::RsaPublicKeyRef;
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde::Deserialize;
use x509_cert::{
    der::{Decode, asn1::AnyRef},
    spki::{ObjectIdentifier, SubjectPublicKeyInfoRef},
};

use super::{Key, KeySet};

/// Why a text holds no keys. It never quotes the text.
pub(super) type KeyFormatError = &'static str;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Bits of an RSA modulus.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Bytes of a coordinate of P-256, and of an Ed25519 key.
const COORDINATE_BYTES: usize = 32;

/// Reads the public key of a PEM file.
pub(super) fn public_key(text: &[u8]) -> Result<KeySet, KeyFormatError> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(text);
    let der = der.map_err(|_| match String::from_utf8_lossy(text) {
        text if text.contains("PRIVATE KEY-----") => {
            "it is a private key: write its public key to a file with `openssl pkey -in FILE -pubout`"
        }
        text if text.contains("BEGIN CERTIFICATE-----") => {
            "it is a certificate: write its public key to a file with `openssl x509 -in FILE -noout \
             -pubkey`"
        }
        _ => "it has no PUBLIC KEY block",
    })?;
    if SubjectPublicKeyInfoDer::pem_slice_iter(text)
        .nth(1)
        .is_some()
    {
        return Err(
            "it has several keys: put them into a JSON Web Key Set, for EXPERTISE_JWT_JWKS_FILE",
        );
    }
    let key = der_key(der.as_ref());
    let key = key.ok_or("its key is not RSA (2048 to 8192 bits), P-256 or Ed25519")?;
    Ok(KeySet::One(Arc::new(key)))
}

/// A key as RFC 3279, RFC 5480 and RFC 8410 write it.
fn der_key(der: &[u8]) -> Option<Key> {
    let info = SubjectPublicKeyInfoRef::from_der(der).ok()?;
    let bits = info.subject_public_key.as_bytes()?;
    let parameters = info.algorithm.parameters;
    match info.algorithm.oid {
        RSA if parameters == Some(AnyRef::NULL) => {
            let key = RsaPublicKeyRef::from_der(bits).ok()?;
            rsa(key.modulus.as_bytes(), key.public_exponent.as_bytes())
        }
        EC if info.algorithm.parameters_oid() == Ok(P256) => p256(bits),
        ED25519 if parameters.is_none() => ed25519(bits),
        _ => None,
    }
}

/// Reads a key set. Keys of other types or for other purposes are left out; one must remain.
pub(super) fn key_set(text: &[u8]) -> Result<KeySet, KeyFormatError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set = serde_json::from_slice::<Set>(text);
    let set = set.map_err(|_| "it is not JSON of the form {\"keys\": […]}")?;
    let keys = set.keys.into_iter().filter_map(|key| {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let key = web_key(&jwk)?;
        Some((jwk.common.key_id, Arc::new(key)))
    });
    let keys: Vec<_> = keys.collect();
    match keys.is_empty() {
        true => Err("it has no usable key"),
        false => Ok(KeySet::Named(keys)),
    }
}

fn web_key(jwk: &Jwk) -> Option<Key> {
    let is_for_signatures = match &jwk.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
    };
    let is_for_verifying = match &jwk.common.key_operations {
        None => true,
        Some(operations) => operations.contains(&KeyOperations::Verify),
    };
    let key = match &jwk.algorithm {
        AlgorithmParameters::RSA(RSAKeyParameters { n, e, .. }) => rsa(&bytes(n)?, &bytes(e)?),
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P256 => {
            let (x, y) = (bytes(&point.x)?, bytes(&point.y)?);
            let full = x.len() == COORDINATE_BYTES && y.len() == COORDINATE_BYTES;
            let point = [&[4][..], &x, &y].concat();
            full.then(|| p256(&point)).flatten()
        }
        AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => {
            ed25519(&bytes(&point.x)?)
        }
        // Keys of other types, such as shared secrets, are left out.
        _ => None,
    }?;
    let named = jwk.common.key_algorithm;
    let fits = named.is_none_or(|named| named == KeyAlgorithm::from(key.algorithm));
    (is_for_signatures && is_for_verifying && fits).then_some(key)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn p256(point: &[u8]) -> Option<Key> {
    let uncompressed = point.len() == 1 + 2 * COORDINATE_BYTES && point.first() == Some(&4);
    uncompressed.then(|| Key {
        algorithm: Algorithm::ES256,
        decoding: DecodingKey::from_ec_der(point),
    })
}

fn ed25519(point: &[u8]) -> Option<Key> {
    (point.len() == COORDINATE_BYTES).then(|| Key {
        algorithm: Algorithm::EdDSA,
        decoding: DecodingKey::from_ed_der(point),
    })
}

fn rsa(n: &[u8], e: &[u8]) -> Option<Key> {
    let (n, e) = (without_leading_zeros(n), without_leading_zeros(e));
    let leading = n.first()?.leading_zeros() as usize;
    let odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    let valid = RSA_BITS.contains(&(n.len() * 8 - leading)) && odd(n) && odd(e) && e != [1];
    valid.then(|| Key {
        algorithm: Algorithm::RS256,
        decoding: DecodingKey::from_rsa_raw_components(n, e),
    })
}

/// A number without leading zero bytes.
fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
