//! Signed tokens: altered ones are never accepted, and all refusals are alike.

use std::error::Error as _;

use bytes::Bytes;
use serde_json::json;
use tokio::runtime::Runtime;
use tonic::{Code, Request, Status, metadata::AsciiMetadataValue};
use tonic_types::StatusExt;

use super::{
    executions::{Input, execute},
    mutations::{mutate_bytes, mutate_text},
};
use crate::kit::{
    client::Client,
    databases::runtime,
    rng::Rng,
    server::{TestServer, in_memory},
    tokens::{SECRET, Signer, claims},
};

const WORDS: [&str; 10] = [
    ".", "..", "eyJ", "=", "Bearer ", "none", "HS512", "e30", "AAAA", "-_",
];

struct Target {
    runtime: Runtime,
    client: Client,
    _server: TestServer,
    signed: Vec<String>,
}

#[test]
fn no_altered_token_is_accepted() {
    let target = Target::new();
    for token in &target.signed {
        target.call(&bearer(token)).expect("what was signed");
    }
    execute("tokens", 250, |rng| target.refuses_altered_tokens(rng));
}

impl Target {
    fn new() -> Self {
        let settings = in_memory().jwt("EXPERTISE_JWT_SECRET", SECRET);
        let server = TestServer::start_blocking(&settings);
        let runtime = runtime();
        let client = runtime.block_on(async { server.anonymous_client() });
        let grants = [
            ("one", "read write admin translate index"),
            ("other:42", "read"),
            ("a", ""),
        ];
        let signed = grants.map(|(account, scope)| {
            let mut claims = claims();
            claims["account_id"] = json!(account);
            claims["scope"] = json!(scope);
            Signer::hs256().token(&claims)
        });
        Self {
            runtime,
            client,
            _server: server,
            signed: signed.into(),
        }
    }

    /// Makes a call with these credentials. It may lack the scope.
    fn call(&self, authorization: &[u8]) -> Result<(), Status> {
        match self.send(authorization) {
            // HTTP/2 ends a connection after a thousand calls that were refused before their bodies
            // arrived. The next call opens another.
            Err(status) if status.source().is_some() => self.send(authorization),
            answered => answered,
        }
    }

    fn send(&self, authorization: &[u8]) -> Result<(), Status> {
        let mut request = Request::new(Bytes::new());
        let value = AsciiMetadataValue::try_from(authorization).expect("a header's value");
        request.metadata_mut().insert("authorization", value);
        let call = self.client.send_request("TaskService/ListTasks", request);
        match self.runtime.block_on(call) {
            Err(status) if status.code() != Code::PermissionDenied => Err(status),
            _ => Ok(()),
        }
    }

    fn refuses_altered_tokens(&self, rng: &mut Rng) {
        let token = rng.pick(&self.signed);
        let mut altered = bearer(token);
        match rng.below(3) {
            0 => mutate_bytes(rng, &mut altered),
            1 => altered = bearer(&mutate_text(rng, token, &WORDS)),
            _ => {
                // A part of another token.
                let other: Vec<&str> = rng.pick(&self.signed).split('.').collect();
                let mut parts: Vec<&str> = token.split('.').collect();
                let part = rng.below(parts.len());
                parts[part] = other[rng.below(other.len())];
                altered = bearer(&parts.join("."));
            }
        }
        altered.retain(|byte| (b' '..=b'~').contains(byte));
        let _input = Input {
            target: "tokens",
            bytes: &altered,
        };
        // The scheme is read in any case.
        let untouched = altered.len() > 7
            && altered[..7].eq_ignore_ascii_case(b"Bearer ")
            && self
                .signed
                .iter()
                .any(|token| token.as_bytes() == &altered[7..]);
        match self.call(&altered) {
            Ok(()) => assert!(untouched, "a forged token is accepted"),
            Err(refused) => {
                assert!(!untouched, "refused: {refused}");
                let info = refused.get_details_error_info();
                let info = info.unwrap_or_else(|| panic!("no reason: {refused:?}"));
                assert_eq!(info.reason, "CREDENTIALS_INVALID", "{refused:?}");
                let message = refused.message();
                // What has the form of a token gets one answer, whatever is wrong with it.
                let expected = if is_bearer(&altered) {
                    "authorization is not accepted"
                } else {
                    "authorization must be Bearer and a token"
                };
                assert!(message.starts_with(expected), "{message}");
            }
        }
    }
}

/// Whether a header is the scheme, a space, and text in the alphabet of tokens.
fn is_bearer(authorization: &[u8]) -> bool {
    let in_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    authorization
        .split_at_checked(7)
        .is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"Bearer ")
                && !token.is_empty()
                && token.iter().all(in_alphabet)
        })
}

fn bearer(token: &str) -> Vec<u8> {
    format!("Bearer {token}").into_bytes()
}
