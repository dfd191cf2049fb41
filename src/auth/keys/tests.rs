#![allow(clippy::expect_used)]

use super::*;

const PEM: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIBsInTRw3mknmHAbcBDDIYZL+z71
UV6rjJVDYH2EscbBBeJNYu5IAtbbSNQK2fy++K/0Mtm36WBT0jw56bn1FA==
-----END PUBLIC KEY-----
";

fn named(keys: &[(Option<&str>, Algorithm)]) -> KeySet {
    let keys = keys.iter().map(|(id, algorithm)| {
        let key = Key {
            algorithm: *algorithm,
            decoding: DecodingKey::from_secret(&[]),
        };
        (id.map(str::to_owned), Arc::new(key))
    });
    KeySet::Named(keys.collect())
}

fn found(keys: &KeySet, id: Option<&str>, algorithm: Algorithm) -> bool {
    keys.find(id, algorithm).is_some()
}

#[test]
fn a_key_is_found_by_its_id_and_its_algorithm() {
    use Algorithm::{ES256, EdDSA, RS256};
    let keys = named(&[(Some("a"), ES256), (Some("a"), RS256), (None, EdDSA)]);
    assert!(found(&keys, Some("a"), ES256) && found(&keys, Some("a"), RS256));
    assert!(!found(&keys, Some("a"), EdDSA) && !found(&keys, Some("b"), ES256));
    assert!(!found(&keys, None, EdDSA), "there are several");
    assert!(keys.has_id("a") && !keys.has_id("b"));

    let one = named(&[(Some("a"), ES256)]);
    assert!(found(&one, None, ES256) && !found(&one, None, RS256));
    assert!(!found(&one, Some("b"), ES256));
}

#[test]
fn a_truncated_or_extended_public_key_is_refused() {
    let whole = PEM.as_bytes();
    assert_eq!(parse::public_key(whole).expect("a key").len(), 1);
    for length in 0..PEM.trim_end().len() {
        let cut = whole.get(..length).expect("a part");
        assert!(parse::public_key(cut).is_err(), "{length}");
    }
    let (head, tail) = PEM.split_once("FA==").expect("the end of the key");
    let longer = format!("{head}FAAA{tail}");
    assert!(parse::public_key(longer.as_bytes()).is_err());
}

#[test]
fn debug_output_never_shows_a_secret() {
    let secret = SigningSecret::new("hush, these are 32 bytes or more").expect("32 bytes");
    let source = KeySource::Secret(secret.clone());
    let key = Key::secret(&secret);
    for shown in [format!("{source:?}"), format!("{key:?}")] {
        assert!(
            !shown.contains("hush") && !shown.contains("104, 117"),
            "{shown}"
        );
    }
}
