//! Public keys as they are written down: PEM and JSON Web Key Sets.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{
        AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
        RSAKeyParameters,
    },
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde::Deserialize;

use super::{Key, KeySet};

/// Why something is no key or set of keys. It never quotes what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it has no PUBLIC KEY block")]
    Pem,
    #[error("its key is of another type or size")]
    KeyType,
    #[error("it is not JSON of the form {{\"keys\": […]}}")]
    Json,
}

/// What stands before the point of a P-256 key: its type, and that it is not
/// compressed (RFC 5480).
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// What stands before the point of an Ed25519 key (RFC 8410).
const ED25519: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// The type of an RSA key (RFC 3279).
const RSA: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// Bits of an RSA modulus.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Bytes of a coordinate of P-256, and of a point of Ed25519.
const COORDINATE: usize = 32;

/// Reads the one public key of a PEM file.
pub(super) fn public_key(text: &[u8]) -> Result<KeySet, Malformed> {
    let info = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| Malformed::Pem)?;
    let info = info.as_ref();
    let key = if let Some(point) = info.strip_prefix(P256) {
        p256(point)
    } else if let Some(point) = info.strip_prefix(ED25519) {
        ed25519(point)
    } else {
        rsa_components(info).and_then(|(n, e)| rsa(n, e))
    };
    key.map(|key| KeySet::One(Arc::new(key)))
        .ok_or(Malformed::KeyType)
}

/// Reads a key set. Keys that are of no use here (of other types or for other
/// purposes) are left out: a set may speak to others too.
pub(super) fn key_set(text: &[u8]) -> Result<KeySet, Malformed> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set: Set = serde_json::from_slice(text).map_err(|_| Malformed::Json)?;
    let keys = set.keys.into_iter().filter_map(|key| {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let key = web_key(&jwk)?;
        Some((jwk.common.key_id, Arc::new(key)))
    });
    Ok(KeySet::Named(keys.collect()))
}

fn web_key(jwk: &Jwk) -> Option<Key> {
    let signs = match &jwk.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
    };
    let verifies = match &jwk.common.key_operations {
        None => true,
        Some(operations) => operations.contains(&KeyOperations::Verify),
    };
    let key = match &jwk.algorithm {
        AlgorithmParameters::RSA(RSAKeyParameters { n, e, .. }) => rsa(&bytes(n)?, &bytes(e)?),
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P256 => {
            let (x, y) = (bytes(&point.x)?, bytes(&point.y)?);
            let full = x.len() == COORDINATE && y.len() == COORDINATE;
            let point = [&[4][..], &x, &y].concat();
            full.then(|| p256(&point)).flatten()
        }
        AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => {
            ed25519(&bytes(&point.x)?)
        }
        // A secret in a set would be one that many can read.
        _ => None,
    }?;
    let named = jwk.common.key_algorithm;
    let fits = named.is_none_or(|named| named == KeyAlgorithm::from(key.algorithm));
    (signs && verifies && fits).then_some(key)
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn p256(point: &[u8]) -> Option<Key> {
    let uncompressed = point.len() == 1 + 2 * COORDINATE && point.first() == Some(&4);
    uncompressed.then(|| Key {
        algorithm: Algorithm::ES256,
        decoding: DecodingKey::from_ec_der(point),
    })
}

fn ed25519(point: &[u8]) -> Option<Key> {
    (point.len() == COORDINATE).then(|| Key {
        algorithm: Algorithm::EdDSA,
        decoding: DecodingKey::from_ed_der(point),
    })
}

fn rsa(n: &[u8], e: &[u8]) -> Option<Key> {
    let (n, e) = (significant(n), significant(e));
    let leading = n.first()?.leading_zeros() as usize;
    let odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
    let valid = RSA_BITS.contains(&(n.len() * 8 - leading)) && odd(n) && odd(e) && e != [1];
    valid.then(|| Key {
        algorithm: Algorithm::RS256,
        decoding: DecodingKey::from_rsa_raw_components(n, e),
    })
}

/// A number without leading zeros.
fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// Modulus and exponent of an RSA key.
fn rsa_components(info: &[u8]) -> Option<(&[u8], &[u8])> {
    let (info, rest) = element(info, SEQUENCE)?;
    let (bits, after) = element(info.strip_prefix(RSA)?, BIT_STRING)?;
    let (key, end) = element(bits.strip_prefix(&[0])?, SEQUENCE)?;
    let (n, exponent) = element(key, INTEGER)?;
    let (e, tail) = element(exponent, INTEGER)?;
    let whole = [rest, after, end, tail].iter().all(|left| left.is_empty());
    whole.then_some((n, e))
}

/// Takes one element of DER apart: what is in it, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        0x80 | 0x83.. => return None,
    };
    rest.split_at_checked(length)
}
