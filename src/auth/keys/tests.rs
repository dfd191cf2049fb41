#![allow(clippy::expect_used)]

use super::*;

const PEM: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIBsInTRw3mknmHAbcBDDIYZL+z71
UV6rjJVDYH2EscbBBeJNYu5IAtbbSNQK2fy++K/0Mtm36WBT0jw56bn1FA==
-----END PUBLIC KEY-----
";

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
