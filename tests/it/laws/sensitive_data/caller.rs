//! Calls with any bytes and metadata, whose errors are checked for marks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use serde_json::{Value, json};
use tonic::{
    Code, Request, Status,
    metadata::{AsciiMetadataValue, KeyAndValueRef, MetadataMap, MetadataValue},
};
use tonic_types::StatusExt;

use super::{
    marks::{self, KEY, MARK, SECRET, TEXT},
    service::Mode,
};
use crate::{
    kit::{calls::prepare, catalogue::Values, client::Client},
    ops::authentication::tokens::{Signer, claims, sign},
};

/// What a call is sent with.
pub type Metadata = Vec<(&'static str, String)>;

/// Calls over one connection, and counts them.
#[derive(Clone)]
pub struct Caller {
    pub client: Client,
    mode: Mode,
    calls: Arc<AtomicUsize>,
}

impl Caller {
    pub fn of(address: std::net::SocketAddr, mode: Mode) -> Self {
        Self {
            client: Client::at(address),
            mode,
            calls: Arc::default(),
        }
    }

    /// Calls as another account. The count of calls is shared.
    pub fn other_account(&self) -> Self {
        Self {
            client: self.client.other_account(),
            ..self.clone()
        }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Makes what a request needs, or else every resource, with marks in their texts.
    pub async fn prepare(&self, request: Option<&Value>) -> Values {
        let send = async |call: &str, message: Bytes| self.send(call, message.to_vec()).await;
        prepare(request, |call, it| MARK.message(call, it), send).await
    }

    /// The response to a call with valid credentials.
    pub async fn send(&self, call: &str, message: Vec<u8>) -> Result<Bytes, Status> {
        self.send_with(call, message, &self.credentials()).await
    }

    /// The response to a call with this metadata. An error must be defined by the API and contain
    /// no mark.
    pub async fn send_with(
        &self,
        call: &str,
        message: Vec<u8>,
        metadata: &Metadata,
    ) -> Result<Bytes, Status> {
        let mut request = Request::new(Bytes::from(message));
        let binary = MetadataValue::from_bytes(TEXT.as_bytes());
        request.metadata_mut().insert_bin("x-canary-bin", binary);
        for (name, value) in metadata {
            let value = AsciiMetadataValue::try_from(value.as_bytes()).expect("a header's value");
            request.metadata_mut().append(*name, value);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        let anonymous = self.client.without_credentials();
        let answer = anonymous.send_request(call, request).await;
        answer.inspect_err(|status| holds_no_mark(call, status))
    }

    /// Valid credentials, and metadata that the service ignores.
    pub fn credentials(&self) -> Metadata {
        let mut metadata = vec![
            ("x-canary", TEXT.to_owned()),
            ("cookie", format!("session={TEXT}")),
            ("traceparent", TEXT.to_owned()),
            ("tracestate", format!("{TEXT}={TEXT}")),
        ];
        metadata.extend(match self.mode {
            Mode::Header => vec![
                ("x-account-id", self.client.account().to_owned()),
                // Ignored in header mode.
                ("authorization", format!("Bearer {TEXT}")),
            ],
            Mode::Jwt => vec![("authorization", bearer(SECRET, &self.claims()))],
        });
        metadata
    }

    /// Metadata that is not accepted.
    pub fn wrong_credentials(&self) -> Vec<Metadata> {
        match self.mode {
            Mode::Header => {
                let account = || ("x-account-id", "42".to_owned());
                vec![
                    vec![("x-account-id", format!("{TEXT} {TEXT}"))],
                    vec![("x-account-id", TEXT.repeat(10))],
                    vec![("x-account-id", format!("{TEXT}\u{fc}"))],
                    vec![("x-account-id", TEXT.to_owned()), account()],
                    vec![account(), ("x-subject", TEXT.repeat(30))],
                    vec![account(), ("x-subject", format!("{TEXT}\u{fc}"))],
                    vec![account(), ("x-scopes", TEXT.to_owned())],
                    vec![account(), ("x-scopes", format!("{TEXT}\u{fc}"))],
                    vec![account(), ("grpc-timeout", TEXT.to_owned())],
                    vec![account(), ("grpc-encoding", TEXT.to_owned())],
                    vec![account(), ("x-long", TEXT.repeat(2_000))],
                    vec![("authorization", format!("Bearer {TEXT}"))],
                ]
            }
            Mode::Jwt => {
                let with_claim = |claim: &str, value: Value| {
                    let mut claims = self.claims();
                    claims[claim] = value;
                    bearer(SECRET, &claims)
                };
                let good = bearer(SECRET, &self.claims());
                let values = [
                    TEXT.to_owned(),
                    format!("Bearer {TEXT}"),
                    format!("Basic {TEXT}"),
                    format!("Bearer {TEXT}.{TEXT}.{TEXT}"),
                    format!("Bearer {}", TEXT.repeat(2_000)),
                    format!("{good} {TEXT}"),
                    bearer("another secret of 32 bytes or more", &self.claims()),
                    with_claim("account_id", json!(format!("{TEXT} {TEXT}"))),
                    with_claim("sub", json!(format!("{TEXT}\n"))),
                    with_claim("iss", json!(TEXT)),
                    with_claim("aud", json!(TEXT)),
                    with_claim("exp", json!(TEXT)),
                    with_claim("nbf", json!(TEXT)),
                    with_claim("scope", json!(TEXT)),
                    with_claim("scope", json!({TEXT: TEXT})),
                    signed(
                        SECRET,
                        &json!({"alg": "HS256", "typ": TEXT}),
                        &self.claims(),
                    ),
                    signed(SECRET, &json!({"alg": TEXT}), &self.claims()),
                    signed(
                        SECRET,
                        &json!({"alg": "RS256", "kid": TEXT}),
                        &self.claims(),
                    ),
                    signed(
                        SECRET,
                        &json!({"alg": "HS256", "crit": [TEXT]}),
                        &self.claims(),
                    ),
                ];
                let alone = values
                    .map(|value| vec![("authorization", value)])
                    .into_iter();
                let bad_timeout = vec![("authorization", good), ("grpc-timeout", TEXT.to_owned())];
                alone.chain([bad_timeout]).collect()
            }
        }
    }

    fn claims(&self) -> Value {
        let mut claims = claims();
        claims["account_id"] = json!(self.client.account());
        claims["scope"] = json!("read write translate admin index");
        claims["note"] = json!(TEXT);
        claims
    }
}

fn bearer(secret: &str, claims: &Value) -> String {
    signed(secret, &json!({"alg": "HS256", "typ": "JWT"}), claims)
}

fn signed(secret: &str, header: &Value, claims: &Value) -> String {
    let token = sign(&Signer::secret(secret.as_bytes()), header, claims);
    format!("Bearer {token}")
}

#[track_caller]
fn holds_no_mark(call: &str, status: &Status) {
    let info = status.get_details_error_info();
    let domain = info.map(|info| info.domain);
    assert_eq!(
        domain.as_deref(),
        Some("expertise.v1"),
        "{call}: {status:?}"
    );
    assert_ne!(status.code(), Code::Unknown, "{call}: {status:?}");
    let details = String::from_utf8_lossy(status.details());
    let texts = format!(
        "{} {details} {}",
        status.message(),
        shown(status.metadata())
    );
    let found = marks::found(&texts, &[KEY]);
    assert!(found.is_empty(), "{call} shows {found:?}: {status:?}");
}

fn shown(metadata: &MetadataMap) -> String {
    let shown = metadata.iter().map(|entry| match entry {
        KeyAndValueRef::Ascii(name, value) => format!("{name}: {value:?}\n"),
        KeyAndValueRef::Binary(name, value) => format!("{name}: {value:?}\n"),
    });
    shown.collect()
}
