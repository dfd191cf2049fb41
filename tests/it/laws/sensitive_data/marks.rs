//! Which values are marked, and how marks are found.
//!
//! What an error may repeat of a request, and a log line may not:
//!
//! - the key of a map on the way to a violation, cut to 64 characters, as in
//!   `step.translations["de"].title`: without it nobody would find the violation;
//! - ids, as the service writes them, and the path of a call of an unknown rpc.
//!
//! A log line holds the account and the subject of accepted credentials, and the
//! path of the call. Nothing else that was sent is repeated anywhere: no other
//! text, no token, no metadata.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::marks::Mark;

/// The mark in texts, tokens and metadata.
pub const TEXT: &str = "canary4text7";
/// The mark in keys of maps. It fits into a subtag of a language tag.
pub const KEY: &str = "linnet4k";
/// These marks in every free text of a request.
pub const MARK: Mark = Mark {
    text: TEXT,
    key: KEY,
    long_bodies: true,
};
/// The password of the database.
pub const PASSWORD: &str = "siskin4password";
/// The secret that signs tokens.
pub const SECRET: &str = "redpoll4secret of 32 bytes or more";

/// The marks in a text, in any form, except the allowed ones. The last character is ignored,
/// because tests overwrite it.
pub fn found(text: &str, allowed: &[&str]) -> Vec<String> {
    let text = text.to_lowercase();
    let marks = [TEXT, KEY, PASSWORD, SECRET].into_iter();
    let marks = marks.filter(|mark| !allowed.contains(mark));
    let forms = marks.flat_map(|mark| forms(&mark[..mark.len() - 1]));
    forms.filter(|form| text.contains(form)).collect()
}

/// The mark as text, as a list of bytes, in hexadecimal and inside base64.
fn forms(mark: &str) -> Vec<String> {
    let decimal: Vec<_> = mark.bytes().map(|byte| byte.to_string()).collect();
    let hexadecimal: Vec<_> = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![mark.to_owned(), decimal.join(", "), hexadecimal.concat()];
    // At each offset within three bytes, without the characters that depend on its
    // neighbours.
    forms.extend((0..3).map(|shift| {
        let whole = URL_SAFE_NO_PAD.encode(format!("{}{mark}", &"   "[..shift]));
        whole[(shift * 4).div_ceil(3)..whole.len() - 2].to_lowercase()
    }));
    forms
}

#[test]
fn marks_are_found_in_every_form() {
    for shift in ["", "a", "ab", "abc"] {
        let text = format!("{shift}{TEXT} and more");
        let bytes: Vec<_> = text.bytes().map(|byte| format!("{byte:02X}")).collect();
        for shown in [
            text.to_uppercase(),
            format!("{:?}", text.as_bytes()),
            bytes.concat(),
            URL_SAFE_NO_PAD.encode(&text),
        ] {
            assert!(!found(&shown, &[]).is_empty(), "{shown}");
            assert!(found(&shown, &[TEXT]).is_empty(), "{shown}");
        }
    }
    assert!(found("nothing of it: canary, linnet", &[]).is_empty());
}
